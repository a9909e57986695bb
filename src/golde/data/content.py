"""What a split graph holds, told apart from how its files are written.

Works on rows, each one fact as the bytes ``head<TAB>relation<TAB>tail``, and imports no torch: a
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
    """SHA-256 of the distinct facts in sorted order: row order, repeats and format do not matter.

    For a tab-separated file it is what ``LC_ALL=C sort -u FILE | sha256sum`` prints.
    """
    digest = hashlib.sha256()
    for row in sorted(set(rows)):
        digest.update(row)
        digest.update(b"\n")
    return digest.hexdigest()


class RowError(ValueError):
    """A line that is not three names. Which file it is in, the caller knows."""

    def __init__(self, line: int, problem: str, text: str | None = None) -> None:
        self.line, self.problem, self.text = line, problem, text
        super().__init__(f"line {line}: {problem}" + ("" if text is None else f": {text[:80]!r}"))


def parse_rows(text: bytes, columns: str = "hrt") -> Rows:
    """The rows of tab-separated text whose columns stand in the given order."""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RowError(text.count(b"\n", 0, error.start) + 1, "not UTF-8 text") from None
    order = [columns.index(letter) for letter in "hrt"]
    rows: Rows = []
    # Only a newline ends a row: names may hold characters that splitlines would break at.
    for number, line in enumerate(text.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        line = line.removesuffix(b"\r")
        if not line:
            continue
        fields = line.split(b"\t")
        if len(fields) != 3 or not all(fields):
            raise RowError(number, "not three tab-separated names", line.decode())
        rows.append(b"\t".join([fields[column] for column in order]))
    return rows
