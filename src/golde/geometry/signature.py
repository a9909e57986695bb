"""Signatures such as ``P10x36 Q13x36``: letter, dimension as in the paper, count."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from golde.errors import ConfigError
from golde.geometry.elliptic import Elliptic
from golde.geometry.euclidean import Euclidean
from golde.geometry.hyperbolic import Hyperbolic

GEOMETRIES: dict[str, type[Euclidean | Elliptic | Hyperbolic]] = {
    "E": Euclidean,
    "P": Elliptic,
    "Q": Hyperbolic,
}
"""The letters of signatures. A new geometry is one file and one line here."""

_TERM = re.compile(r"([A-Za-z])(\d{1,18})(?:x(\d{1,18}))?")


@dataclass(frozen=True)
class Term:
    """``count`` equal components of one geometry."""

    letter: str
    dimension: int
    count: int

    @property
    def numbers(self) -> int:
        """How many numbers one component stores per entity (a hyperboloid needs one fewer)."""
        return self.dimension - GEOMETRIES[self.letter].unstored

    def __str__(self) -> str:
        return f"{self.letter}{self.dimension}x{self.count}"


@dataclass(frozen=True)
class Signature:
    """A product of component groups, in the order they are stored in an entity's row."""

    terms: tuple[Term, ...]

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Read ``P10x36 Q13x36``; ``E400`` alone means one component."""
        terms = []
        for word in text.replace("*", " ").split():
            match = _TERM.fullmatch(word)
            if match is None:
                raise ConfigError(
                    f"signature {text!r}: cannot read {word!r}; write letter, dimension and count "
                    "such as 'P10x36' (several separated by spaces)"
                )
            letter, dimension, count = match[1].upper(), int(match[2]), int(match[3] or 1)
            if letter not in GEOMETRIES:
                known = ", ".join(f"{k} ({g.word})" for k, g in GEOMETRIES.items())
                raise ConfigError(f"signature {text!r}: unknown geometry {letter!r}; use {known}")
            smallest = 1 + GEOMETRIES[letter].unstored
            if dimension < smallest or count < 1:
                raise ConfigError(
                    f"signature {text!r}: {word!r} needs a dimension of at least {smallest} "
                    "and a count of at least 1"
                )
            terms.append(Term(letter, dimension, count))
        if not terms:
            raise ConfigError("the signature is empty; write for example 'P8x8 Q9x8'")
        return cls(tuple(terms))

    @property
    def numbers(self) -> int:
        """How many numbers an entity stores."""
        return sum(term.numbers * term.count for term in self.terms)

    @property
    def components(self) -> int:
        return sum(term.count for term in self.terms)

    def __iter__(self) -> Iterator[Term]:
        return iter(self.terms)

    def __str__(self) -> str:
        return " ".join(str(term) for term in self.terms)
