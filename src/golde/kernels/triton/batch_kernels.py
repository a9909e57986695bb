"""The kernels of ``batch``: what leads from the rows of entities to the fused distance, and back.

**Queries.** Those of one relation share its map, so they are taken in tiles of a relation: ``tiles_kernel``
cuts the queries, sorted by relation, into such tiles. A program takes one tile and one component. It
loads the heads and the map, moves the heads (``Elliptic.query``, ``Hyperbolic.query`` and so on, in the
same words), writes the core vectors and what the finish needs where the distance kernels expect them, and
while it has the queries in registers it also finishes their distances to their own answer and to
themselves. Backward it does the same again, adds up all that the queries are owed, and takes it back
through boost, map and exp map to the heads; what it finds for the map is its tile's share, and
``shares_kernel`` adds the shares of a relation's tiles in their order.

**Candidates** need no relation: their core vectors are copied with squares or norms beside them.

Gradients, beyond the product rule. Elliptic: ``[−2p∘x, p, ⟨x,x⟩_p]`` with ``x = G e``. Hyperbolic, in
the notation of ``Hyperbolic.query`` with everything scaled by ``u = e^{−α}``: with ν the norm of the moved
z and ``h = √(ν² + u²)``, ``e^{a−α} = ν + h =: s``, the core is ``[−z, ν]/s``, and ``∂s/∂ν = s/h``,
``∂s/∂u = u/h``, ``a = α + log s``.

Every geometry is known by a number: 0 Euclidean, 1 elliptic, 2 hyperbolic.
"""

from __future__ import annotations

from golde.kernels.triton.distance_kernels import store_packed
from golde.kernels.triton.language import exp2, jit, kernel, log2, tl
from golde.kernels.triton.pointwise import (
    LN_2,
    LOG2_E,
    geodesic_gradient,
    geodesic_value,
    one_minus,
    one_minus_exp,
    root_gradient,
    root_value,
)


@jit
def first_at_least(ordered, wanted, B, STEPS: tl.constexpr):
    """Where the sorted numbers (B,) reach each wanted one; 2^STEPS is more than B."""
    low = tl.zeros_like(wanted)
    high = low + B
    for _ in range(STEPS):
        middle = (low + high) // 2
        below = (low < high) & (tl.load(ordered + middle, mask=low < high, other=0) < wanted)
        high = tl.where((low < high) & ~below, middle, high)
        low = tl.where(below, middle + 1, low)
    return low


