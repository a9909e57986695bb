"""The kernels of an Adam that touches only the rows a step drew, and how they come about.

**Missed steps.** A row that was not drawn had a gradient of zero, under which Adam does
``m ← β₁m, v ← β₂v, p ← p − size_k · m / (√v · scale_k + ε)``, where k numbers the steps that were taken,
``size_k = rate / (1 − β₁^k)`` and ``scale_k = 1 / √(1 − β₂^k)``. Both are kept for every step in a table,
and a row makes up for the steps it missed, one after another and in registers, when it is next drawn. A
step that was skipped is not in the table, as nothing moved in it.

**The same to the bit.** Whether a row makes up for its steps at once or in portions, the same operations
are done in the same order. That holds if all kernels round alike, so they are compiled without fusing
products and sums, which the compiler might do in one and not in another.

**A bound.** By Cauchy-Schwarz ``m² ≤ (1 − β₁)² / ((1 − β₂)(1 − β₁²/β₂)) · v``, so ``|m| ≤ 7.3 √v`` at any
time, and every missed step takes a factor of β₁/√β₂ from their ratio. A missed step moves p only where
``|m| / (√v · scale + ε) > 2·10⁻¹¹``: what is left out is less than that part of the step size, and ten
times as much in all. After 256 missed steps the first moment is 2·10⁻¹² of itself and the ratio below
7.3 (β₁/√β₂)²⁵⁶ < 2·10⁻¹¹: from there on nothing moves, and only the moments decay, at two products a
step. Being a matter of m and v alone, the rule does not depend on how the steps are portioned.

**A pull.** Where a penalty ``λ · mean ‖e‖`` draws all rows towards the origin, drawn or not, a row has the
gradient ``pull · p/‖p‖`` in the steps it missed, with ``pull = λ/E``, and moves in all of them: then none is
left out, a program holds its whole row in one block, and what it adds up in a norm may be added up in
another order by another kernel, so that portions agree to within rounding.

**Duplicates.** A row may be drawn at several positions. The largest of them leads: each puts its number,
with that of the turn above it, into the row's stamp if it is the larger one, so that stamps of earlier
turns lose and need no clearing. The others then add their gradient to the leader's, and only leaders
count for the norm and move their row.

Gathering writes nothing back, since another position may be reading the same row: what it worked out
waits beside the rows for the update. A program takes all columns of its row, block by block.
"""

from __future__ import annotations

from golde.kernels.adam import BETA1, BETA2, EPSILON, MOVING, NEGLIGIBLE, NEVER, TINY
from golde.kernels.triton.dense_adam_kernels import adam_step
from golde.kernels.triton.language import jit, kernel, tl

TURN = 2**32
"""A stamp is the turn times this, plus the position."""


@jit
def missed(last, row, now, NEVER: tl.constexpr = NEVER):
    """How far a row has come, and how many steps it lacks."""
    done = tl.load(last + row)
    return done, tl.where(done == NEVER, 0, now - done)


@jit
def pulled(p, pull, TINY: tl.constexpr = TINY):
    """``pull · p/‖p‖``, the gradient of the penalty."""
    return p * (pull / tl.maximum(tl.sqrt(tl.sum(p * p, 0)), TINY))


@jit
def caught_up(
    p, m, v, pull, coefficient, steps, PULLED: tl.constexpr, BETA1: tl.constexpr = BETA1,
    BETA2: tl.constexpr = BETA2, EPSILON: tl.constexpr = EPSILON, MOVING: tl.constexpr = MOVING,
    NEGLIGIBLE: tl.constexpr = NEGLIGIBLE,
):  # fmt: skip
    """The row after so many steps in which it was not drawn, whose coefficients begin at the pointer."""
    if PULLED:
        for _ in range(steps):
            size, scale = tl.load(coefficient), tl.load(coefficient + 1)
            coefficient += 2
            p, m, v = adam_step(p, m, v, pulled(p, pull), size, scale)
    else:
        for _ in range(tl.minimum(steps, MOVING)):
            size, scale = tl.load(coefficient), tl.load(coefficient + 1)
            coefficient += 2
            m *= BETA1
            v *= BETA2
            share = m / (tl.sqrt(v) * scale + EPSILON)
            p = tl.where(tl.abs(share) > NEGLIGIBLE, p - size * share, p)
        for _ in range(steps - MOVING):
            m *= BETA1
            v *= BETA2
    return p, m, v


@jit
def position_of_leader(stamp, ids, i, turn, TURN: tl.constexpr = TURN):
    """The position that acts for all those with the row of position i."""
    return tl.load(stamp + tl.load(ids + i)) - turn * TURN


