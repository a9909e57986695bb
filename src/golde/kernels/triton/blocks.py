"""How much of the table one program takes on: explicit configurations, no autotuner."""

from __future__ import annotations

from typing import NamedTuple

WHOLE = 64
"""Core vectors up to this long are held in one piece, longer ones are walked through in such pieces."""

SMALLEST = 16
"""No side of a tile that enters a product may be smaller."""

PROGRAMS = 4096
"""Programs of the backward pass that keep a large GPU busy: thirty for each of its multiprocessors."""

PART_NUMBERS = 1 << 26
"""What the parts of the queries' gradients may come to, in numbers."""


class Blocks(NamedTuple):
    """Queries and candidates of a tile, and how the hardware runs a program."""

    rows: int
    columns: int
    warps: int = 4
    stages: int = 2


class Configuration(NamedTuple):
    """One choice of blocks for each kernel."""

    forward: Blocks
    backward: Blocks
    slopes: Blocks  # for long core vectors only

    @property
    def multiple(self) -> int:
        """What the padded rows of either side are a multiple of."""
        return max(side for blocks in self for side in (blocks.rows, blocks.columns))


def width(C: int) -> int:
    """What a core vector of C numbers is padded to: a power of two, or a multiple of ``WHOLE``."""
    if C > WHOLE:
        return -(-C // WHOLE) * WHOLE
    return max(SMALLEST, 1 << (C - 1).bit_length())


def stretch(tiles: int, M: int, numbers: int) -> int:
    """Tiles of candidates that one program of the backward pass owns.

    As few as leave enough programs: every stretch has its own part of the queries' gradients, of so many
    ``numbers``.
    """
    parts = min(tiles, -(-PROGRAMS // M), PART_NUMBERS // max(1, numbers))
    return -(-tiles // max(1, parts))


def configuration(C: int) -> Configuration:
    """The blocks for core vectors of C numbers: the quickest of ``pairwise_kernels.py`` on an H200."""
    forward, slopes = Blocks(64, 64, 4, 3), Blocks(64, 32)
    if C <= SMALLEST:
        return Configuration(forward, Blocks(32, 32, 2, 2), slopes)
    return Configuration(forward, Blocks(64, 64, 4, 1), slopes)
