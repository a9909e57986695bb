"""``golde calibrate`` and ``classify``: probabilities, and how far they can be trusted."""

from __future__ import annotations

import shlex
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from golde.cli import options
from golde.cli.output import bar, say, say_json, say_points, say_table
from golde.errors import GoldeError

if TYPE_CHECKING:
    from golde.evaluation.reliability import Reliability
    from golde.inference.calibration import Calibration, Judged

RELATIONS_SHOWN = 20
LIKELY = "0.9"
"""The probability that the next command is shown with."""


class Method(StrEnum):
    platt = "platt"
    isotonic = "isotonic"


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: golde calibrate runs/world --plot reliability.png")(calibrate)
    app.command(epilog="Example: golde classify runs/world true.tsv false.tsv")(classify)


def calibrate(
    run: options.Run,
    method: Annotated[
        Method, typer.Option(help="A logistic curve, or any curve that never falls.")
    ] = Method.platt,
    prior: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Fit to single claims: how probable one is before its score is seen.",
        ),
    ] = None,
    each: Annotated[
        int,
        typer.Option(
            min=1, max=1000, metavar="N", help="Answers to a question that are looked at."
        ),
    ] = 10,
    negatives: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="False facts to fit single claims against."),
    ] = None,
    columns: options.Columns = None,
    seed: Annotated[
        int, typer.Option(min=0, max=options.LARGEST_SEED, help="Seed of the negatives and halves.")
    ] = 0,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw what was said against what was true (.png, .svg)."),
    ] = None,
    device: options.OnDevice = options.Device.auto,
    json: options.Json = False,
) -> None:
    """Turn the scores of a run into probabilities.

    They are fitted to the best answers to the questions of its validation facts, near misses and all: of
    answers with such a score, so many were facts. With --prior, a probability is that of a single claim that
    was, before its score was seen, a fact with that chance and otherwise the fact with one entity replaced by
    another that train shows in its place. Once a run is calibrated, predict, score and complete show
    probabilities. The order of answers to a query stays as it is.
    """
    _check_plot(plot)
    import golde
    from golde.inference.batch import read_triples
    from golde.report.reliability import draw_reliability, needs_plots
    from golde.runs.atomic import refuse_what_is_no_file

    if plot is not None:
        needs_plots()
        refuse_what_is_no_file(plot)
    opened = golde.load_run(run, device=device.value)
    given = None if negatives is None else read_triples(negatives, opened.graph, columns)
    with bar("scoring") as progress:
        judged = opened.calibrate(
            method=method.value,
            prior=prior,
            each=each,
            negatives=given,
            seed=seed,
            store=False,
            progress=progress,
        )
    fitted = opened.calibrated()
    if plot is not None:  # first: if it cannot be drawn, nothing has changed
        draw_reliability(plot, judged, title=f"{opened.graph.name}: {method.value}")
    opened.store_calibration(judged)
    if json:
        say_json(fitted.as_dict() | {"judged": judged.as_dict()})
        return
    _print(fitted, judged, opened.folder.calibration_file, plot)
    say_points([("next", shlex.join(["golde", "complete", str(run), "--min-probability", LIKELY]))])


def classify(
    run: options.Run,
    positives: Annotated[Path, typer.Argument(metavar="POSITIVES", help="Facts that are true.")],
    negatives: Annotated[Path, typer.Argument(metavar="NEGATIVES", help="Facts that are false.")],
    columns: options.Columns = None,
    device: options.OnDevice = options.Device.auto,
    json: options.Json = False,
) -> None:
    """Tell true facts from false ones, by a run that is calibrated.

    Once by whether the probability is at least one half, and once by a threshold on the score of each
    relation, the one that parts validation facts best from negatives. Few answers are facts: for claims
    half of which are true, calibrate with --prior 0.5.
    """
    import golde
    from golde.inference.batch import read_triples

    opened = golde.load_run(run, device=device.value)
    opened.calibrated()
    true, false = (read_triples(file, opened.graph, columns) for file in (positives, negatives))
    found = opened.classify(true, false)
    if json:
        counts = {"positives": len(true), "negatives": len(false)}
        say_json(counts | {name: one.as_dict() for name, one in found.items()})
        return
    say(f"{len(true):,} true and {len(false):,} false facts", style="bold")
    names = {"probability": "probability of ½ or more", "threshold": "threshold of the relation"}
    say_table(
        ["taken for true by", "accuracy", "precision", "recall", "F1"],
        (
            [names[name], *(f"{v:.3f}" for v in one.as_dict().values())]
            for name, one in found.items()
        ),
        "<>>>>",
    )


