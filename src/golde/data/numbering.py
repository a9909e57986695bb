"""Turning names into ids while a graph is read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

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
class FileFacts:
    """What one file holds."""

    path: Path
    triples: Ids  # (n, 3)
    lines: Ids | None  # (n,) where each fact stands; None where one statement may span several
    notes: list[str]


def no_facts() -> Ids:
    return np.empty((0, 3), dtype=np.int64)
