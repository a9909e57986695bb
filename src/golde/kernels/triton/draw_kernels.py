"""The kernels of ``draw``: queries and negatives of a step, and which pairs of them are known facts."""

from __future__ import annotations

from golde.kernels.counter import BITS, FIRST, SECOND, STEP
from golde.kernels.triton.language import jit, kernel, tl


@jit
def shifted(x, PLACES: tl.constexpr):
    """A shift to the right that fills with zeros: on int64 ``>>`` repeats the sign."""
    return (x >> PLACES) & ((1 << (64 - PLACES)) - 1)


@jit
def random_bits(
    start, counter,
    STEP: tl.constexpr = STEP, FIRST: tl.constexpr = FIRST, SECOND: tl.constexpr = SECOND,
):  # fmt: skip
    """As ``counter.random_bits``, from what its ``stream_start`` gives."""
    x = counter * STEP + start
    x = (x ^ shifted(x, 30)) * FIRST
    x = (x ^ shifted(x, 27)) * SECOND
    return x ^ shifted(x, 31)


@jit
def random_below(bound, bits, BITS: tl.constexpr = BITS):
    """As ``counter.random_below``."""
    return (shifted(bits, 64 - BITS) * bound) >> BITS


@kernel
def draw_kernel(
    entity, direction, answer, weight, place, loop, order, step,
    entities, directions, weights, places, own_masked, drawn,
    start, F, B, N, E, TAKES_ALL: tl.constexpr, ANSWERS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """First come programs that look up ``BLOCK`` queries each, then programs that draw as many of N
    negatives, after which come the answers of the batch, if asked for.

    Each of the first adds up the weights of the whole batch for itself. A weight has 24 bits and is at
    least one over the root of the number of facts, so in double precision the sum of a batch is exact,
    whatever the order and the device.
    """
    now = tl.load(step)
    of_queries = tl.cdiv(B, BLOCK)
    if tl.program_id(0) < of_queries:
        rows = order + now * B % F
        total = tl.zeros((BLOCK,), tl.float64)
        for begin in range(0, B, BLOCK):
            i = begin + tl.arange(0, BLOCK)
            row = tl.load(rows + i, mask=i < B, other=0)
            total += tl.load(weight + row, mask=i < B, other=0.0).to(tl.float64)
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = i < B
        row = tl.load(rows + i, mask=inside, other=0)
        share = tl.div_rn(tl.load(weight + row), tl.sum(total, 0).to(tl.float32))
        tl.store(entities + i, tl.load(entity + row), mask=inside)
        chosen = tl.load(answer + row)
        tl.store(entities + B + i, chosen, mask=inside)
        if ANSWERS:
            tl.store(drawn + N + i, chosen, mask=inside)
        tl.store(directions + i, tl.load(direction + row), mask=inside)
        tl.store(weights + i, share, mask=inside)
        tl.store(places + i, tl.load(place + row), mask=inside)
        tl.store(own_masked + i, tl.load(loop + row), mask=inside)
    else:
        n = (tl.program_id(0) - of_queries) * BLOCK + tl.arange(0, BLOCK)
        chosen = n.to(tl.int64)
        if not TAKES_ALL:
            chosen = random_below(E, random_bits(start, now * N + n))
        tl.store(drawn + n, chosen, mask=n < N)


@kernel
def known_kernel(places, offsets, codes, candidates, masked, stride, N, BLOCK: tl.constexpr):
    """``masked[b, n]``: a binary search for the candidate among the query's known answers.

    Candidates are sorted, so one that was drawn before equals its left neighbour.
    """
    b = tl.program_id(0)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = n < N
    candidate = tl.load(candidates + n, mask=inside, other=0)
    again = candidate == tl.load(candidates + n - 1, mask=inside & (n > 0), other=-1)
    place = tl.load(places + b)
    wanted = place * stride + candidate
    first = tl.load(offsets + place)
    codes += first
    count = (tl.load(offsets + place + 1) - first).to(tl.int32)
    low = tl.zeros((BLOCK,), tl.int32)
    high = low + count
    left = count
    while left > 0:  # halves every time: the answers of one query, not all facts
        middle = (low + high) // 2
        below = (low < high) & (tl.load(codes + middle, mask=low < high, other=0) < wanted)
        high = tl.where((low < high) & ~below, middle, high)
        low = tl.where(below, middle + 1, low)
        left = left // 2
    known = (low < count) & (tl.load(codes + low, mask=low < count, other=-1) == wanted)
    at = b.to(tl.int64) * N + n
    tl.store(masked + at, (known | again).to(tl.uint8), mask=inside)
