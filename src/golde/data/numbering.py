"""Turning names into ids while a graph is read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from golde.data.notes import note

Ids = NDArray[np.int64]


class Numbering:
    """Numbers names in order of first appearance."""

    def __init__(self) -> None:
        # A name met for the first time gets the number of names met before it; the look-up and
        # the insertion both run in C, which is what makes reading a million lines quick.
        self._ids: defaultdict[str, int] = defaultdict()
        self._ids.default_factory = self._ids.__len__

    def __len__(self) -> int:
        return len(self._ids)

    def names(self, start: int = 0) -> Iterator[str]:
        """The names from one id on."""
        return islice(self._ids, start, None)

    def number(self, names: Sequence[str]) -> Ids:
        """The ids of names, new ones added."""
        return np.fromiter(map(self._ids.__getitem__, names), dtype=np.int64, count=len(names))


@dataclass
class NameIndex:
    """The entities and relations of a graph met so far."""

    entities: Numbering = field(default_factory=Numbering)
    relations: Numbering = field(default_factory=Numbering)

    def number(self, heads: Sequence[str], relations: Sequence[str], tails: Sequence[str]) -> Ids:
        """Triples of ids for three columns of names, entities numbered row by row."""
        ends: list[str] = [""] * (2 * len(heads))
        ends[0::2], ends[1::2] = heads, tails
        triples = np.empty((len(heads), 3), dtype=np.int64)
        triples[:, 0::2] = self.entities.number(ends).reshape(-1, 2)
        triples[:, 1] = self.relations.number(relations)
        return triples


@dataclass
class Tally:
    """What was overlooked in the lines of a text file, or of a part of it."""

    nodes: int = 0
    marks: int = 0
    returns: int = 0
    blank: int = 0

    def notes(self, name: str) -> list[str]:
        """The same in words."""
        return [
            *note(name, self.nodes, "row", "of nodes skipped"),
            *note(name, self.marks, "byte-order mark", "skipped"),
            *note(name, self.returns, "line", "ended in CR LF"),
            *note(name, self.blank, "blank line", "at the end skipped"),
        ]


@dataclass
class FileFacts:
    """What one file holds, or a part of it."""

    path: Path
    triples: Ids  # (n, 3)
    lines: Ids | None  # (n,) where each fact stands; None where one statement may span several
    notes: list[str]
    tally: Tally = field(default_factory=Tally)
    first_names: list[str] = field(default_factory=list)
    """Of the first fact, if it stands where a header row would."""
    begin: int = 0
    """The byte before which ``lines`` are not counted."""


def no_facts() -> Ids:
    return np.empty((0, 3), dtype=np.int64)
