"""The kernels of ``ranks``, and how a rank comes about without a table of scores.

**Tiles.** As in the distance's forward pass a program owns a tile of queries × candidates and finishes it
in registers, here over all groups of components one after another, so that what it ends up with is final:
the score with its sign turned. It is used up on the spot. Registers hold one sum: what the groups before
add up to is scaled by ``w_i / w_{i+1}`` when the next begins, and the whole by the last weight. Programs are
numbered in bands of ``BAND`` tiles of queries, which are walked through column by column: those that run at
the same time then need few queries and few candidates, and both come from the cache.

**Biases.** The score of a pair may have a bias of the query and one of the candidate on top, and a third if
the two are one entity. Where one score serves both directions an entity has two of the second kind, and the
query says which: both are loaded.

**Counts.** A rank is how many candidates are nearer than the answer. The distances of the answers are
made first, by tiles on the diagonal of (queries, their own answers); then every tile compares what it holds
with them and adds up whole numbers, in whatever order. A query that is asked for several answers is one
row, compared with one answer after another. Instructions are the same wherever a pair stands in a tile, and
so are its bits; a tile that holds an answer makes sure of it and raises ``doubt`` otherwise, as one with a
number that is not finite does.

**Exclusion.** Known facts are one bit a pair, set beforehand: 32 times less than the scores.

**The best.** Of a tile the scores go to a scratch table and the maximum of each row to a small one. The k
best candidates of a query lie in the k tiles whose maxima come first, the tile to the left preceding
among equals: the maximum of each of those precedes all that another tile holds.
"""

from __future__ import annotations

from golde.kernels.triton.blocks import WHOLE
from golde.kernels.triton.distance_kernels import distance_tile
from golde.kernels.triton.language import kernel, tl

TRUTH, COUNTS, BEST = 0, 1, 2
"""What a launch of ``tile_kernel`` is for."""

BITS = 64
"""Candidates to a word of the mask; a program needs one word a query, or two."""


