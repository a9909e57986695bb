"""Reading one file of facts, whatever its format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from golde.data.columns import Columns
from golde.data.files import Report, suffix_of
from golde.data.numbering import FileFacts, NameIndex
from golde.data.parts import Part
from golde.data.rdf import line_of, read_rdf
from golde.data.tables import read_parquet
from golde.data.text import lines_before, lone_first_row, read_csv, read_tsv, read_tsv_part
from golde.errors import DataError

Reader = Callable[[Path, Columns | None, NameIndex, Report], FileFacts]

READERS: dict[str, Reader] = {
    ".tsv": read_tsv,
    ".txt": read_tsv,
    ".csv": read_csv,
    ".parquet": read_parquet,
    ".nt": read_rdf,
    ".ttl": read_rdf,
}
"""The formats, by the suffix that remains once .gz, .xz or .zst is taken away."""

_BREAKS = frozenset("\t\n\r")


def read_facts(path: Path, columns: Columns | None, index: NameIndex, report: Report) -> FileFacts:
    """The facts of one file, their names numbered by ``index``."""
    reader = _reader(path)
    known = len(index.entities), len(index.relations)
    facts = reader(path, columns, index, report)
    if not len(facts.triples):
        raise no_facts_in(path)
    _check_names(facts, index, *known)
    facts.notes += facts.tally.notes(path.name)
    facts.notes += lone_first_row(facts, *known)
    return facts


def read_part(part: Part, columns: Columns | None, index: NameIndex, report: Report) -> FileFacts:
    """The facts of a part of a file, if there are any.

    Notes that depend on the other parts are left to who has all of them.
    """
    path, known = part.path, (len(index.entities), len(index.relations))
    if part.rows is None:
        facts = _reader(path)(path, columns, index, report)
    elif suffix_of(path) == ".parquet":
        facts = read_parquet(path, columns, index, report, part.rows)
    else:
        facts = read_tsv_part(path, columns, index, report, part.rows)
    _check_names(facts, index, *known)
    return facts


def _reader(path: Path) -> Reader:
    if path.is_dir():
        raise DataError(path, "is a folder where a file should be", fix="put the file in its place")
    reader = READERS.get(suffix_of(path))
    if reader is None:
        raise DataError(path, "unknown kind of file", fix=f"use one of {', '.join(READERS)}")
    return reader


def no_facts_in(path: Path) -> DataError:
    return DataError(path, "holds no facts", line=1, fix="one fact a line: head, relation, tail")


def fact_error(facts: FileFacts, row: int, index: NameIndex, problem: str, fix: str) -> DataError:
    """An error about one fact of a file, with the line it stands on."""
    entities, relations = list(index.entities.names()), list(index.relations.names())
    head, relation, tail = facts.triples[row]
    text = ", ".join((entities[head], relations[relation], entities[tail]))
    where = facts.lines
    if where is None:
        line = line_of(facts.path, relations[relation])
    else:
        line = int(where[row]) + (lines_before(facts.path, facts.begin) if facts.begin else 0)
    return DataError(facts.path, problem, line=line, text=text, fix=fix)


def _check_names(facts: FileFacts, index: NameIndex, entities: int, relations: int) -> None:
    """Raise on a new name that is blank or could not be written on one line of a table."""
    for kind, numbering, start, columns in (
        ("entity", index.entities, entities, [0, 2]),
        ("relation", index.relations, relations, [1]),
    ):
        for id, name in enumerate(numbering.names(start), start):
            blank = not name.strip()
            if blank or not _BREAKS.isdisjoint(name):
                row = int((facts.triples[:, columns] == id).any(axis=1).argmax())
                problem = f"{kind} name " + ("is empty" if blank else "holds a tab or line break")
                fix = "give every head, relation and tail a name on one line"
                raise fact_error(facts, row, index, problem, fix)
