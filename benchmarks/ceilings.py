"""The most that this GPU does a second: of copying, FP32, special functions and TF32 products.

One small kernel each, that does nothing else; the tensor cores as Triton's own product reaches them.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import NamedTuple

import torch
from operations import NUMBER, Operations
from torch import Tensor

from golde.kernels.triton.language import exp2, jit, rsqrt, tl

COPIED = 1 << 28  # numbers: far more than any cache holds
BLOCK = 1024
UNROLLED = 32
ROUNDS = 256
PROGRAMS = 1 << 14
SIDE = 8192  # of the matrices
WARM_UP, REPEATS = 3, 15


class Tile(NamedTuple):
    """Of the product, and how the hardware runs a program."""

    rows: int
    columns: int
    depth: int
    warps: int
    stages: int


TILES = (Tile(128, 128, 32, 8, 4), Tile(128, 256, 32, 8, 3), Tile(128, 128, 64, 8, 3))
"""The quickest of these counts."""


# Kernels.


@jit
def copy_kernel(source, target, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(target + at, tl.load(source + at, mask=inside), mask=inside)


@jit
def multiply_add_kernel(out, a, b, rounds, BLOCK: tl.constexpr, UNROLLED: tl.constexpr):
    """``x ← a x + b``, again and again, on numbers that never leave their registers."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = at.to(tl.float32)
    for _ in range(rounds):
        for _ in tl.static_range(UNROLLED):
            x = x * a + b
    tl.store(out + at, x)


@jit
def special_kernel(out, rounds, BLOCK: tl.constexpr, UNROLLED: tl.constexpr):
    """``x ← 1/√(2^x)``, two special functions, which tends to the number that it leaves as it is."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = 1 / (1 + at.to(tl.float32))
    for _ in range(rounds):
        for _ in tl.static_range(UNROLLED):
            x = rsqrt(exp2(x))
    tl.store(out + at, x)


@jit
def product_kernel(a, b, out, SIDE, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
    """``out = a bᵀ`` for square matrices whose side all tiles divide."""
    down = SIDE // ROWS
    row = (tl.program_id(0) % down) * ROWS + tl.arange(0, ROWS)
    column = (tl.program_id(0) // down) * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    left, right = (
        a + row[:, None] * SIDE + depth[None, :],
        b + column[None, :] * SIDE + depth[:, None],
    )
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for _ in range(SIDE // DEPTH):
        total = tl.dot(tl.load(left), tl.load(right), total, input_precision="tf32")
        left += DEPTH
        right += DEPTH
    tl.store(out + row[:, None] * SIDE + column[None, :], total)


# Launchers.


def copy(source: Tensor, target: Tensor) -> None:
    copy_kernel[(-(-source.numel() // BLOCK),)](
        source, target, source.numel(), BLOCK=BLOCK, num_warps=4
    )


def multiply_add(out: Tensor, a: float, b: float, rounds: int) -> None:
    multiply_add_kernel[(out.numel() // BLOCK,)](
        out, a, b, rounds, BLOCK=BLOCK, UNROLLED=UNROLLED, num_warps=4
    )


def special(out: Tensor, rounds: int) -> None:
    special_kernel[(out.numel() // BLOCK,)](
        out, rounds, BLOCK=BLOCK, UNROLLED=UNROLLED, num_warps=4
    )


def product(a: Tensor, b: Tensor, out: Tensor, tile: Tile) -> None:
    side = len(a)
    product_kernel[(side // tile.rows * (side // tile.columns),)](
        a, b, out, side, ROWS=tile.rows, COLUMNS=tile.columns, DEPTH=tile.depth,
        num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip


# What they reach.


def ceilings() -> Operations:
    """Of each kind, so many a second."""
    source = torch.ones(COPIED, device="cuda")
    target = torch.empty_like(source)
    moved = 2 * NUMBER * COPIED / seconds(lambda: copy(source, target))
    out = torch.empty(PROGRAMS * BLOCK, device="cuda")
    each = out.numel() * ROUNDS * UNROLLED
    fp32 = each / seconds(lambda: multiply_add(out, 0.999, 0.001, ROUNDS))
    functions = 2 * each / seconds(lambda: special(out, ROUNDS))
    a, b = (torch.randn(SIDE, SIDE, device="cuda") for _ in range(2))
    table = torch.empty_like(a)
    quickest = min(seconds(lambda tile=tile: product(a, b, table, tile)) for tile in TILES)
    return Operations(moved, fp32, functions, 2 * SIDE**3 / quickest)


def seconds(call: Callable[[], None]) -> float:
    """The median time of a call, by the device's clock."""
    for _ in range(WARM_UP):
        call()
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(REPEATS)]
    for begin, end in events:
        begin.record()
        call()
        end.record()
    torch.cuda.synchronize()
    return statistics.median(1e-3 * begin.elapsed_time(end) for begin, end in events)
