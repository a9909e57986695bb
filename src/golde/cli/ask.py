"""``golde predict``, ``complete`` and ``score``: asking a run things."""

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
    from golde.inference import Prediction, Query
    from golde.inference import Run as OpenedRun


class Known(StrEnum):
    keep = "keep"
    drop = "drop"
    mark = "mark"


class Links(StrEnum):
    nt = "nt"
    neo4j = "neo4j"


OutFile = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Write to a .tsv or .parquet file.")
]

COMPLETIONS = """\b
Example: golde complete runs/world --top 1000 --out missing.tsv
  golde complete runs/world --out links.nt --base https://example.org/
  golde complete runs/world --out links.csv --format neo4j
"""


def register(app: typer.Typer) -> None:
    example = 'Example: golde predict runs/world --head Latvia --relation "uses currency"'
    app.command(epilog=example)(predict)
    app.command(epilog=COMPLETIONS)(complete)
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
            help="Many queries: lines of head, relation and tail with ? for the one to find.",
        ),
    ] = None,
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
        _check_table(out, candidates)
        hops.answer(run, head, tail, path, beam, top, known.value, candidates, out, device, json)
        return
    single = (head, relation, tail) != (None, None, None)
    if single == (queries is not None):
        raise GoldeError(
            "ask one question with two of --head, --relation and --tail, or many with --queries"
        )
    if queries is not None and (out is None or json):
        raise GoldeError("the answers to --queries go to a file: give --out FILE, and no --json")
    _check_table(out, queries, candidates)
    import golde
    from golde.inference.batch import predict_file, read_names, write_predictions

    opened = _open(run, device)
    names = opened.graph.entities if queries or relation else opened.graph.relations
    pool = None if candidates is None else read_names(candidates, names)
    if queries is not None and out is not None:
        with bar("answering") as progress:
            count = predict_file(
                opened,
                queries,
                out,
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
        write_predictions(out, answers, calibrated=opened.calibration is not None)
    if json:
        say_json({"query": asdict(query), "answers": [asdict(answer) for answer in answers]})
    elif out is not None:
        _say_written(out, len(answers), "answers")
    else:
        _print_answers(query, answers, marked=known is Known.mark)


def complete(
    run: options.Run,
    top: Annotated[int, typer.Option(min=1, help="How many facts.")] = 100,
    per_relation: Annotated[
        bool, typer.Option("--per-relation", help="So many of each relation, not overall.")
    ] = False,
    relation: Annotated[
        list[str] | None, typer.Option(help="Only this relation; may be given several times.")
    ] = None,
    min_probability: Annotated[
        float | None,
        typer.Option(metavar="P", help="Leave out what is less probable (of a calibrated run)."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="A .tsv, .parquet, .nt or Neo4j .csv file."),
    ] = None,
    format: Annotated[
        Links | None,
        typer.Option(help="For a graph store: N-Triples, or a CSV for Neo4j to import."),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="IRI", help="In N-Triples, what names that are no IRIs are put after."
        ),
    ] = None,
    device: options.OnDevice = options.Device.auto,
    json: options.Json = False,
) -> None:
    """Find the most plausible facts that are missing from the graph."""
    links = _links(format, out, base)
    if links is None:
        _check_table(out)
    opened = _open(run, device)
    with bar("searching") as progress:
        found = opened.complete(
            top,
            relations=relation or None,
            per_relation=per_relation,
            min_probability=min_probability,
            progress=progress,
        )
    if links is None or out is None:
        _deliver(opened, found, out, json)
        return
    from golde.inference.links import BASE, write_links

    write_links(out, found, links.value, base or BASE)
    if json:
        say_json([asdict(fact) for fact in found])
    else:
        _say_written(out, len(found), "links")


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
    _check_table(out, file)
    import golde
    from golde.inference.batch import read_triples

    opened = _open(run, device)
    facts = read_triples(file, opened.graph, columns)
    scores = opened.score(facts)
    found = [golde.Prediction(*f, s) for f, s in zip(facts, scores, strict=True)]
    if opened.calibration is not None:
        found = opened.calibration.annotated(found)
    _deliver(opened, found, out, json)


def _open(run: Path, device: options.Device) -> OpenedRun:
    """A run to ask; what it has to say beforehand is noted."""
    import golde

    opened = golde.load_run(run, device=device.value)
    for message in opened.notes:
        note(f"note: {message}")
    return opened


def _deliver(run: OpenedRun, facts: Sequence[Prediction], out: Path | None, json: bool) -> None:
    """Facts with their scores: to a file, as JSON, or as a table."""
    from golde.inference.batch import write_predictions

    if out is not None:
        write_predictions(out, facts, calibrated=run.calibration is not None)
    if json:
        say_json([asdict(fact) for fact in facts])
    elif out is not None:
        _say_written(out, len(facts), "facts")
    else:
        rows = [[*fact.fact, f"{fact.score:.3f}", *_probability(fact)] for fact in facts]
        headings = ["head", "relation", "tail", "score"]
        if run.calibration is None:
            say_table(headings, rows, "<<<>")
        else:
            say_table([*headings, "probability"], rows, "<<<>>")


def _links(format: Links | None, out: Path | None, base: str | None) -> Links | None:
    """How links go to a graph store: as asked for, or as the file is named; None if they are a table."""
    if format is None and out is not None:
        format = {".nt": Links.nt, ".csv": Links.neo4j}.get(out.suffix.lower())
    if base is not None:
        from golde.inference.links import checked_base, joins_names

        if format is not Links.nt:
            raise GoldeError("--base is for N-Triples: give --out FILE.nt as well, or leave it out")
        if not joins_names(checked_base(base)):
            note(f"note: --base {base} is followed by names at once; end it in / or #")
    if format is None:
        return None
    if out is None:
        raise GoldeError(f"--format {format.value} goes to a file: give --out FILE")
    if not out.parent.is_dir():
        raise GoldeError(f"{out}: there is no folder {out.parent}; make it first")
    from golde.runs.folder import refuse_part_of_a_run

    refuse_part_of_a_run(out)
    return format


def _check_table(path: Path | None, *sources: Path | None) -> None:
    """Refuse a file that could or should not be written, before any work is done for it."""
    if path is None:
        return
    if path.suffix.lower() not in (".tsv", ".parquet"):
        raise GoldeError(f"{path}: results are written as .tsv or .parquet; end the name in one")
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
        row = [str(rank), _answer(query, found), f"{found.score:.3f}", *_probability(found)]
        rows.append([*row, found.known or ""] if marked else row)
    say_table(list(columns), rows, "".join(columns.values()))


def _probability(fact: Prediction) -> list[str]:
    """The cell for the probability of a fact, if it has one; never certain, however many digits it takes."""
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