@kernel
def tiles_kernel(
    ordered, relation, begin, end, first, B, COUNT, TILES,
    TILE: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Cut queries, sorted by relation, into tiles that share one; a single program.

    Tile t holds the queries ``begin[t]..end[t]`` of ``relation[t]``; relation r has the tiles
    ``first[r]..first[r + 1]``. Tiles past the last are empty.
    """
    used = tl.full((), 0, tl.int32)
    for start in range(0, COUNT, BLOCK):
        r = start + tl.arange(0, BLOCK)
        low, high = (first_at_least(ordered, r, B, STEPS), first_at_least(ordered, r + 1, B, STEPS))
        tiles = tl.where(r < COUNT, (high - low + TILE - 1) // TILE, 0)
        at = used + tl.cumsum(tiles, 0) - tiles
        tl.store(first + r, at, mask=r < COUNT)
        for number in range(0, tl.max(tiles, 0)):
            there = number < tiles
            tl.store(relation + at + number, r, mask=there)
            tl.store(begin + at + number, low + number * TILE, mask=there)
            tl.store(end + at + number, tl.minimum(low + (number + 1) * TILE, high), mask=there)
        used += tl.sum(tiles, 0)
    tl.store(first + COUNT, used)
    for start in range(0, TILES, BLOCK):
        t = start + tl.arange(0, BLOCK)
        empty = (t >= used) & (t < TILES)
        tl.store(relation + t, tl.zeros_like(t), mask=empty)
        tl.store(begin + t, tl.zeros_like(t), mask=empty)
        tl.store(end + t, tl.zeros_like(t), mask=empty)


@jit
def norm_of(x):
    """``√(Σ x² + tiny)`` of each row, as ``safe_norm``."""
    return tl.sqrt(tl.sum(x * x, 1) + 1e-30)


@jit
def log1p(t, SCALE: tl.constexpr = LN_2):
    """``log(1 + t)`` within a few ulps: the hardware's logarithm is not exact where it is near 0.

    On [−½, 1] it is ``2 artanh(s)``, ``s = t/(2 + t)``, by the series up to s¹⁵ (next: 10⁻⁹ of the first).
    """
    s = t / (2 + t)
    square = s * s
    series = square * (1 / 15) + 1 / 13
    series = series * square + 1 / 11
    series = series * square + 1 / 9
    series = series * square + 1 / 7
    series = series * square + 1 / 5
    series = series * square + 1 / 3
    near = 2 * s + 2 * s * square * series
    return tl.where((t > -0.5) & (t < 1), near, SCALE * log2(1 + t))


@jit
def load_map(maps, number, K, TRANSPOSED: tl.constexpr):
    """A K×K map, padded with 0."""
    inside = (number < K)[:, None] & (number < K)[None, :]
    found = tl.load(maps + number[:, None] * K + number[None, :], mask=inside, other=0.0)
    if TRANSPOSED:
        found = tl.trans(found)
    return found


@jit
def load_part(rows, which, there, number, D, K):
    """The component of each row (TILE, BLOCK_K), 0 where there is none."""
    at = rows + which.to(tl.int64)[:, None] * D + number[None, :]
    return tl.load(at, mask=there[:, None] & (number < K)[None, :], other=0.0)


@jit
def hyperbolic_moved(e, Q, b, root, PRECISION: tl.constexpr, SCALE: tl.constexpr = -LOG2_E):
    """Exp map, boost and rotation of heads (TILE, BLOCK_K), with all that going back needs."""
    norm = norm_of(e)
    alpha = norm / root
    unit = exp2(alpha * SCALE)
    sinh = 0.5 * one_minus(unit * unit, 2 * alpha)  # e^{−α} sinh α
    z = (sinh / norm)[:, None] * e
    gamma = tl.sqrt(1 + tl.sum(b * b, 0))
    along = tl.sum(b[None, :] * z, 1)
    push = 1 - sinh + along / (1 + gamma)
    boosted = z + b[None, :] * push[:, None]
    moved = tl.dot(boosted, Q, input_precision=PRECISION)
    length = norm_of(moved)
    h = tl.sqrt(length * length + unit * unit)
    a = alpha + log1p(length + length * length / (unit + h) - one_minus(unit, alpha))
    return norm, alpha, unit, sinh, z, gamma, along, push, boosted, moved, length, h, a


@jit
def query_sides(a, SCALE: tl.constexpr = -LOG2_E):
    """``e^{−a}`` and ``1 − e^{−a}``."""
    return exp2(a * SCALE), one_minus_exp(a)


@kernel
def query_kernel(
    rows, order, relation, begin, end, maps, weights, beta, packed, halved, sides, paired,
    M, B, padded, D, K, TILES, weight,
    KIND: tl.constexpr, OWN: tl.constexpr, NORM: tl.constexpr, PRECISION: tl.constexpr,
    WIDTH: tl.constexpr, TILE: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Pack the queries of one tile and component, and finish them with their answers and themselves.

    ``rows`` (2B + N, D) starts at this group's first column; ``paired`` is (M, 1 or 2, B). The program after
    the last tile fills the padding.
    """
    m = tl.program_id(0) % M
    t = tl.program_id(0) // M
    number = tl.arange(0, BLOCK_K)
    wide = tl.arange(0, WIDTH)
    half = tl.cast(M, tl.int64) * padded * WIDTH
    packed += m.to(tl.int64) * padded * WIDTH
    halved += m.to(tl.int64) * padded * WIDTH
    sides += m.to(tl.int64) * 5 * padded
    if t == TILES:
        for start in range(B, padded, TILE):
            pad = start + tl.arange(0, TILE)
            inside = (pad < padded)[:, None] & (wide < WIDTH)[None, :]
            to = pad[:, None] * WIDTH + wide[None, :]
            none = tl.zeros((TILE, WIDTH), tl.float32)
            store_packed(packed, halved, half, to, none, inside, PRECISION)
            if KIND == 2:
                for side in range(0, 5):
                    one = tl.full((TILE,), 1.0, tl.float32)
                    tl.store(sides + side * padded + pad, one, mask=pad < padded)
    else:
        r = tl.load(relation + t).to(tl.int64) * M + m
        place = tl.load(begin + t) + tl.arange(0, TILE)
        there = place < tl.load(end + t)
        b = tl.load(order + place, mask=there, other=0)
        rows += m * K
        head = load_part(rows, b, there, number, D, K)
        answer = load_part(rows, B + b, there, number, D, K)
        to = b[:, None] * WIDTH
        within = there[:, None] & (number < K)[None, :]
        last = there[:, None] & (wide >= K)[None, :]
        map_ = load_map(maps + r * K * K, number, K, True)
        if KIND == 2:
            boost = tl.load(weights + r * K + number, mask=number < K, other=0.0)
            root = tl.sqrt(tl.load(beta + r))
            _, _, _, _, _, _, _, _, _, moved, length, h, a = hyperbolic_moved(
                head, map_, boost, root, PRECISION
            )
            s = length + h
            core, rest = -moved / s[:, None], length / s
            store_packed(packed, halved, half, to + number[None, :], core, within, PRECISION)
            tail = tl.where(wide[None, :] == K, rest[:, None], 0.0)
            store_packed(packed, halved, half, to + wide[None, :], tail, last, PRECISION)
            e_a, from_a = query_sides(a)
            at = sides + b
            tl.store(at, tl.zeros_like(a) + root, mask=there)
            tl.store(at + padded, tl.zeros_like(a) + 1 / root, mask=there)
            tl.store(at + 2 * padded, a, mask=there)
            tl.store(at + 3 * padded, e_a, mask=there)
            tl.store(at + 4 * padded, from_a, mask=there)
            n = norm_of(answer)
            x = tl.sum(core * answer, 1) + rest * n
            right = geodesic_value(x, root, 1 / root, a, e_a, from_a, n, 1 / n, NORM)
            if OWN:
                n = norm_of(head)
                x = tl.sum(core * head, 1) + rest * n
                own = geodesic_value(x, root, 1 / root, a, e_a, from_a, n, 1 / n, NORM)
        else:
            if KIND == 1:
                p = tl.load(weights + r * K + number, mask=number < K, other=0.0)[None, :]
            else:
                p = (number < K).to(tl.float32)[None, :]
            moved = tl.dot(head, map_, input_precision=PRECISION)
            px = p * moved
            xx = tl.sum(px * moved, 1)
            store_packed(packed, halved, half, to + number[None, :], -2 * px, within, PRECISION)
            if KIND == 1:
                second = to + K + number[None, :]
                store_packed(packed, halved, half, second, tl.zeros_like(px) + p, within, PRECISION)
                last = there[:, None] & (wide >= 2 * K)[None, :]
                tail = tl.where(wide[None, :] == 2 * K, xx[:, None], 0.0)
            else:
                tail = tl.where(wide[None, :] == K + 1, xx[:, None], 0.0)
                tail = tl.where(wide[None, :] == K, 1.0, tail)
            store_packed(packed, halved, half, to + wide[None, :], tail, last, PRECISION)
            right = root_value(xx + tl.sum((p * answer - 2 * px) * answer, 1), NORM)
            if OWN:
                own = root_value(xx + tl.sum((p * head - 2 * px) * head, 1), NORM)
        if OWN:
            tl.store(paired + m * 2 * B + b, weight * right, mask=there)
            tl.store(paired + (m * 2 + 1) * B + b, weight * own, mask=there)
        else:
            tl.store(paired + m * B + b, weight * right, mask=there)


@kernel
def candidate_kernel(
    rows, packed, halved, sides, M, N, padded, D, K,
    KIND: tl.constexpr, PRECISION: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Pack some candidates of one component: ``[y, y∘y, 1]``, ``[y, ⟨y,y⟩, 1]`` or ``[e, ‖e‖]``.

    Every number of a packed row is worked out where it is stored, so that rows are stored whole.
    """
    m = tl.program_id(0) % M
    n = (tl.program_id(0) // M) * BLOCK + tl.arange(0, BLOCK)
    inside, wide = (n < N)[:, None], tl.arange(0, WIDTH)[None, :]
    of_squares = (KIND == 1) & (wide >= K) & (wide < 2 * K)
    number = tl.where(of_squares, wide - K, wide)
    at = rows + n.to(tl.int64)[:, None] * D + m * K + number
    y = tl.load(at, mask=inside & (number < K), other=0.0)
    if KIND == 1:
        found = tl.where(of_squares, y * y, y)
        found = tl.where(inside & (wide == 2 * K), 1.0, found)
    else:
        square = tl.sum(y * y, 1)
        if KIND == 2:
            norm = tl.where(n < N, tl.sqrt(square + 1e-30), 1.0)
            found = tl.where(inside & (wide == K), norm[:, None], y)
            to = sides + m.to(tl.int64) * 2 * padded + n
            tl.store(to, norm, mask=n < padded)
            tl.store(to + padded, 1 / norm, mask=n < padded)
        else:
            found = tl.where(wide == K, square[:, None], y)
            found = tl.where(inside & (wide == K + 1), 1.0, found)
    half = tl.cast(M, tl.int64) * padded * WIDTH
    to = (m.to(tl.int64) * padded + n[:, None]) * WIDTH + wide
    store_packed(packed, halved, half, to, found, (n < padded)[:, None] & (wide < WIDTH), PRECISION)


@kernel
def candidate_backward_kernel(
    rows, to_c, to_candidate, to_rows, M, N, padded, D, K,
    KIND: tl.constexpr, KEPT: tl.constexpr, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Gradients of the candidates' rows from those of their core vectors and norms."""
    m = tl.program_id(0) % M
    n = (tl.program_id(0) // M) * BLOCK + tl.arange(0, BLOCK)
    number = tl.arange(0, BLOCK_K)
    within = (n < N)[:, None] & (number < K)[None, :]
    y = load_part(rows + m * K, n, n < N, number, D, K)
    at = to_c + (m.to(tl.int64) * padded + n) * KEPT
    found = tl.load(at[:, None] + number[None, :], mask=within, other=0.0)
    if KIND == 1:
        found += 2 * y * tl.load(at[:, None] + K + number[None, :], mask=within, other=0.0)
    else:
        along = tl.load(at + K, mask=n < N, other=0.0)
        if KIND == 2:
            along += tl.load(to_candidate + m.to(tl.int64) * padded + n, mask=n < N, other=0.0)
            found += (along / norm_of(y))[:, None] * y
        else:
            found += 2 * along[:, None] * y
    to = to_rows + n.to(tl.int64)[:, None] * D + m * K + number[None, :]
    tl.store(to, found, mask=within)


@kernel
def query_backward_kernel(
    rows, order, relation, begin, end, maps, weights, beta, to_q, to_query, grad, to_rows, shares,
    M, B, padded, D, K, weight,
    KIND: tl.constexpr, OWN: tl.constexpr, NORM: tl.constexpr, PRECISION: tl.constexpr,
    KEPT: tl.constexpr, TILE: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Gradients of heads and answers, and a tile's share of those of its map.

    ``to_q`` (M, padded, KEPT) and ``to_query`` (M, 2, padded) come from the distance,
    ``grad`` (1 or 2, B) is that of the answers' and own scores. ``shares`` (TILES, M(K² + K + 1)) holds
    the map's, then the weights' or the boost's, then the curvature's.
    """
    m = tl.program_id(0) % M
    t = tl.program_id(0) // M
    number = tl.arange(0, BLOCK_K)
    place = tl.load(begin + t) + tl.arange(0, TILE)
    there = place < tl.load(end + t)
    r = tl.load(relation + t).to(tl.int64) * M + m
    b = tl.load(order + place, mask=there, other=0)
    within = there[:, None] & (number < K)[None, :]
    rows += m * K
    head = load_part(rows, b, there, number, D, K)
    answer = load_part(rows, B + b, there, number, D, K)
    g_right = weight * tl.load(grad + b, mask=there, other=0.0)
    # What the shared candidates found for the core vectors.
    at = to_q + (m.to(tl.int64) * padded + b) * KEPT
    found = tl.load(at[:, None] + number[None, :], mask=within, other=0.0)
    second = tl.zeros((TILE, BLOCK_K), tl.float32)
    if KIND == 0:
        rest = tl.load(at + K + 1, mask=there, other=0.0)
    if KIND == 1:
        second = tl.load(at[:, None] + K + number[None, :], mask=within, other=0.0)
        rest = tl.load(at + 2 * K, mask=there, other=0.0)
    if KIND == 2:
        rest = tl.load(at + K, mask=there, other=0.0)
        at = to_query + m.to(tl.int64) * 2 * padded + b
        to_root = tl.load(at, mask=there, other=0.0)
        to_a = tl.load(at + padded, mask=there, other=0.0)
    to_head = tl.zeros((TILE, BLOCK_K), tl.float32)
    map_ = load_map(maps + r * K * K, number, K, True)
    if KIND == 2:
        boost = tl.load(weights + r * K + number, mask=number < K, other=0.0)
        root = tl.sqrt(tl.load(beta + r))
        norm, alpha, unit, sinh, z, gamma, along, push, boosted, moved, length, h, a = (
            hyperbolic_moved(head, map_, boost, root, PRECISION)
        )
        s = length + h
        core, core_rest = -moved / s[:, None], length / s
        e_a, from_a = query_sides(a)
        n = norm_of(answer)
        x = tl.sum(core * answer, 1) + core_rest * n
        slope, by_root, by_a, by_n = geodesic_gradient(
            g_right, x, root, 1 / root, a, e_a, from_a, n, 1 / n, NORM
        )
        to_answer = slope[:, None] * core + ((slope * core_rest + by_n) / n)[:, None] * answer
        found += slope[:, None] * answer
        rest += slope * n
        to_root += by_root
        to_a += by_a
        if OWN:
            g_own = weight * tl.load(grad + B + b, mask=there, other=0.0)
            x = tl.sum(core * head, 1) + core_rest * norm
            slope, by_root, by_a, by_n = geodesic_gradient(
                g_own, x, root, 1 / root, a, e_a, from_a, norm, 1 / norm, NORM
            )
            to_head = slope[:, None] * core + ((slope * core_rest + by_n) / norm)[:, None] * head
            found += slope[:, None] * head
            rest += slope * norm
            to_root += by_root
            to_a += by_a
        to_s = (to_a - tl.sum(found * core, 1) - rest * core_rest) / s
        to_length = rest / s + to_s * s / h
        to_alpha = to_a - to_s * unit * unit / h
        to_moved = (to_length / length)[:, None] * moved - found / s[:, None]
        to_boosted = tl.dot(
            to_moved, load_map(maps + r * K * K, number, K, False), input_precision=PRECISION
        )
        to_push = tl.sum(to_boosted * boost[None, :], 1)
        to_along = to_push / (1 + gamma)
        to_z = to_boosted + to_along[:, None] * boost[None, :]
        to_boost = tl.sum(to_boosted * push[:, None] + to_along[:, None] * z, 0)
        to_boost -= tl.sum(to_along * along, 0) / ((1 + gamma) * gamma) * boost
        to_factor = tl.sum(to_z * head, 1)
        to_alpha += (to_factor / norm - to_push) * unit * unit
        to_norm = to_alpha / root - to_factor * sinh / (norm * norm)
        to_root -= to_alpha * alpha / root
        to_head += (sinh / norm)[:, None] * to_z + (to_norm / norm)[:, None] * head
        to_map = tl.dot(tl.trans(to_moved), boosted, input_precision=PRECISION)
        to_weights = to_boost
    else:
        if KIND == 1:
            p = tl.load(weights + r * K + number, mask=number < K, other=0.0)[None, :]
        else:
            p = (number < K).to(tl.float32)[None, :]
        moved = tl.dot(head, map_, input_precision=PRECISION)
        px = p * moved
        xx = tl.sum(px * moved, 1)
        slope = root_gradient(g_right, xx + tl.sum((p * answer - 2 * px) * answer, 1), NORM)[
            :, None
        ]
        to_answer = 2 * slope * (p * answer - px)
        found += slope * answer
        second += slope * answer * answer
        rest += tl.sum(slope, 1)
        if OWN:
            g_own = weight * tl.load(grad + B + b, mask=there, other=0.0)
            slope = root_gradient(g_own, xx + tl.sum((p * head - 2 * px) * head, 1), NORM)[:, None]
            to_head = 2 * slope * (p * head - px)
            found += slope * head
            second += slope * head * head
            rest += tl.sum(slope, 1)
        to_px = -2 * found
        to_moved = p * to_px + 2 * rest[:, None] * px
        to_weights = tl.sum(to_px * moved + second + rest[:, None] * moved * moved, 0)
        to_head += tl.dot(
            to_moved, load_map(maps + r * K * K, number, K, False), input_precision=PRECISION
        )
        to_map = tl.dot(tl.trans(to_moved), head, input_precision=PRECISION)
    to_rows += m * K
    at = b.to(tl.int64)[:, None] * D + number[None, :]
    tl.store(to_rows + at, to_head, mask=within)
    tl.store(to_rows + tl.cast(B, tl.int64) * D + at, to_answer, mask=within)
    shares += t.to(tl.int64) * M * (K * K + K + 1)
    square = (number < K)[:, None] & (number < K)[None, :]
    tl.store(shares + m * K * K + number[:, None] * K + number[None, :], to_map, mask=square)
    if KIND != 0:
        tl.store(shares + M * K * K + m * K + number, to_weights, mask=number < K)
    if KIND == 2:
        tl.store(shares + M * (K * K + K) + m, tl.sum(to_root, 0) / (2 * root))


@kernel
def shares_kernel(
    shares, first, to_maps, to_weights, to_beta, M, K, KIND: tl.constexpr, BLOCK: tl.constexpr
):
    """Add up the shares of the tiles of each relation; relations without queries have 0."""
    r = tl.program_id(0).to(tl.int64)
    number = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    maps, weights = M * K * K, M * K
    used = maps
    if KIND == 1:
        used = maps + weights
    if KIND == 2:
        used = maps + weights + M
    total = tl.zeros((BLOCK,), tl.float32)
    for t in range(tl.load(first + r), tl.load(first + r + 1)):
        at = shares + tl.cast(t, tl.int64) * (maps + weights + M) + number
        total += tl.load(at, mask=number < used, other=0.0)
    tl.store(to_maps + r * maps + number, total, mask=number < maps)
    if KIND != 0:
        after = number - maps
        tl.store(to_weights + r * weights + after, total, mask=(after >= 0) & (after < weights))
    if KIND == 2:
        after = number - maps - weights
        tl.store(to_beta + r * M + after, total, mask=(after >= 0) & (after < M))
