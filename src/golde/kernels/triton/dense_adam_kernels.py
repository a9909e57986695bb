"""The kernels of an Adam that moves several tensors whole, in one launch for all of them.

Each tensor is divided into blocks, the last of which need not be full, and a program takes one of them. The
moments of all tensors lie one after another in whole blocks: those of the program's block begin at its
number times the size of a block, and the numbers past the end of a tensor stay zero.

The tensors come as tuples, which Triton unrolls: every program compares its number with the blocks of each.
A gradient is therefore read wherever autograd put it, at no cost; in a step that is captured its place is
fixed, as everything is. Bit i of GIVEN says whether tensor i has a gradient. One that has none in a step is
left alone in it, as are its moments and the count of its steps; any address stands in for the gradient.

Between the two passes over the numbers one program adds up what the blocks found and does all arithmetic on
scalars, so that nothing that a program writes is read by another of the same launch.
"""

from __future__ import annotations

from golde.kernels.adam import BETA1, BETA2, EPSILON
from golde.kernels.triton.language import jit, kernel, tl


@jit
def adam_step(
    p, m, v, g, size, scale, BETA1: tl.constexpr = BETA1, BETA2: tl.constexpr = BETA2,
    EPSILON: tl.constexpr = EPSILON,
):  # fmt: skip
    """``m ← β₁m + (1 − β₁)g, v ← β₂v + (1 − β₂)g², p ← p − size · m / (√v · scale + ε)``."""
    m = BETA1 * m + (1 - BETA1) * g
    v = BETA2 * v + (1 - BETA2) * g * g
    p -= size * (m / (tl.sqrt(v) * scale + EPSILON))
    return p, m, v


@jit
def owner(block, sizes, GIVEN: tl.constexpr, BLOCK: tl.constexpr):
    """Which tensor a block belongs to, the numbers before it there, and how many it has; 0 if not GIVEN."""
    which, size, first, begin = 0, 0, 0, 0
    for i in tl.static_range(len(sizes)):
        reached = block >= begin
        which = tl.where(reached, i, which)
        size = tl.where(reached, sizes[i] if (GIVEN >> i) & 1 else 0, size)
        first = tl.where(reached, begin, first)
        begin += (sizes[i] + BLOCK - 1) // BLOCK
    return which, (block - first).to(tl.int64) * BLOCK, size


@jit
def chosen(tensors, which):
    """The tensor of that number."""
    found = tensors[0]
    for i in tl.static_range(1, len(tensors)):
        found = tl.where(which == i, tensors[i], found)
    return found


@jit
def total(numbers, count, BLOCK: tl.constexpr):
    """``Σ_i numbers[i]`` as a block of parts, by a program alone."""
    parts = tl.zeros((BLOCK,), tl.float32)
    for begin in range(0, count, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        parts += tl.load(numbers + at, mask=at < count, other=0.0)
    return parts


@kernel
def squares_kernel(gradients, sizes, squares, GIVEN: tl.constexpr, BLOCK: tl.constexpr):
    """``squares[b] = Σ g²`` over block b."""
    block = tl.program_id(0)
    which, begin, size = owner(block, sizes, GIVEN, BLOCK)
    at = begin + tl.arange(0, BLOCK)
    g = tl.load(chosen(gradients, which) + at, mask=at < size, other=0.0)
    tl.store(squares + block, tl.sum(g * g, 0))


@kernel
def clip_kernel(
    squares, others, steps, coefficients, corrections, rate, clipping, blocks, rows, limit,
    TENSORS: tl.constexpr, GIVEN: tl.constexpr, CORRECTED: tl.constexpr, WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """``√(Σ squares + Σ others)``, the scale and whether to skip the step into ``clipping``.

    Also counts the step, and works out its coefficients.
    """
    tensor = tl.arange(0, WIDTH)
    given = tensor < 0
    for i in tl.static_range(TENSORS):
        if (GIVEN >> i) & 1:
            given = given | (tensor == i)
    taken = tl.load(steps + tensor, mask=given, other=0.0)
    correction = corrections + 2 * tl.minimum(taken, CORRECTED - 1).to(tl.int32)
    size, scale = tl.load(rate) * tl.load(correction), tl.load(correction + 1)

    parts = total(squares, blocks, BLOCK) + total(others, rows, BLOCK)
    norm = tl.sqrt(tl.sum(parts, 0))
    skipped = tl.where(norm < float("inf"), 0.0, 1.0)
    tl.store(clipping, norm)
    tl.store(clipping + 1, tl.maximum(norm / limit, 1.0))
    tl.store(clipping + 2, skipped)
    tl.store(coefficients + 2 * tensor, size, mask=given)
    tl.store(coefficients + 2 * tensor + 1, scale, mask=given)
    tl.debug_barrier()  # all threads have read it
    tl.store(steps + tensor, taken + 1 - skipped, mask=given)


@kernel
def adam_kernel(
    parameters, gradients, sizes, exp_avg, exp_avg_sq, coefficients, grad_scale, found_inf,
    GIVEN: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Adam for a block, unless the step is skipped."""
    block = tl.program_id(0)
    which, begin, size = owner(block, sizes, GIVEN, BLOCK)
    if (size > 0) & (tl.load(found_inf) == 0):
        column = tl.arange(0, BLOCK)
        at, moments = begin + column, block.to(tl.int64) * BLOCK + column
        place = chosen(parameters, which) + at
        g = tl.load(chosen(gradients, which) + at, mask=at < size, other=0.0)
        p = tl.load(place, mask=at < size, other=0.0)
        m, v = tl.load(exp_avg + moments), tl.load(exp_avg_sq + moments)
        coefficient = coefficients + 2 * which
        step_size, scale = tl.load(coefficient), tl.load(coefficient + 1)
        p, m, v = adam_step(p, m, v, g / tl.load(grad_scale), step_size, scale)
        tl.store(place, p, mask=at < size)
        tl.store(exp_avg + moments, m)
        tl.store(exp_avg_sq + moments, v)
