"""``golde evaluate``."""

from __future__ import annotations

import shlex
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from golde.cli import options
from golde.cli.output import bar, note, say, say_json, say_points, say_table
from golde.errors import GoldeError, RunError
from golde.words import facts_in_a_row, label

if TYPE_CHECKING:
    from golde.evaluation.evaluate import Evaluation
    from golde.inference import Run

RELATIONS_SHOWN = 20


class Split(StrEnum):
    valid = "valid"
    test = "test"


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: golde evaluate runs/facts --split test")(evaluate)


def evaluate(
    run: options.Run,
    split: Annotated[Split, typer.Option(help="The facts to rank.")] = Split.test,
    self_filter: Annotated[
        bool,
        typer.Option(
            "--self-filter",
            help="Leave the query's own entity out of the candidates (not the standard protocol).",
        ),
    ] = False,
    hits: Annotated[
        str, typer.Option(metavar="K,K,…", help="Ranks that count as a hit.")
    ] = "1,3,10",
    baselines: Annotated[
        bool, typer.Option("--baselines/--no-baselines", help="Rank two simple rivals as well.")
    ] = True,
    device: options.OnDevice = options.Device.auto,
    json: options.Json = False,
) -> None:
    """Rank held-out facts: figures, their protocol and two baselines."""
    cutoffs = _cutoffs(hits)
    import golde

    opened = golde.load_run(run, device=device.value)
    for message in opened.notes:
        note(f"note: {message}")
    with bar("ranking") as progress:
        found = opened.evaluate(
            split.value,
            self_filter=self_filter,
            hits=cutoffs,
            baselines=baselines,
            store=False,
            progress=progress,
        )
    try:
        opened.store(found)
    except RunError as error:  # somebody else's run may well be read-only
        note(f"note: the figures are shown but not kept: {error}")
    if json:
        say_json(found.as_dict())
    else:
        _print(found, opened)
        say_points([("next", next_command(opened))])


def next_command(run: Run) -> str:
    """What to do with a run whose figures are known: probabilities if they can be fitted, then completion."""
    from golde.inference.calibrate import FEWEST_FACTS

    fits = run.calibration is None and len(run.graph.valid) >= FEWEST_FACTS
    return shlex.join(["golde", "calibrate" if fits else "complete", str(run.folder.path)])


def _cutoffs(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise GoldeError(f"--hits {text!r}: give whole numbers, such as 1,3,10") from None


def _print(found: Evaluation, run: Run) -> None:
    lines = found.protocol.card()
    if run.model.evidence is not None:
        row = facts_in_a_row(run.model.evidence.walks.hops)
        lines = [*lines, f"evidence    of {row} counts beside the embedding"]
    for line in lines:
        say(line, style="dim")
    say()
    sides = [found.metrics[side] for side in ("both", "head", "tail")]
    names = [name for name in sides[0] if name not in ("count", "intervals")]
    say_table(
        ["", "both sides", "heads", "tails"],
        ([label(name), *(_with_interval(name, side) for side in sides)] for name in names),
        "<>>>",
    )
    if found.optimistic and found.pessimistic:
        low, high = found.pessimistic["both"]["mrr"], found.optimistic["both"]["mrr"]
        say(
            f"Ties leave room: MRR is {low:.3f} if all go against the answer, {high:.3f} if none do.\n"
        )
    if found.baselines:
        print_rivals(found)
    print_groups("By category of relation", found.categories)
    print_groups("By relation", found.relations)


def print_rivals(found: Evaluation) -> None:
    """The model beside the two baselines, both sides together."""
    rows = {"this model": found.metrics, **found.baselines}
    names = [name for name in found.metrics["both"] if name not in ("count", "intervals")]
    say_table(
        ["both sides", *map(label, names)],
        (
            [who, *(figure(name, block["both"][name]) for name in names)]
            for who, block in rows.items()
        ),
        "<" + ">" * len(names),
    )


def print_groups(title: str, groups: dict[str, dict[str, Any]]) -> None:
    """Figures of each group of relations, the largest groups first."""
    ordered = sorted(groups.items(), key=lambda item: -item[1]["count"])
    last = [name for name in next(iter(groups.values())) if name.startswith("hits@")][-1]
    say(title, style="bold")
    say_table(
        ["", "facts", "MRR", label(last), "MRR heads", "MRR tails"],
        (
            [
                name,
                f"{block['count'] // 2:,}",
                figure("mrr", block["mrr"]),
                figure(last, block[last]),
                figure("mrr", block["head"]["mrr"]),
                figure("mrr", block["tail"]["mrr"]),
            ]
            for name, block in ordered[:RELATIONS_SHOWN]
        ),
        "<>>>>>",
    )
    if len(ordered) > RELATIONS_SHOWN:
        say(f"… and {len(ordered) - RELATIONS_SHOWN} more; --json has them all.")


def figure(name: str, value: float) -> str:
    """A figure with as many digits as mean something."""
    if name == "mr":
        return f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"
    return f"{value:.3f}"


def _with_interval(name: str, block: dict[str, Any]) -> str:
    value = figure(name, block[name])
    if "intervals" not in block:
        return value
    low, high = (figure(name, edge) for edge in block["intervals"][name])
    return f"{value} ({low}–{high})"
