"""``golde predict`` and ``score``: asking a run things."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from golde.cli import hops, options
from golde.cli.output import bar, note, say, say_json, say_points, say_table
from golde.errors import GoldeError

if TYPE_CHECKING:
    from golde.inference import PathAnswer, Prediction, Query
    from golde.inference import Run as OpenedRun


class Known(StrEnum):
    keep = "keep"
    drop = "drop"
    mark = "mark"


OutFile = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="Write to a .tsv, .csv or .parquet file."),
]

QUESTIONS = """\b
Example: golde predict runs/world --head Latvia --relation "uses currency"
  golde predict runs/world --queries questions.csv --out answers.csv
"""


def register(app: typer.Typer) -> None:
    app.command(epilog=QUESTIONS)(predict)
    app.command(epilog="Example: golde score runs/world claims.tsv")(score)


def predict(
    run: options.Run,
    head: Annotated[str | None, typer.Option(help="The entity a fact is about.")] = None,
    relation: Annotated[str | None, typer.Option(help="The relation.")] = None,
    tail: Annotated[str | None, typer.Option(help="The entity at the other end.")] = None,
    path: hops.Path = None,
    beam: hops.Beam = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Many queries, as .tsv, .csv or .parquet: head, relation and tail, ? for the unknown.",
        ),
    ] = None,
    columns: options.Columns = None,
    top: Annotated[int, typer.Option(min=1, help="Answers a query.")] = 10,
    known: Annotated[
        Known, typer.Option(help="What to do with answers that are in the graph already.")
    ] = Known.mark,
    candidates: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The only answers to consider, one a line.")
    ] = None,
    out: OutFile = None,
    device: options.OnDevice = options.Device.auto,
    json: options.Json = False,
) -> None:
    """Answer queries: facts with one of the three names left out."""
    if path is not None or beam is not None:
        if path is not None and (relation is not None or queries is not None):
            raise GoldeError("--path stands in place of --relation, and --queries have none")
        check_table(out, candidates)
        hops.answer(run, head, tail, path, beam, top, known.value, candidates, out, device, json)
        return
    single = (head, relation, tail) != (None, None, None)
    if single == (queries is not None):
        raise GoldeError(
            "ask one question with two of --head, --relation and --tail, or many with --queries"
        )
    if columns is not None and queries is None:
        raise GoldeError("--columns are those of a file of queries: give --queries FILE too")
    if queries is not None and (out is None or json):
        raise GoldeError("the answers to --queries go to a file: give --out FILE, and no --json")
    check_table(out, queries, candidates)
    import golde
    from golde.inference.batch import predict_file, read_names, write_predictions

    opened = open_run(run, device)
    explain_probabilities(opened)
    names = opened.graph.entities if queries or relation else opened.graph.relations
    pool = None if candidates is None else read_names(candidates, names)
    if queries is not None and out is not None:
        with bar("answering") as progress:
            count = predict_file(
                opened,
                queries,
                out,
                columns=columns,
                top=top,
                known=known.value,
                candidates=pool,
                progress=progress,
            )
        _say_written(out, count, "answers")
        return
    query = golde.Query(head, relation, tail)
    answers = opened.predict(head, relation, tail, top=top, known=known.value, candidates=pool)
    if out is not None:
        write_predictions(out, answers, known=True, calibrated=opened.calibration is not None)
    if json:
        say_json({"query": asdict(query), "answers": [asdict(answer) for answer in answers]})
    elif out is not None:
        _say_written(out, len(answers), "answers")
    else:
        _print_answers(query, answers, marked=known is Known.mark)


def score(
    run: options.Run,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Facts, as for training.")],
    columns: options.Columns = None,
    out: OutFile = None,
    device: options.OnDevice = options.Device.auto,
    json: options.Json = False,
) -> None:
    """Score given facts: the higher, the more plausible.

    Only the order of scores has a meaning; 'golde calibrate' turns them into probabilities.
    """
    check_table(out, file)
    import golde
    from golde.inference.batch import read_triples

    opened = open_run(run, device)
    facts = read_triples(file, opened.graph, columns)
    scores = opened.score(facts)
    found = [golde.Prediction(*f, s) for f, s in zip(facts, scores, strict=True)]
    calibrated = opened.calibration is not None
    if opened.calibration is not None:
        found = opened.calibration.annotated(found)
    if out is not None:
        write_facts(out, found, calibrated)
    if json:
        say_json([asdict(fact) for fact in found])
    elif out is not None:
        _say_written(out, len(found), "facts")
    else:
        say_facts(found, calibrated)


def open_run(run: Path, device: options.Device) -> OpenedRun:
    """A run to ask; what it has to say beforehand is noted."""
    import golde

    opened = golde.load_run(run, device=device.value)
    for message in opened.notes:
        note(f"note: {message}")
    return opened


def explain_probabilities(run: OpenedRun) -> None:
    """A note on what the probabilities of a calibrated run mean, for who sees the best of many."""
    if run.calibration is None:
        return
    if run.calibration.prior is not None:
        explain_claims(run.calibration.prior)
        return
    note(
        "note: a probability is that of an answer: of answers with its score to questions about "
        "validation facts, so many were facts"
    )


def explain_claims(prior: float) -> None:
    """A note on what the probabilities of single claims mean."""
    note(
        f"note: a probability is that of one claim, true with chance {prior:g} before "
        "its score is seen, not the share of true facts in a list; 'golde calibrate --prior' sets it"
    )


def write_facts(path: Path, facts: Sequence[Prediction], calibrated: bool) -> None:
    """Facts with their scores, in a file."""
    from golde.inference.batch import write_predictions

    write_predictions(path, facts, calibrated=calibrated)


def say_facts(facts: Sequence[Prediction], calibrated: bool) -> None:
    """Facts with their scores, as a table."""
    rows = [[*fact.fact, f"{fact.score:.3f}", *probability_cell(fact)] for fact in facts]
    headings = ["head", "relation", "tail", "score"]
    if calibrated:
        say_table([*headings, "probability"], rows, "<<<>>")
    else:
        say_table(headings, rows, "<<<>")


def check_table(path: Path | None, *sources: Path | None, more: tuple[str, ...] = ()) -> None:
    """Refuse a file that could or should not be written, before any work is done for it.

    ``more`` are endings beside those of tables that would have been taken.
    """
    if path is None:
        return
    from golde.inference.tables import TABLES, one_of

    if path.suffix.lower() not in TABLES:
        endings = one_of((*TABLES, *more))
        raise GoldeError(f"{path}: results are written as {endings}; end the name in one")
    if not path.parent.is_dir():
        raise GoldeError(f"{path}: there is no folder {path.parent}; make it first")
    if any(source is not None and source.resolve() == path.resolve() for source in sources):
        raise GoldeError(f"{path}: is read and would be lost; choose another --out")


def _print_answers(query: Query, answers: Sequence[Prediction], marked: bool) -> None:
    say(str(query), style="bold")
    calibrated = any(found.probability is not None for found in answers)
    columns = {"": ">", "answer": "<", "score": ">"}
    columns |= {"probability": ">"} if calibrated else {}
    columns |= {"known from": "<"} if marked else {}
    rows = []
    for rank, found in enumerate(answers, 1):
        row = [str(rank), _answer(query, found), f"{found.score:.3f}", *probability_cell(found)]
        rows.append([*row, found.known or ""] if marked else row)
    say_table(list(columns), rows, "".join(columns.values()))


def probability_cell(fact: Prediction | PathAnswer) -> list[str]:
    """The cell for the probability of an answer, if it has one; never certain, whatever its digits."""
    p = fact.probability
    if p is None:
        return []
    return ["> 0.999" if p > 0.999 else "< 0.001" if p < 0.001 else f"{p:.3f}"]


def _answer(query: Query, found: Prediction) -> str:
    """The name that a prediction puts in the place of the unknown."""
    if query.relation is None:
        return found.relation
    return found.head if query.head is None else found.tail


def _say_written(path: Path, count: int, what: str) -> None:
    say_points([("written", f"{path} ({count:,} {what})")])