def _check_plot(path: Path | None) -> None:
    """Refuse a picture that could not be written, before anything is fitted."""
    if path is None:
        return
    if path.suffix not in (".png", ".svg"):
        raise GoldeError(f"{path}: pictures are written as .png or .svg; end the name in one")
    if not path.parent.is_dir():
        raise GoldeError(f"{path}: there is no folder {path.parent}; make it first")


def _print(fitted: Calibration, judged: Judged, file: Path, plot: Path | None) -> None:
    from golde.evaluation.calibration import FEWEST_FACTS
    from golde.evaluation.reliability import BINS

    own, all_ = len(fitted.forward.own), len(fitted.relations)
    fewest = FEWEST_FACTS[fitted.method]
    prior = "none: facts are as common as among those answers"
    if fitted.prior is not None:
        prior = f"{fitted.prior:g} that a claim is a fact, before its score is seen"
    points = [
        ("facts", f"{sum(fitted.facts.values()):,} of valid"),
        ("negatives", _negatives(fitted.negatives)),
        ("fit", f"{fitted.method}; {own} of {all_} relations have {fewest} facts and their own,"),
        ("", "the others the overall one"),
        ("prior", prior),
        ("written", str(file)),
    ]
    say_points([*points, *([("", str(plot))] if plot is not None else [])])
    say("\nJudged on the half of the claims that was not fitted, both ways", style="bold")
    say_table(
        ["", "ECE", "Brier", "log loss"],
        [
            ["before: σ(score + margin)", *_figures(judged.before)],
            ["after", *_figures(judged.after)],
        ],
        "<>>>",
    )
    say(f"ECE over {BINS} bins of equal width; all three are better if lower.\n", style="dim")
    _print_relations(fitted, judged)


def _print_relations(fitted: Calibration, judged: Judged) -> None:
    ids = fitted.relations
    names = sorted(judged.relations, key=lambda name: -fitted.facts[name])
    say("By relation", style="bold")
    say_table(
        ["", "facts", "fit", "Brier before", "after", "ECE before", "after"],
        (
            [
                name,
                f"{fitted.facts[name]:,}",
                "own" if ids.id(name) in fitted.forward.own else "overall",
                *(f"{one.brier:.3f}" for one in judged.relations[name]),
                *(f"{one.ece:.3f}" for one in judged.relations[name]),
            ]
            for name in names[:RELATIONS_SHOWN]
        ),
        "<><>>>>",
    )
    if len(names) > RELATIONS_SHOWN:
        say(f"… and {len(names) - RELATIONS_SHOWN} more; --json has them all.")


def _figures(found: Reliability) -> list[str]:
    return [f"{value:.3f}" for value in (found.ece, found.brier, found.log_loss)]


def _negatives(made: Any) -> str:
    count = f"{made['count']:,}"
    if made["kind"] == "answers":
        misses = f"{count} near miss{'es' * (made['count'] != 1)}"
        return f"{misses} among the best {made['each']} answers to their questions"
    if made["kind"] == "typed":
        return f"{count} typed, up to {made['each']} for either side of a fact"
    left = made["known_left_out"]
    return f"{count} given" + (f", {left:,} more left out that are facts" if left else "")
