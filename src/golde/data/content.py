"""What a split graph holds, told apart from how its files are written.

Works on rows, each one fact as the bytes ``head<TAB>relation<TAB>tail``, and needs no torch: a
catalogue entry is checked and listed without loading a graph.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

SPLITS = ("train", "valid", "test")

Rows = list[bytes]
"""Facts as ``head<TAB>relation<TAB>tail`` in UTF-8, without the line end."""


@dataclass(frozen=True)
class Counts:
    """The sizes a benchmark is published with; rows count as often as they occur."""

    entities: int
    relations: int
    train: int
    valid: int
    test: int


@dataclass(frozen=True)
class Content:
    """Sizes, and a digest per split that names exactly these facts."""

    counts: Counts
    digests: Mapping[str, str]


def content_of(splits: Mapping[str, Rows]) -> Content:
    """The content of train, valid and test rows."""
    entities: set[bytes] = set()
    relations: set[bytes] = set()
    for rows in splits.values():
        for row in rows:
            head, relation, tail = row.split(b"\t")
            entities.update((head, tail))
            relations.add(relation)
    sizes = {split: len(splits[split]) for split in SPLITS}
    return Content(
        Counts(len(entities), len(relations), **sizes),
        {split: split_digest(splits[split]) for split in SPLITS},
    )


def split_digest(rows: Iterable[bytes]) -> str:
    """SHA-256 of the distinct facts in sorted order: row order, repeats and format do not matter."""
    digest = hashlib.sha256()
    for row in sorted(set(rows)):
        digest.update(row)
        digest.update(b"\n")
    return digest.hexdigest()


class RowError(ValueError):
    """Text that is not rows of three names; says which line, not which file."""


def parse_rows(text: bytes, columns: str = "hrt") -> Rows:
    """The rows of tab-separated text whose columns stand in the given order."""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise RowError(f"line {line} is not UTF-8 text") from None
    head, relation, tail = (columns.index(letter) for letter in "hrt")
    rows: Rows = []
    # Only a newline ends a row: names hold characters that str.splitlines would break at.
    for number, line in enumerate(text.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        line = line.removesuffix(b"\r")
        if not line:
            continue
        fields = line.split(b"\t")
        if len(fields) != 3 or not all(fields):
            shown = line[:80].decode("utf-8", "replace")
            raise RowError(f"line {number} is not three tab-separated names: {shown!r}")
        rows.append(b"\t".join((fields[head], fields[relation], fields[tail])))
    return rows
