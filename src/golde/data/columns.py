"""Which columns of a table hold head, relation and tail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from golde.data.neo4j import relationship_columns
from golde.errors import DataError, GoldeError

_ROLES = (
    {"head", "h", "subject", "subj", "sub", "s", "source", "src", "from", "head_id", "entity1"},
    {"relation", "rel", "r", "predicate", "pred", "p", "edge", "type", "label", "relation_id"},
    {"tail", "t", "object", "obj", "o", "target", "tgt", "dst", "to", "tail_id", "entity2"},
)
"""Words that head the columns of head, relation and tail in the wild."""


@dataclass(frozen=True)
class Columns:
    """The columns asked for: by header name, or by position from 0 in a table without header."""

    names: tuple[str, ...] = ()
    positions: tuple[int, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Columns:
        """From ``"subject,predicate,object"`` or, counting from 1, ``"1,3,2"``."""
        parts = tuple(part.strip() for part in text.split(","))
        if len(parts) != 3 or len(set(parts)) != 3 or "" in parts:
            raise GoldeError(
                f"columns are {text!r}; name three different ones for head, relation and tail, "
                "by header ('subject,predicate,object') or by position ('1,3,2')"
            )
        if not all(part.isdecimal() for part in parts):
            return cls(names=parts)
        if "0" in parts:
            raise GoldeError(f"columns are {text!r}; positions count from 1")
        return cls(positions=tuple(int(part) - 1 for part in parts))


@dataclass(frozen=True)
class Layout:
    """How to read the rows of one table."""

    width: int
    order: tuple[int, ...]  # positions of head, relation and tail
    header: bool  # whether the first row names the columns
    sparse: bool = (
        False  # whether rows that leave all three empty hold something else, to be skipped
    )

    @classmethod
    def of(cls, path: Path, line: int, first: Sequence[str], columns: Columns | None) -> Layout:
        """The layout announced by ``columns``, checked against the first row of the table."""
        if columns is None:
            if (found := relationship_columns(path, line, first)) is not None:
                return cls(len(first), found[0], header=True, sparse=found[1])
            return cls._plain(path, line, first)
        shown = ", ".join(first)
        if columns.positions:
            if max(columns.positions) >= len(first):
                raise DataError(
                    path,
                    f"column {max(columns.positions) + 1} asked for, but there are {len(first)}",
                    line=line,
                    text=shown,
                    fix="give --columns positions that exist",
                )
            return cls(len(first), columns.positions, header=False)
        for name in columns.names:
            if list(first).count(name) != 1:
                problem = "is not in" if name not in first else "occurs twice in"
                raise DataError(
                    path,
                    f"column {name!r} {problem} the header row",
                    line=line,
                    text=shown,
                    fix="give --columns names from the header row, or positions such as 1,2,3",
                )
        return cls(len(first), tuple(list(first).index(name) for name in columns.names), True)

    @classmethod
    def _plain(cls, path: Path, line: int, first: Sequence[str]) -> Layout:
        if len(first) != 3:
            raise wrong_width(path, line, first, 3)
        if (order := header_order(first)) is not None:
            named = ",".join(first[i] for i in order)
            raise DataError(
                path,
                "this looks like a header row",
                line=line,
                text=", ".join(first),
                fix=f"announce it with --columns {named}, or if it is a fact give --columns 1,2,3",
            )
        return cls(3, (0, 1, 2), header=False)


def header_order(row: Sequence[str]) -> tuple[int, ...] | None:
    """Where head, relation and tail are if a row holds one well-known word for each of them."""
    words = [word.strip().casefold() for word in row]
    found = [[i for i, word in enumerate(words) if word in role] for role in _ROLES]
    return tuple(i for (i,) in found) if all(len(places) == 1 for places in found) else None


def wrong_width(path: Path, line: int, row: Sequence[str], expected: int) -> DataError:
    if list(row) in ([], [""]):
        return DataError(path, "a blank line between facts", line=line, text="", fix="remove it")
    if len(row) == 1:
        fix = "separate names by a comma in .csv and by a tab in .tsv and .txt files"
    elif line == 1:
        fix = f"pick three with --columns, such as {_example(row)}"
    else:
        fix = "give every line the same columns as the first"
    columns = "1 column" if len(row) == 1 else f"{len(row)} columns"
    problem = f"{columns} where {expected} are expected"
    return DataError(path, problem, line=line, text=", ".join(row), fix=fix)


def _example(row: Sequence[str]) -> str:
    """Three columns by name, if the row may be a header, and by position."""
    named = announced([row[i] for i in header_order(row) or (0, 1, 2)]) if len(row) > 2 else None
    return "1,2,3" if named is None else f"{named} if this is a header row, or 1,2,3 if it is none"


def announced(names: Sequence[str]) -> str | None:
    """Three names as ``--columns`` takes them, if it can."""
    text = ",".join(names)
    try:
        return text if Columns.parse(text).names == tuple(names) else None
    except GoldeError:
        return None