@kernel(do_not_specialize=["start", "N", "words"])
def mark_kernel(
    first, last, base, codes, entity, excluded, start, N, words,
    OWN: tl.constexpr, BLOCK: tl.constexpr, BITS: tl.constexpr = BITS,
):  # fmt: skip
    """Set the bits of a query's known answers ``start .. start + N``, and with OWN that of its entity."""
    b = tl.program_id(0)
    excluded += b * words
    lane = tl.arange(0, BLOCK)
    one = tl.full((BLOCK,), 1, tl.int64)
    at, end = tl.load(first + b), tl.load(last + b)
    shift = tl.load(base + b) + start
    if OWN:
        column = tl.load(entity + b) - start + lane  # only the first of them is meant
        here = (lane == 0) & (column >= 0) & (column < N)
        tl.atomic_or(excluded + column // BITS, one << (column % BITS), mask=here)
    while at < end:
        column = tl.load(codes + at + lane, mask=at + lane < end, other=0) - shift
        here = (at + lane < end) & (column >= 0) & (column < N)
        tl.atomic_or(excluded + column // BITS, one << (column % BITS), mask=here)
        at += BLOCK


@kernel(do_not_specialize=["B", "N", "A", "start", "apart"])  # which differ from call to call
def tile_kernel(
    q_0, q_low_0, c_0, c_low_0, of_query_0, of_candidate_0, scale_0, M_0,
    q_1, q_low_1, c_1, c_low_1, of_query_1, of_candidate_1, scale_1, M_1,
    q_2, q_low_2, c_2, c_low_2, of_query_2, of_candidate_2, scale_2, M_2,
    truth, answers, offsets, counts, excluded, scores, maxima, push, turned, entity, loop, pull, doubt,
    B, N, A, start, apart, rows_q, rows_c,
    WHAT: tl.constexpr, BIASED: tl.constexpr, NORM: tl.constexpr, PRECISION: tl.constexpr,
    GEODESIC_0: tl.constexpr, WIDTH_0: tl.constexpr,
    GEODESIC_1: tl.constexpr, WIDTH_1: tl.constexpr,
    GEODESIC_2: tl.constexpr, WIDTH_2: tl.constexpr,
    BLOCK_B: tl.constexpr, BLOCK_N: tl.constexpr, BAND: tl.constexpr,
    TRUTH: tl.constexpr = TRUTH, BEST: tl.constexpr = BEST, WHOLE: tl.constexpr = WHOLE,
    BITS: tl.constexpr = BITS,
):  # fmt: skip
    """``Σ w d^norm`` over up to three groups (WIDTH 0: there is none), a tile a program, and what it is for.

    TRUTH: ``truth[b]``, query b with candidate b. COUNTS: add up, for the answers ``offsets[b] ..
    offsets[b + 1]`` of query b, how many candidates are nearer and how many as near. BEST: write scores,
    −∞ for what is excluded, and their maxima. BIASED: ``push[b] + pull[turned[b], n]`` is taken from it, and
    ``loop[b]`` where the candidate is ``entity[b]``; the rows of ``pull`` lie ``apart``.
    """
    program = tl.program_id(0)
    if WHAT == TRUTH:
        down, over = program, program
    else:
        band = BAND * (rows_c // BLOCK_N)
        top = program // band * BAND
        height = tl.minimum(tl.cdiv(B, BLOCK_B) - top, BAND)
        down, over = top + program % band % height, program % band // height
    rows = down * BLOCK_B + tl.arange(0, BLOCK_B)
    columns = over * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_B, BLOCK_N), tl.float32)
    total = scale_0 * distance_tile(
        total, q_0, q_low_0, c_0, c_low_0, of_query_0, of_candidate_0, rows, columns,
        M_0, rows_q, rows_c,
        GEODESIC_0, NORM, PRECISION, WIDTH_0, WIDTH_0 if WIDTH_0 < WHOLE else WHOLE,
    )  # fmt: skip
    if WIDTH_1 > 0:
        total = scale_1 * distance_tile(
            total, q_1, q_low_1, c_1, c_low_1, of_query_1, of_candidate_1, rows, columns,
            M_1, rows_q, rows_c,
            GEODESIC_1, NORM, PRECISION, WIDTH_1, WIDTH_1 if WIDTH_1 < WHOLE else WHOLE,
        )  # fmt: skip
    if WIDTH_2 > 0:
        total = scale_2 * distance_tile(
            total, q_2, q_low_2, c_2, c_low_2, of_query_2, of_candidate_2, rows, columns,
            M_2, rows_q, rows_c,
            GEODESIC_2, NORM, PRECISION, WIDTH_2, WIDTH_2 if WIDTH_2 < WHOLE else WHOLE,
        )  # fmt: skip
    if BIASED:
        there, first = rows < B, tl.load(pull + columns, mask=columns < N, other=0.0)
        second = tl.load(pull + apart + columns, mask=columns < N, other=0.0)
        other = tl.load(turned + rows, mask=there, other=0)[:, None] != 0
        bias = tl.where(other, second[None, :], first[None, :])
        if WHAT == TRUTH:
            candidate = tl.load(answers + columns, mask=columns < N, other=-1)
        else:
            candidate = (start + columns).to(tl.int64)
        own = tl.load(entity + rows, mask=there, other=-2)[:, None] == candidate[None, :]
        bias += tl.where(own, tl.load(loop + rows, mask=there, other=0.0)[:, None], 0.0)
        total -= tl.load(push + rows, mask=there, other=0.0)[:, None] + bias
    if WHAT == TRUTH:
        own = tl.where(rows[:, None] == columns[None, :], total, 0.0)
        tl.store(truth + rows, tl.sum(own, 1), mask=rows < B)
    else:
        inside = (rows < B)[:, None] & (columns < N)[None, :]
        lane = tl.arange(0, BLOCK_N)[None, :]
        words = excluded + rows * (rows_c // BITS) + over * (BLOCK_N // BITS)
        word = tl.load(words)[:, None]
        if BLOCK_N > BITS:
            word = tl.where(lane < BITS, word, tl.load(words + 1)[:, None])
        live = inside & (((word >> lane % BITS) & 1) == 0)
        finite = tl.abs(total) < float("inf")  # NaN is not
        wrong = tl.max((inside & (finite == 0)).to(tl.int32), 1)
        if WHAT == BEST:
            score = tl.where(live, 0.0 - total, -float("inf"))  # no negative zero
            tl.store(scores + rows[:, None] * rows_c + columns[None, :], score)
            tl.store(maxima + rows * (rows_c // BLOCK_N) + over, tl.max(score, 1))
        else:
            at = tl.load(offsets + rows, mask=rows < B, other=0)
            end = tl.load(offsets + rows + 1, mask=rows < B, other=0)
            for _ in range(tl.max(end - at, 0).to(tl.int32)):
                asked = at < end
                near = tl.load(truth + at, mask=asked, other=0.0)[:, None]
                answer = (tl.load(answers + at, mask=asked, other=-1) - start).to(tl.int32)
                nearer = tl.sum((live & (total < near)).to(tl.int32), 1)
                as_near = tl.sum((live & (total == near)).to(tl.int32), 1)
                tl.atomic_add(counts + at, nearer, mask=asked)
                tl.atomic_add(counts + A + at, as_near, mask=asked)
                own = inside & (answer[:, None] == columns[None, :])
                wrong = tl.maximum(wrong, tl.max((own & (total != near)).to(tl.int32), 1))
                at += 1
        tl.store(doubt, 1, mask=tl.max(wrong, 0) > 0)
