"""``golde extend``: new entities and facts for a trained run."""

from __future__ import annotations

import shlex
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any

import typer

from golde.cli import options
from golde.cli.output import bar, cut, note, say_json, say_points, visible
from golde.words import duration


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: golde extend runs/world news.tsv --out runs/world-2")(extend)


def extend(
    run: options.Run,
    facts: Annotated[
        Path,
        typer.Argument(
            metavar="FACTS", help="New facts, as for training; their entities may be new."
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="NEWRUN", help="Folder of the extended run.")],
    steps: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=1_000_000,
            help="Local steps; 0: the closed-form start alone; unset: by the facts.",
        ),
    ] = None,
    columns: options.Columns = None,
    device: options.OnDevice = options.Device.auto,
    json: options.Json = False,
) -> None:
    """Add new entities and facts to a run, without training it again.

    A new entity starts at the mean of where its neighbours' relations lead; local steps on the new
    facts then move it. All that was trained stays as it is, and so does RUN.
    """
    from golde.runs import RunFolder
    from golde.training.extend import extend as extend_run

    with bar("moving new entities") as progress:
        folder = extend_run(
            run, facts, out, steps=steps, columns=columns, device=device.value, progress=progress
        )
    record = folder.about()["extensions"][-1]
    for line in record["notes"]:
        note(f"note: {line}")
    if json:
        say_json({"run": str(out), **record})
    else:
        again = "calibrate" if RunFolder(run).calibration_file.is_file() else "complete"
        if again == "calibrate":
            note(
                f"note: the probabilities of {run} are not those of {out}, which has to be calibrated"
            )
        following = shlex.join(["golde", again, str(out)])
        say_points([("run", str(out)), *described(record), ("next", following)])


def described(record: dict[str, Any]) -> list[tuple[str, str]]:
    """What an extension did, in words."""
    points = [("extended", f"{record['from']} with {record['facts_from']}")]
    facts = f"{record['new_facts']:,} new, {record['repeated']:,} known before or repeated"
    if record["between_known"]:
        facts += f"\n{record['between_known']:,} between known entities: now known, nothing moved"
    points.append(("facts", facts))
    new, adrift = record["new_entities"], record["adrift"]
    entities = f"{new:,} new"
    if new:
        sweeps = f"{record['sweeps']} sweep{'s' * (record['sweeps'] != 1)}"
        entities += f", {new - adrift:,} placed by their neighbours in {sweeps}"
    if adrift:
        names = [cut(visible(name), 40) for name in record["adrift_names"]]
        shown = ", ".join(names) + (" …" if adrift > len(names) else "")
        words = f"{adrift:,} without a way to a known entity start at the mean: {shown}"
        entities += "\n" + fill(words, 70)
    points.append(("entities", entities))
    if record["steps"]:
        first, last = record["losses"]
        moved = f"{record['steps']:,} local steps, loss {first:.4f} to {last:.4f}"
        points.append(("moved", f"{moved}, in {duration(record['seconds'])}"))
    return points
