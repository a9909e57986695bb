"""Products of tiles on tensor cores, nearly as exact as float32.

Tensor cores multiply numbers of 11 bits. In ``tf32x3`` every number is the sum of two such numbers, high and
low, and a product three of theirs; the fourth, low by low, is below rounding. Other precisions multiply the
numbers as they are.
"""

from __future__ import annotations

from golde.kernels.triton.language import jit, tl


@jit
def split(x):
    """``x = high + low`` with 11 bits in high, rounded to nearest, and the rest in low."""
    bits = x.to(tl.int32, bitcast=True)
    high = ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
    return high, x - high


@jit
def halves(x, PRECISION: tl.constexpr):
    """High and low, or twice the same where only one is used."""
    if PRECISION == "tf32x3":
        return split(x)
    else:
        return x, x


@jit
def multiplied(high, low, other_high, other_low, PRECISION: tl.constexpr):
    """The matrix product of two tiles; low halves matter in ``tf32x3`` only.

    Tensor cores cut off what they add up instead of rounding it, so long sums are made of such products
    by plain additions.
    """
    if PRECISION == "tf32x3":
        x = tl.dot(low, other_high, input_precision="tf32")
        x = tl.dot(high, other_low, x, input_precision="tf32")
        return tl.dot(high, other_high, x, input_precision="tf32")
    else:
        return tl.dot(high, other_high, input_precision=PRECISION)


@jit
def mixed(x, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Columns in the order 0 2 4 6 1 3 5 7 of every eight.

    A thread has columns 2t and 2t + 1 of a product's eight, but t and t + 4 of a factor's. In this order
    a product is a factor as it lies in registers; what it is multiplied by has the same order.
    """
    x = tl.reshape(x, (ROWS, COLUMNS // 8, 4, 2))
    return tl.reshape(tl.permute(x, (0, 1, 3, 2)), (ROWS, COLUMNS))


@jit
def mixed_order(index, COUNT: tl.constexpr):
    """The same of a vector."""
    index = tl.reshape(index, (COUNT // 8, 4, 2))
    return tl.reshape(tl.permute(index, (0, 2, 1)), (COUNT,))
