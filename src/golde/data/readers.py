"""Reading one file of facts, whatever its format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from golde.data.columns import Columns
from golde.data.files import Report, suffix_of
from golde.data.numbering import FileFacts, NameIndex
from golde.data.rdf import line_of, read_rdf
from golde.data.tables import read_parquet
from golde.data.text import read_csv, read_tsv
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
    if path.is_dir():
        raise DataError(path, "is a folder where a file should be", fix="put the file in its place")
    reader = READERS.get(suffix_of(path))
    if reader is None:
        raise DataError(path, "unknown kind of file", fix=f"use one of {', '.join(READERS)}")
    known = len(index.entities), len(index.relations)
    facts = reader(path, columns, index, report)
    if not len(facts.triples):
        raise DataError(path, "holds no facts", line=1, fix="one fact a line: head, relation, tail")
    _check_names(facts, index, *known)
    return facts


def fact_error(facts: FileFacts, row: int, index: NameIndex, problem: str, fix: str) -> DataError:
    """An error about one fact of a file, with the line it stands on."""
    entities, relations = list(index.entities.names()), list(index.relations.names())
    head, relation, tail = facts.triples[row]
    text = ", ".join((entities[head], relations[relation], entities[tail]))
    where = facts.lines
    line = line_of(facts.path, relations[relation]) if where is None else int(where[row])
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
