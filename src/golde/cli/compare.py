"""``golde compare``."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

import typer

from golde.cli import options
from golde.cli.evaluate import RELATIONS_SHOWN, Split, figure
from golde.cli.output import bar, note, say, say_json, say_points, say_table
from golde.errors import GoldeError
from golde.words import duration, label

if TYPE_CHECKING:
    from golde.report.compare import Comparison

RUNS_SHOWN = 7
"""Runs that the table of relations has room for."""

EXAMPLES = """\b
Example: golde compare runs/golde runs/rotate runs/transe
  golde compare runs/a runs/b --split valid --plot compared.png
"""


def register(app: typer.Typer) -> None:
    app.command(epilog=EXAMPLES)(compare)


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="Folders of finished runs on one graph."),
    ],
    split: Annotated[Split, typer.Option(help="The facts to rank.")] = Split.test,
    resamples: Annotated[
        int, typer.Option(min=100, max=1_000_000, help="Resamples behind intervals and p-values.")
    ] = 10_000,
    seed: Annotated[
        int, typer.Option(min=0, max=options.LARGEST_SEED, help="Seed of the resamples.")
    ] = 0,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw it as .png or .svg (extra: plots)."),
    ] = None,
    device: options.OnDevice = options.Device.auto,
    json: options.Json = False,
) -> None:
    """Compare runs on one graph, and test their differences from the first.

    Ranks that are missing are found, and kept in the run folder.
    """
    if plot is not None:
        _check_plot(plot)
    import golde
    from golde.report.compare import compare as run_comparison
    from golde.report.compare_plot import draw_comparison

    with bar("ranking") as progress:
        found = run_comparison(
            runs,
            lambda path: golde.load_run(path, device=device.value),
            split.value,
            resamples=resamples,
            seed=seed,
            progress=progress,
        )
    for run in found.runs:
        if run.not_kept is not None:
            note(f"note: the figures of {run.path} are shown but not kept: {run.not_kept}")
    if plot is not None:
        draw_comparison(found, plot)
    if json:
        say_json(found.as_dict())
        return
    _print(found)
    if plot is not None:
        say_points([("written", str(plot))])


def _check_plot(path: Path) -> None:
    """Refuse a picture that could not be drawn, before any work is done for it."""
    if path.suffix.lower() not in (".png", ".svg"):
        raise GoldeError(f"{path}: pictures are drawn as .png or .svg; end the name in one")
    if not path.parent.is_dir():
        raise GoldeError(f"{path}: there is no folder {path.parent}; make it first")
    from golde.report.drawing import style

    with style():  # an error if it is missing
        pass


def _print(found: Comparison) -> None:
    for line in found.protocol.card():
        say(line, style="dim")
    say()
    say_table(
        ["", "run", "space", "seed", "numbers", "time"],
        (
            [
                run.letter,
                str(run.path),
                run.space,
                str(run.seed),
                f"{run.parameters:,}",
                duration(run.seconds),
            ]
            for run in found.runs
        ),
        "<<<>>>",
    )
    names = [
        name for name in found.runs[0].found.metrics["both"] if name not in ("count", "intervals")
    ]
    say_table(
        ["both sides", *map(label, names)],
        (
            [run.letter, *(figure(name, run.found.metrics["both"][name]) for name in names)]
            for run in found.runs
        ),
        "<" + ">" * len(names),
    )
    sides = [(name, side) for name in ("mrr", "hits@10") for side in ("head", "tail")]
    say_table(
        ["each side", *(f"{label(name)} {side}s" for name, side in sides)],
        (
            [run.letter, *(figure(name, run.found.metrics[side][name]) for name, side in sides)]
            for run in found.runs
        ),
        "<>>>>",
    )
    _print_differences(found)
    _print_relations(found)


def _print_differences(found: Comparison) -> None:
    first, *others = found.runs
    say("Differences from the first", style="bold")
    rows = []
    for run in others:
        for name, tested in run.against_first.items():
            low, high = tested["interval"]
            rows.append(
                [
                    f"{run.letter} − {first.letter}",
                    label(name),
                    f"{tested['difference']:+.4f}",
                    f"{low:+.4f} to {high:+.4f}",
                    chance(tested["p"]),
                    chance(tested["p_holm"]),
                ]
            )
    say_table(["", "", "difference", "95% interval", "p", "p (Holm)"], rows, "<<>>>>")
    words = (
        f"Paired bootstrap over facts, {found.resamples:,} resamples, seed {found.seed}; p is two-sided, "
        f"and Holm's corrects for {len(others)} comparison{'s' * (len(others) != 1)} of each figure. It "
        "speaks of these models on other facts, not of other seeds in training."
    )
    say(fill(words, 80) + "\n", style="dim")


def chance(p: float) -> str:
    """A p-value with as many digits as mean something."""
    return f"{p:.4f}" if p < 0.01 else f"{p:.3f}"


def _print_relations(found: Comparison) -> None:
    shown = found.runs[:RUNS_SHOWN]
    counts = {name: block["count"] // 2 for name, block in shown[0].found.relations.items()}
    ordered = sorted(counts, key=lambda name: -counts[name])
    say("MRR by relation", style="bold")
    say_table(
        ["", "facts", *(run.letter for run in shown)],
        (
            [
                name,
                f"{counts[name]:,}",
                *(figure("mrr", run.found.relations[name]["mrr"]) for run in shown),
            ]
            for name in ordered[:RELATIONS_SHOWN]
        ),
        "<>" + ">" * len(shown),
    )
    more = [
        f"{len(items) - most} more {what}"
        for items, most, what in (
            (ordered, RELATIONS_SHOWN, "relations"),
            (found.runs, RUNS_SHOWN, "runs"),
        )
        if len(items) > most
    ]
    if more:
        say(f"… and {' and '.join(more)}; --json has them all.")
