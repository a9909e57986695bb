"""Questions from a file, answers to a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from golde.data.columns import Columns, header_order
from golde.data.files import opened
from golde.data.graph import KnowledgeGraph
from golde.data.numbering import NameIndex
from golde.data.readers import fact_error, read_facts
from golde.data.vocabulary import Vocabulary
from golde.errors import DataError, GoldeError
from golde.inference.predict import Predictor, query_ids
from golde.inference.queries import Prediction, Query
from golde.inference.run import Run
from golde.inference.tables import open_table
from golde.progress import Progress, silent

FACT: dict[str, type] = {"head": str, "relation": str, "tail": str, "score": float, "known": str}
"""Columns of a table of predictions; ``probability`` is one more where the run is calibrated."""

UNKNOWN = ("", "?")
"""What stands for the unknown in a file of queries."""

_ROWS = 1 << 14  # answers written at a time


def predict_file(
    run: Run,
    source: str | Path,
    target: str | Path,
    *,
    top: int = 10,
    known: str = "mark",
    candidates: Sequence[str] | None = None,
    progress: Progress = silent,
) -> int:
    """Answer the queries of a file into a table (``.tsv`` or ``.parquet``); how many rows it got.

    Answers are written as they are found: memory holds the queries and a block of answers. A row
    tells which query it answers and at which rank, both counted from 1.
    """
    predictor = Predictor(
        run.model,
        run.graph,
        top=top,
        known=known,
        candidates=candidates,
        calibration=run.calibration,
    )
    queries = read_queries(source, run.graph)
    written = 0
    rows: list[tuple[object, ...]] = []
    calibrated = run.calibration is not None
    columns = {"query": int, "rank": int} | _columns(calibrated)
    with open_table(Path(target), columns) as write:
        for number, answers in enumerate(predictor.stream(queries), 1):
            rows += [(number, rank, *_cells(a, calibrated)) for rank, a in enumerate(answers, 1)]
            if len(rows) >= _ROWS or number == len(queries):
                write(rows)
                written += len(rows)
                rows.clear()
            progress(number, len(queries))
    return written


def write_predictions(
    path: str | Path, predictions: Sequence[Prediction], *, calibrated: bool = False
) -> None:
    """Write predictions as a table, TSV or Parquet by the suffix of the path."""
    with open_table(Path(path), _columns(calibrated)) as write:
        write([_cells(prediction, calibrated) for prediction in predictions])


def read_queries(path: str | Path, graph: KnowledgeGraph) -> list[Query]:
    """Queries from a file with head, relation and tail between tabs, one of them empty or ``?``.

    A row of column names at the top is recognised, and may give another order.
    """
    path = Path(path)
    order: tuple[int, ...] = (0, 1, 2)
    queries: list[Query] = []
    for number, line in _lines(path):
        cells = line.split("\t")
        if len(cells) != 3:
            raise DataError(
                path,
                f"{len(cells)} column{'s' * (len(cells) != 1)} where 3 are expected",
                line=number,
                text=line,
                fix="write head, relation and tail with tabs between them, ? for the unknown",
            )
        if number == 1 and (named := header_order(cells)) is not None:
            order = named
            continue
        names = [None if cells[i].strip() in UNKNOWN else cells[i] for i in order]
        try:
            query = Query(*names)
            query_ids(graph, query)
        except GoldeError as error:
            raise DataError(path, str(error), line=number) from None
        queries.append(query)
    if not queries:
        raise DataError(path, "holds no queries", line=1, fix="one a line: head, relation, tail")
    return queries


def read_triples(
    path: str | Path, graph: KnowledgeGraph, columns: str | None = None
) -> list[tuple[str, str, str]]:
    """Facts to score, from any file that ``load_graph`` reads; their names must be in the graph."""
    index = NameIndex()
    wanted = None if columns is None else Columns.parse(columns)
    facts = read_facts(Path(path), wanted, index, lambda done: None)
    entities, relations = list(index.entities.names()), list(index.relations.names())
    named = [(entities[h], relations[r], entities[t]) for h, r, t in facts.triples.tolist()]
    for row, (head, relation, tail) in enumerate(named):
        try:
            graph.entities.id(head), graph.relations.id(relation), graph.entities.id(tail)
        except GoldeError as error:
            fix = "use the names of the graph that the run was trained on"
            raise fact_error(facts, row, index, str(error), fix) from None
    return named


def read_names(path: str | Path, names: Vocabulary) -> list[str]:
    """Names to choose answers from, one a line."""
    path, found = Path(path), []
    for number, line in _lines(path):
        try:
            names.id(line)
        except GoldeError as error:
            raise DataError(path, str(error), line=number, fix="one name a line") from None
        found.append(line)
    if not found:
        raise DataError(path, "holds no names", line=1, fix="one name a line")
    return found


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number and text of every line that holds something; a byte-order mark and CR LF do no harm."""
    with opened(path) as stream:
        for number, line in enumerate(stream, 1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                shown = line.decode(errors="backslashreplace").rstrip("\r\n")
                problem = f"byte 0x{line[error.start]:02x} is not UTF-8"
                fix = "save the file as UTF-8"
                raise DataError(path, problem, line=number, text=shown, fix=fix) from None
            if text:
                yield number, text


def _columns(calibrated: bool) -> dict[str, type]:
    return FACT | {"probability": float} if calibrated else FACT


def _cells(prediction: Prediction, calibrated: bool) -> tuple[object, ...]:
    cells = (*prediction.fact, prediction.score, prediction.known)
    return (*cells, prediction.probability) if calibrated else cells
