"""How much of the table one program takes on: explicit configurations, no autotuner."""

from __future__ import annotations

from typing import NamedTuple

WHOLE = 64
"""Core vectors up to this long are held in one piece, longer ones are walked through in such pieces."""

SMALLEST = 16
"""No side of a tile that enters a product may be smaller."""

LARGE_SHARED = 200_000
"""Bytes of shared memory that a program may use on the GPUs that the usual blocks are made for."""

PROGRAMS = 4096
"""Programs of the backward pass that keep any GPU busy; more would only make more parts to add up."""

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


def rounded_up(count: int, multiple: int) -> int:
    """The multiple that ``count`` is padded to."""
    return -(-count // multiple) * multiple


def width(C: int) -> int:
    """What a core vector of C numbers is padded to: a power of two, or a multiple of ``WHOLE``."""
    if C > WHOLE:
        return rounded_up(C, WHOLE)
    return max(SMALLEST, 1 << (C - 1).bit_length())


def kept(C: int) -> int:
    """How many of a core vector's padded numbers are stored of a gradient: whole sectors of memory."""
    return rounded_up(C, 8)


def division(tiles: int, M: int, numbers: int) -> tuple[int, int]:
    """How the backward pass is divided: tiles of candidates a program owns, components at a time.

    Every program has its own part of the queries' gradients, of so many ``numbers``. One tile each is
    quickest, since nothing is then read again, up to the ``PROGRAMS`` that are of use. Where the parts
    would come to too much memory, fewer components are taken at a time, and only when a single one is
    too many do programs own still more tiles.
    """
    each = max(-(-tiles * M // PROGRAMS), -(-tiles * numbers // PART_NUMBERS))
    together = max(1, min(M, PART_NUMBERS // (-(-tiles // each) * numbers)))
    return each, -(-M // -(-M // together))


def configuration(C: int, *, geodesic: bool, shared: int = LARGE_SHARED) -> Configuration:
    """The blocks for core vectors of C numbers, on a GPU with so much ``shared`` memory, in bytes.

    Where there is plenty they are the quickest of ``pairwise_kernels.py`` on an H200; where there is less,
    small ones that fit.
    """
    if shared < LARGE_SHARED:
        return Configuration(Blocks(32, 32, 4, 1), Blocks(32, 32, 2, 1), Blocks(32, 32, 4, 1))
    across = width(C)
    if across > WHOLE:  # walked through in pieces, which need more memory at a time
        forward = Blocks(64, 64, 4, 1)
    else:
        forward = Blocks(64, 32 if geodesic and across < WHOLE else 64, 4, 3)
    if across == WHOLE or (geodesic and across > SMALLEST):
        backward = Blocks(64, 32, 4, 2)
    else:
        backward = Blocks(32, 32, 2, 2) if geodesic else Blocks(64, 64, 4, 1)
    return Configuration(forward, backward, slopes=Blocks(64, 32, 4, 1))
