"""``golde evidence``: what facts in a row say beside the embedding."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from golde.cli import options
from golde.cli.output import bar, say, say_json, say_points, say_table
from golde.words import facts_in_a_row


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: golde evidence runs/world --hops 3")(evidence)


def evidence(
    run: options.Run,
    hops: Annotated[
        int | None,
        typer.Option(min=1, max=4, help="Facts in a row; unset: as the run was configured, or 2."),
    ] = None,
    joined: Annotated[
        bool | None,
        typer.Option(
            "--joined/--not-joined",
            help="Choose too what is added where a fact joins the two already; unset: as configured.",
        ),
    ] = None,
    walks: Annotated[
        int | None,
        typer.Option(min=1, help="Walks to learn from; more take longer; unset: as configured."),
    ] = None,
    show: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Show the walks of most weight, so many."),
    ] = 10,
    device: options.OnDevice = options.Device.auto,
    json: options.Json = False,
) -> None:
    """Weigh what facts in a row say for or against an answer.

    What each walk over relations is worth is learned from the training facts, each as if it were missing. How
    much that counts beside the score of the embedding is chosen on the validation facts. From then on every
    score of the run counts it; evaluate and calibrate it anew. Evidence that was there is replaced.
    """
    from golde.inference.run import Run
    from golde.runs import RunFolder
    from golde.training.loop import pick_device

    opened = Run(RunFolder(run), pick_device(device.value), evidence=False)
    with bar("weighing facts in a row") as progress:
        found = opened.gather_evidence(hops, joined=joined, walks=walks, progress=progress)
    heaviest = found.evidence.heaviest(opened.graph.relations.names, show)
    if json:
        shown = [{"weight": one.weight, "walk": one.walk, "answer": one.answer} for one in heaviest]
        say_json(found.as_dict() | {"heaviest": shown})
        return
    say_points(
        [
            *evidence_points(found.as_dict()),
            ("written", str(opened.folder.evidence_file)),
        ]
    )
    if heaviest:
        say("\nThe walks of most weight", style="bold")
        rows = ([f"{one.weight:+.2f}", one.answer, one.walk] for one in heaviest)
        say_table(["", "asked for", "by way of"], rows, "><<")
    say_points([("next", shlex.join(["golde", "evaluate", str(run)]))])


def evidence_points(found: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """What evidence was found to be worth, in words; nothing where there is none."""
    if found is None:
        return []
    judged = found["validation"]
    joined = f"; {found['joined']:+.3g} where a fact joins the two" if found["joined"] else ""
    unmentioned = found["unmentioned"]
    counts = found["scale"] or found["lift"] or found["joined"] or unmentioned
    return [
        ("evidence", f"of {facts_in_a_row(found['hops'])}"),
        ("", f"{found['bodies']:,} kinds of walks weighed on {found['asked']:,} questions"),
        ("", f"counts {found['scale']:.3g} times, any walk {found['lift']:+.3g}{joined}"),
        *(
            [("", f"answers that no training fact mentions {unmentioned:+.3g}")]
            if unmentioned
            else []
        ),
        ("", f"MRR {judged['before']:.3f} → {judged['after']:.3f} on {judged['facts']:,} of valid"),
        *([] if counts else [("", "nothing is gained by it, so that no score changes")]),
    ]
