"""How much of the table one program takes on: explicit configurations, no autotuner."""

from __future__ import annotations

from typing import NamedTuple

WHOLE = 64
"""Core vectors up to this long are held in one piece, longer ones are walked through in such pieces."""

SMALLEST = 16
"""No side of a tile that enters a product may be smaller."""


class Blocks(NamedTuple):
    """Rows of the side a program owns, columns it takes at a time, and how the hardware runs it."""

    rows: int
    columns: int
    warps: int = 4
    stages: int = 2


class Configuration(NamedTuple):
    """One choice of blocks for each kernel."""

    forward: Blocks  # rows are queries, columns candidates
    queries: Blocks  # rows are queries, columns candidates
    candidates: Blocks  # rows are candidates, columns queries
    slopes: Blocks  # rows are queries, columns candidates; for long core vectors only


def width(C: int) -> int:
    """The power of two that a core vector of C numbers, or a piece of a long one, is padded to."""
    return min(WHOLE, max(SMALLEST, 1 << (C - 1).bit_length()))


def configuration(C: int, M: int) -> Configuration:
    """The blocks for M components with core vectors of C numbers.

    64 rows are what a Hopper GPU multiplies at a time; with 32 columns no kernel runs out of registers.
    """
    usual = Blocks(64, 32)
    return Configuration(forward=usual, queries=usual, candidates=usual, slopes=usual)