@kernel
def gather_kernel(
    parameter, exp_avg, exp_avg_sq, last, stamp, turn, taken, coefficients, pull, ids, rows, m_rows,
    v_rows, D: tl.constexpr, LAZY: tl.constexpr, PULLED: tl.constexpr, BLOCK: tl.constexpr,
    TURN: tl.constexpr = TURN,
):  # fmt: skip
    """Row ``ids[i]`` at position i, brought up to date with its moments unless LAZY; and its stamp."""
    i = tl.program_id(0).to(tl.int64)
    row, now = tl.load(ids + i), tl.load(turn)
    tl.atomic_max(stamp + row, now * TURN + i, sem="relaxed")
    if not LAZY:
        done, steps = missed(last, row, tl.load(taken + now))
        coefficient = coefficients + 2 * (done - tl.load(taken))
    for begin in range(0, D, BLOCK):
        column = begin + tl.arange(0, BLOCK)
        inside, at, to = column < D, row * D + column, i * D + column
        p = tl.load(parameter + at, mask=inside, other=0.0)
        if not LAZY:
            m = tl.load(exp_avg + at, mask=inside, other=0.0)
            v = tl.load(exp_avg_sq + at, mask=inside, other=0.0)
            p, m, v = caught_up(p, m, v, pull, coefficient, steps, PULLED)
            tl.store(m_rows + to, m, mask=inside)
            tl.store(v_rows + to, v, mask=inside)
        tl.store(rows + to, p, mask=inside)


@kernel
def fold_kernel(grad, stamp, turn, ids, D: tl.constexpr, BLOCK: tl.constexpr):
    """Adds the gradient of a position that does not lead to its leader's, in place."""
    i = tl.program_id(0).to(tl.int64)
    leader = position_of_leader(stamp, ids, i, tl.load(turn))
    if leader != i:
        for begin in range(0, D, BLOCK):
            column = begin + tl.arange(0, BLOCK)
            inside = column < D
            g = tl.load(grad + i * D + column, mask=inside, other=0.0)
            tl.atomic_add(grad + leader * D + column, g, mask=inside, sem="relaxed")


@kernel
def square_kernel(grad, stamp, turn, ids, squares, D: tl.constexpr, BLOCK: tl.constexpr):
    """``squares[i] = ‖grad[i]‖²`` of leaders, 0 of the others."""
    i = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    if position_of_leader(stamp, ids, i, tl.load(turn)) == i:
        for begin in range(0, D, BLOCK):
            column = begin + tl.arange(0, BLOCK)
            g = tl.load(grad + i * D + column, mask=column < D, other=0.0)
            total += g * g
    tl.store(squares + i, tl.sum(total, 0))


@kernel
def update_kernel(
    parameter, exp_avg, exp_avg_sq, last, stamp, turn, taken, coefficients, corrections, rate, pull, ids,
    rows, m_rows, v_rows, grad, grad_scale, found_inf, D: tl.constexpr, CORRECTED: tl.constexpr,
    LAZY: tl.constexpr, PULLED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Adam from the leaders' gathered rows into the table; the first program writes the step down.

    ``taken[t]`` is how many steps were taken before turn t. This turn's entry is read by all programs
    and the next one's written by one, so that nobody reads what is being written.
    """
    i = tl.program_id(0).to(tl.int64)
    now = tl.load(turn)
    before = tl.load(taken + now)
    skipped = tl.load(found_inf) != 0
    correction = corrections + 2 * tl.minimum(before, CORRECTED - 1)
    size, scale = tl.load(rate) * tl.load(correction), tl.load(correction + 1)
    if i == 0:
        tl.store(taken + now + 1, tl.where(skipped, before, before + 1))
        coefficient = coefficients + 2 * (before - tl.load(taken))
        tl.store(coefficient, size)  # where this step is skipped, the next one's take their place
        tl.store(coefficient + 1, scale)
    if (position_of_leader(stamp, ids, i, now) == i) & ~skipped:
        row, over = tl.load(ids + i), tl.load(grad_scale)
        moments = row if LAZY else i
        for begin in range(0, D, BLOCK):
            column = begin + tl.arange(0, BLOCK)
            inside, at = column < D, row * D + column
            g = tl.load(grad + i * D + column, mask=inside, other=0.0) / over
            p = tl.load(rows + i * D + column, mask=inside, other=0.0)
            m = tl.load(m_rows + moments * D + column, mask=inside, other=0.0)
            v = tl.load(v_rows + moments * D + column, mask=inside, other=0.0)
            if PULLED:
                g += pulled(p, pull)
            p, m, v = adam_step(p, m, v, g, size, scale)
            tl.store(parameter + at, p, mask=inside)
            tl.store(exp_avg + at, m, mask=inside)
            tl.store(exp_avg_sq + at, v, mask=inside)
        tl.store(last + row, before + 1)


@kernel
def settle_kernel(
    parameter, exp_avg, exp_avg_sq, last, turn, taken, coefficients, pull,
    D: tl.constexpr, PULLED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Brings a row up to date, after the turn's step."""
    row = tl.program_id(0).to(tl.int64)
    now = tl.load(taken + tl.load(turn) + 1)
    done, steps = missed(last, row, now)
    if steps > 0:
        coefficient = coefficients + 2 * (done - tl.load(taken))
        for begin in range(0, D, BLOCK):
            column = begin + tl.arange(0, BLOCK)
            inside, at = column < D, row * D + column
            p = tl.load(parameter + at, mask=inside, other=0.0)
            m = tl.load(exp_avg + at, mask=inside, other=0.0)
            v = tl.load(exp_avg_sq + at, mask=inside, other=0.0)
            p, m, v = caught_up(p, m, v, pull, coefficient, steps, PULLED)
            tl.store(parameter + at, p, mask=inside)
            tl.store(exp_avg + at, m, mask=inside)
            tl.store(exp_avg_sq + at, v, mask=inside)
        tl.debug_barrier()  # all threads have read it
        tl.store(last + row, now)
