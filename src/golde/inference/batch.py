"""Questions from a file, answers to a file."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from golde.data.columns import Columns, Layout, header_order
from golde.data.files import opened, read_error, suffix_of
from golde.data.graph import KnowledgeGraph
from golde.data.numbering import NameIndex
from golde.data.readers import fact_error, read_facts
from golde.data.tables import chosen_columns, not_three_columns
from golde.data.vocabulary import Vocabulary
from golde.errors import DataError, GoldeError
from golde.inference.predict import Predictor, query_ids
from golde.inference.queries import Prediction, Query
from golde.inference.run import Run
from golde.inference.tables import open_table, pyarrow
from golde.progress import Progress, silent

FACT: dict[str, type] = {"head": str, "relation": str, "tail": str, "score": float}
"""Columns of a table of facts. Answers have ``known`` as well, and a calibrated run ``probability``."""

UNKNOWN = ("", "?")
"""What stands for the unknown in a file of queries."""

_ROWS = 1 << 14  # answers written at a time


def predict_file(
    run: Run,
    source: str | Path,
    target: str | Path,
    *,
    columns: str | None = None,
    top: int = 10,
    known: str = "mark",
    candidates: Sequence[str] | None = None,
    progress: Progress = silent,
) -> int:
    """Answer the queries of a file into a table (``.tsv``, ``.csv`` or ``.parquet``); how many rows it got.

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
    queries = read_queries(source, run.graph, columns)
    written = 0
    rows: list[tuple[object, ...]] = []
    calibrated = run.calibration is not None
    headings = {"query": int, "rank": int} | _columns(True, calibrated)
    with open_table(Path(target), headings) as write:
        for number, answers in enumerate(predictor.stream(queries), 1):
            rows += [
                (number, rank, *_cells(answer, True, calibrated))
                for rank, answer in enumerate(answers, 1)
            ]
            if len(rows) >= _ROWS or number == len(queries):
                write(rows)
                written += len(rows)
                rows.clear()
            progress(number, len(queries))
    return written


def write_predictions(
    path: str | Path,
    predictions: Sequence[Prediction],
    *,
    known: bool = False,
    calibrated: bool = False,
) -> None:
    """Write predictions as a table, TSV, CSV or Parquet by the suffix of the path.

    The columns are the same however many there are: with ``known`` where facts are known from, and with
    ``calibrated`` their probabilities.
    """
    with open_table(Path(path), _columns(known, calibrated)) as write:
        write([_cells(prediction, known, calibrated) for prediction in predictions])


def read_queries(
    path: str | Path, graph: KnowledgeGraph, columns: str | None = None
) -> list[Query]:
    """Queries from a file with head, relation and tail in each row, one of them empty, null or ``?``.

    Commas separate the cells of a ``.csv`` file, compressed or not, a ``.parquet`` file has columns, and tabs
    separate the cells of any other. A row of well-known column names at the top is recognised, and may give
    another order; ``columns`` names others.
    """
    path = Path(path)
    wanted = None if columns is None else Columns.parse(columns)
    read = _parquet_cells if suffix_of(path) == ".parquet" else _text_cells
    queries: list[Query] = []
    for number, cells in read(path, wanted):
        names = [None if cell.strip() in UNKNOWN else cell for cell in cells]
        try:
            query = Query(*names)
            query_ids(graph, query)
        except GoldeError as error:
            first = wanted is None and read is _text_cells and not queries
            header = first and None not in names
            fix = "of a header row name the columns with --columns" if header else None
            raise DataError(path, str(error), line=number, fix=fix) from None
        queries.append(query)
    if not queries:
        raise DataError(path, "holds no queries", line=1, fix="one a line: head, relation, tail")
    return queries


def _text_cells(path: Path, wanted: Columns | None) -> Iterator[tuple[int, list[str]]]:
    """Number, head, relation and tail of every row of a text file that holds something."""
    layout: Layout | None = None
    for number, cells in _rows(path):
        if layout is None:
            layout = _layout(path, number, cells, wanted)
            if layout.header:
                continue
        if len(cells) != layout.width:
            raise _not_a_query(path, number, cells, layout.width)
        yield number, [cells[i] for i in layout.order]


def _parquet_cells(path: Path, wanted: Columns | None) -> Iterator[tuple[int, list[str]]]:
    """Number, head, relation and tail of every row of a Parquet file; ids kept as numbers as their digits."""
    arrow = pyarrow(f"reading {path.name}")
    try:
        with arrow.parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            layout = _layout(path, 0, schema.names, wanted)
            chosen = chosen_columns(path, schema, layout.order)
            before = 0
            for batch in file.iter_batches(_ROWS, columns=chosen):
                columns = [batch.column(name).cast("string").to_pylist() for name in chosen]
                for number, cells in enumerate(zip(*columns, strict=True), before + 1):
                    yield number, [cell or "" for cell in cells]
                before += batch.num_rows
    except OSError as error:
        raise read_error(path, error) from error
    except arrow.ArrowException as error:
        problem = f"is not readable as Parquet ({error})"
        raise DataError(path, problem, fix="copy or write it again") from error


def _layout(path: Path, line: int, first: list[str], columns: Columns | None) -> Layout:
    """Where head, relation and tail stand, by what was asked for or by the first row."""
    if columns is not None:
        return Layout.of(path, line, first, columns)
    if len(first) != 3:
        raise _not_a_query(path, line, first, 3)
    order = header_order(first)
    return Layout(3, order or (0, 1, 2), header=order is not None)


def _not_a_query(path: Path, line: int, cells: list[str], width: int) -> DataError:
    if suffix_of(path) == ".parquet":
        return not_three_columns(path, cells)
    sign, word = (", ", "commas") if suffix_of(path) == ".csv" else ("\t", "tabs")
    fix = f"write head, relation and tail with {word} between them, ? for the unknown"
    if len(cells) > 3 and width == 3:
        fix += ", or pick three with --columns"
    return DataError(
        path,
        f"{len(cells)} column{'s' * (len(cells) != 1)} where {width} are expected",
        line=line,
        text=sign.join(cells),
        fix=fix,
    )


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


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of every row that holds something."""
    if suffix_of(path) != ".csv":
        for number, line in _lines(path):
            yield number, line.split("\t")
        return
    texts = (f"{text}\n" for _, text in _lines(path, blank=True))
    reader, number = csv.reader(texts, strict=True), 1
    try:
        for cells in reader:
            if cells:
                yield number, cells
            number = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            path,
            f"the quoting cannot be understood ({error})",
            line=number,
            fix='close every quoted name, and write a quotation mark inside one as ""',
        ) from error


def _lines(path: Path, blank: bool = False) -> Iterator[tuple[int, str]]:
    """Number and text of every line that holds something, or of ``blank`` ones too.

    A byte-order mark and CR LF do no harm.
    """
    with opened(path) as stream:
        for number, line in enumerate(stream, 1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                shown = line.decode(errors="backslashreplace").rstrip("\r\n")
                problem = f"byte 0x{line[error.start]:02x} is not UTF-8"
                fix = "save the file as UTF-8"
                raise DataError(path, problem, line=number, text=shown, fix=fix) from None
            if text or blank:
                yield number, text


def _columns(known: bool, calibrated: bool) -> dict[str, type]:
    more: dict[str, type] = {"known": str} if known else {}
    return FACT | more | ({"probability": float} if calibrated else {})


def _cells(prediction: Prediction, known: bool, calibrated: bool) -> tuple[object, ...]:
    cells = (*prediction.fact, prediction.score, *((prediction.known,) if known else ()))
    return (*cells, prediction.probability) if calibrated else cells
