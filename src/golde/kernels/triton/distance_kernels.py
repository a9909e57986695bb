"""The kernels of the fused pairwise distance, and how they come about.

**Packing.** Core vectors and scalars are first copied into blocks that need no bounds: (M, rows, width)
with rows a multiple of every tile's and width a power of two (or a multiple of ``WHOLE``), vectors
padded with 0 and scalars with 1, which every finish survives. On the way ``Geodesic.sides`` is worked
out. Copying is next to nothing, and the loops below then neither mask nor convert. The kernels of a
training step write both sides in this form at once (``batch_kernels``).

**Precision.** Products are those of ``products``. For the forward pass core vectors are split once, while
they are packed. Backward they are split on the way, as slopes have to be: there, memory for halves would
leave too few programs running side by side.

**Forward.** A program owns a tile of the table. For one component after another it multiplies the core
vectors of its queries and candidates, finishes the product into distances without leaving registers,
and adds them up; the table is written once, and nothing of shape B×N×M exists.

**Backward.** With ``g`` the incoming gradient of the table and ``s = g · ∂d^norm/∂x`` the slope of each
pair, the product rule gives ``∂q = s c`` and ``∂c = sᵀ q`` for each component, and the gradient of a
scalar is the sum of its pointwise gradients over the pairs it takes part in. Nothing was kept from the
forward pass: x is multiplied out again, tile by tile, once for both sides. A program owns a tile of the
candidates of *one* component, or several one after another (``division``), and walks over all queries for
each. What it finds for the candidates is complete; its share of the queries' gradients goes to a part of
its own, and the parts are added up afterwards, in their order: no atomics, and two runs agree to the bit.
The gradient is linear in g, so a weight on the whole sum is applied to what is stored, not pair by pair.

**Long core vectors** (more than ``WHOLE`` numbers) are walked through in pieces, and their gradients do
not fit into registers. There one kernel forms the slopes of one component as a B×N table, with sums of
the scalars' gradients over each tile; the two products with that table are left to PyTorch, in whatever
precision it is set to (float32 unless asked otherwise), and the tiles' sums are added up by it.

**Query with its own candidate.** Where query b meets candidate b alone there is nothing to share: a
program takes some rows of one component, multiplies them number by number and finishes; backward it
forms the products anew and writes every gradient at once.

Offsets into a table are 32-bit, for fewer registers, unless ``WIDE`` says that one may pass 2³¹; offsets
between components are always 64-bit.
"""

from __future__ import annotations

from golde.kernels.triton.language import exp2, jit, kernel, tl
from golde.kernels.triton.pointwise import (
    LOG2_E,
    geodesic_gradient,
    geodesic_value,
    one_minus_exp,
    root_gradient,
    root_value,
)
from golde.kernels.triton.products import halves, mixed, mixed_order, multiplied, split

QUERY_SIDES = 5
"""√β, 1/√β, a, e^{−a}, 1 − e^{−a}."""

CANDIDATE_SIDES = 2
"""n, 1/n."""


@jit
def places(block, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    """The indices that a block covers."""
    index = block * BLOCK + tl.arange(0, BLOCK)
    if WIDE:
        index = index.to(tl.int64)
    return index


@jit
def store_packed(packed, halved, half, at, x, mask, PRECISION: tl.constexpr):
    """x and, where they are wanted, its halves; the low ones lie ``half`` further on."""
    tl.store(packed + at, x, mask=mask)
    if PRECISION == "tf32x3":
        high, low = split(x)
        tl.store(halved + at, high, mask=mask)
        tl.store(halved + half + at, split(low)[0], mask=mask)


@kernel
def pack_kernel(
    vectors, first, second, packed, halved, sides,
    M, rows, padded, C, by_m, by_row, by_number, WIDTH,
    SCALARS: tl.constexpr, PRECISION: tl.constexpr, BLOCK: tl.constexpr, BLOCK_C: tl.constexpr,
    SCALE: tl.constexpr = -LOG2_E,
):  # fmt: skip
    """Copy one side into its padded blocks: SCALARS is 2 for queries √β and a, 1 for candidates n, or 0."""
    m = (tl.program_id(0) % M).to(tl.int64)
    row = (tl.program_id(0) // M) * BLOCK + tl.arange(0, BLOCK)
    inside = row < rows
    half = tl.cast(M, tl.int64) * padded * WIDTH
    for start in range(0, WIDTH, BLOCK_C):
        number = start + tl.arange(0, BLOCK_C)
        at = m * by_m + row.to(tl.int64)[:, None] * by_row + number[None, :] * by_number
        there = inside[:, None] & (number < C)[None, :]
        to = (m * padded + row[:, None]) * WIDTH + number[None, :]
        found = tl.load(vectors + at, mask=there, other=0.0)
        all_ = (row < padded)[:, None] & (number < WIDTH)[None, :]
        store_packed(packed, halved, half, to, found, all_, PRECISION)
    if SCALARS == 1:
        n = tl.load(first + m * rows + row, mask=inside, other=1.0)
        to = sides + m * 2 * padded + row
        tl.store(to, n)
        tl.store(to + padded, 1 / n)
    if SCALARS == 2:
        root = tl.load(first + m * rows + row, mask=inside, other=1.0)
        a = tl.load(second + m * rows + row, mask=inside, other=1.0)
        to = sides + m * 5 * padded + row
        tl.store(to, root)
        tl.store(to + padded, 1 / root)
        tl.store(to + 2 * padded, a)
        tl.store(to + 3 * padded, exp2(a * SCALE))
        tl.store(to + 4 * padded, one_minus_exp(a))


@jit
def load_query_sides(sides, rows, padded):
    at = sides + rows
    root = tl.load(at)[:, None]
    over_root = tl.load(at + padded)[:, None]
    a = tl.load(at + 2 * padded)[:, None]
    e_a = tl.load(at + 3 * padded)[:, None]
    from_a = tl.load(at + 4 * padded)[:, None]
    return root, over_root, a, e_a, from_a


@jit
def product_tile(
    q, q_low, c, c_low, rows, columns,
    WIDTH: tl.constexpr, BLOCK_C: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """``⟨q_b, c_n⟩`` of one component for a tile of pairs, a piece of the core vectors at a time."""
    number = tl.arange(0, BLOCK_C)
    own, other = rows[:, None] * WIDTH + number[None, :], columns[None, :] * WIDTH + number[:, None]
    x = multiplied(
        tl.load(q + own),
        tl.load(q_low + own),
        tl.load(c + other),
        tl.load(c_low + other),
        PRECISION,
    )
    for start in range(BLOCK_C, WIDTH, BLOCK_C):
        x += multiplied(
            tl.load(q + own + start), tl.load(q_low + own + start),
            tl.load(c + other + start), tl.load(c_low + other + start),
            PRECISION,
        )  # fmt: skip
    return x


@jit
def distance_tile(
    total, q, q_low, c, c_low, of_query, of_candidate, rows, columns, M, rows_q, rows_c,
    GEODESIC: tl.constexpr, NORM: tl.constexpr, PRECISION: tl.constexpr, WIDTH: tl.constexpr,
    BLOCK_C: tl.constexpr,
):  # fmt: skip
    """``total + Σ_m d_m^norm`` for a tile of pairs."""
    for _ in range(M):
        x = product_tile(q, q_low, c, c_low, rows, columns, WIDTH, BLOCK_C, PRECISION)
        if GEODESIC:
            root, over_root, a, e_a, from_a = load_query_sides(of_query, rows, rows_q)
            n = tl.load(of_candidate + columns)[None, :]
            over_n = tl.load(of_candidate + rows_c + columns)[None, :]
            total += geodesic_value(x, root, over_root, a, e_a, from_a, n, over_n, NORM)
            of_query += 5 * rows_q
            of_candidate += 2 * rows_c
        else:
            total += root_value(x, NORM)
        q += tl.cast(rows_q, tl.int64) * WIDTH
        q_low += tl.cast(rows_q, tl.int64) * WIDTH
        c += tl.cast(rows_c, tl.int64) * WIDTH
        c_low += tl.cast(rows_c, tl.int64) * WIDTH
    return total


@kernel
def forward_kernel(
    q, q_low, c, c_low, of_query, of_candidate, out, weight, M, B, N, rows_q, rows_c,
    GEODESIC: tl.constexpr, NORM: tl.constexpr, ACCUMULATE: tl.constexpr, WIDE: tl.constexpr,
    PRECISION: tl.constexpr, WIDTH: tl.constexpr,
    BLOCK_B: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """``out (+)= weight · Σ_m d_m^norm``, a tile of the (B, N) table a program.

    Programs that follow each other share their candidates, which then come from the cache.
    """
    down = tl.cdiv(B, BLOCK_B)
    program = tl.program_id(0)
    rows, columns = places(program % down, BLOCK_B, WIDE), places(program // down, BLOCK_N, WIDE)
    total = weight * distance_tile(
        tl.zeros((BLOCK_B, BLOCK_N), tl.float32), q, q_low, c, c_low, of_query, of_candidate,
        rows, columns, M, rows_q, rows_c, GEODESIC, NORM, PRECISION, WIDTH, BLOCK_C,
    )  # fmt: skip
    inside = (rows < B)[:, None] & (columns < N)[None, :]
    at = out + rows[:, None] * N + columns[None, :]
    if ACCUMULATE:
        total += tl.load(at, mask=inside, other=0.0)
    tl.store(at, total, mask=inside)


@kernel
def backward_kernel(
    q, c, of_query, of_candidate, grad, to_q, to_c, to_query, to_candidate, weight, M, rows_q, rows_c,
    each,
    GEODESIC: tl.constexpr, NORM: tl.constexpr, WIDE: tl.constexpr, PRECISION: tl.constexpr,
    WIDTH: tl.constexpr, KEPT: tl.constexpr, BLOCK_B: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Gradients of both sides; a program owns ``each`` tiles of the candidates of one component.

    ``grad`` (rows_q, rows_c) is padded with 0. ``to_q`` and ``to_query`` have one part for each program of
    a component; of the padded numbers of a row ``KEPT`` are stored. Programs that follow each other read
    the same columns of the incoming gradient.
    """
    m = (tl.program_id(0) % M).to(tl.int64)
    part = tl.program_id(0) // M
    number = tl.arange(0, WIDTH)
    q += m * rows_q * WIDTH
    c += m * rows_c * WIDTH
    to_c += m * rows_c * KEPT
    to_q += (part * M + m) * rows_q * KEPT
    kept = (number < KEPT)[None, :]
    if GEODESIC:
        of_query += m * 5 * rows_q
        of_candidate += m * 2 * rows_c
        to_candidate += m * rows_c
        to_query += (part * M + m) * 2 * rows_q
    begin = part * each
    for tile in range(begin, tl.minimum(begin + each, rows_c // BLOCK_N)):
        columns = places(tile, BLOCK_N, WIDE)
        turned = mixed_order(columns, BLOCK_N)
        others = tl.load(c + turned[:, None] * WIDTH + number[None, :])
        across = tl.load(c + columns[None, :] * WIDTH + number[:, None])
        others, others_low = halves(others, PRECISION)
        across, across_low = halves(across, PRECISION)
        to_others = tl.zeros((BLOCK_N, WIDTH), tl.float32)
        if GEODESIC:
            n = tl.load(of_candidate + columns)[None, :]
            over_n = tl.load(of_candidate + rows_c + columns)[None, :]
            to_n = tl.zeros((BLOCK_B, BLOCK_N), tl.float32)  # summed once, at the end
        for block in range(0, rows_q // BLOCK_B):
            rows = places(block, BLOCK_B, WIDE)
            at_vectors = rows[:, None] * WIDTH + number[None, :]
            vectors, vectors_low = halves(tl.load(q + at_vectors), PRECISION)
            g = tl.load(grad + rows[:, None] * rows_c + columns[None, :])
            x = multiplied(vectors, vectors_low, across, across_low, PRECISION)
            if GEODESIC:
                root, over_root, a, e_a, from_a = load_query_sides(of_query, rows, rows_q)
                slope, by_root, by_a, by_n = geodesic_gradient(
                    g, x, root, over_root, a, e_a, from_a, n, over_n, NORM
                )
                sum_root, sum_a = tl.sum(by_root, 1) * weight, tl.sum(by_a, 1) * weight
                to_n += by_n
                if tile > begin:
                    sum_root += tl.load(to_query + rows)
                    sum_a += tl.load(to_query + rows_q + rows)
                tl.store(to_query + rows, sum_root)
                tl.store(to_query + rows_q + rows, sum_a)
            else:
                slope = root_gradient(g, x, NORM)
            slope, slope_low = halves(mixed(slope, BLOCK_B, BLOCK_N), PRECISION)
            share = multiplied(slope, slope_low, others, others_low, PRECISION) * weight
            at_share = rows[:, None] * KEPT + number[None, :]
            if tile > begin:
                share += tl.load(to_q + at_share, mask=kept, other=0.0)
            tl.store(to_q + at_share, share, mask=kept)
            to_others += multiplied(
                tl.trans(slope), tl.trans(slope_low), vectors, vectors_low, PRECISION
            )
        tl.store(to_c + turned[:, None] * KEPT + number[None, :], to_others * weight, mask=kept)
        if GEODESIC:
            tl.store(to_candidate + columns, tl.sum(to_n, 0) * weight)
        tl.debug_barrier()  # what was stored for the queries is read again, perhaps by other threads


@kernel
def sum_kernel(parts, total, count, PARTS, BLOCK: tl.constexpr, UNROLL: tl.constexpr):
    """``Σ_i parts[i]`` in order; several parts are on their way at a time."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    found = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, PARTS, UNROLL):
        for step in tl.static_range(UNROLL):
            part = start + step
            there = inside & (part < PARTS)
            found += tl.load(parts + tl.cast(part, tl.int64) * count + at, mask=there, other=0.0)
    tl.store(total + at, found, mask=inside)


@kernel
def slopes_kernel(
    q, q_low, c, c_low, of_query, of_candidate, grad, slopes, sums_root, sums_a, sums_n,
    rows_q, rows_c,
    GEODESIC: tl.constexpr, NORM: tl.constexpr, WIDE: tl.constexpr, PRECISION: tl.constexpr,
    WIDTH: tl.constexpr, BLOCK_B: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """The slopes (rows_q, rows_c) of one component, and the scalars' gradients summed over each tile.

    Sums for queries are (tiles across, rows_q), for candidates (tiles down, rows_c).
    """
    down = rows_q // BLOCK_B
    tile_b, tile_n = tl.program_id(0) % down, tl.program_id(0) // down
    rows, columns = places(tile_b, BLOCK_B, WIDE), places(tile_n, BLOCK_N, WIDE)
    x = product_tile(q, q_low, c, c_low, rows, columns, WIDTH, BLOCK_C, PRECISION)
    at = rows[:, None] * rows_c + columns[None, :]
    g = tl.load(grad + at)
    if GEODESIC:
        root, over_root, a, e_a, from_a = load_query_sides(of_query, rows, rows_q)
        n = tl.load(of_candidate + columns)[None, :]
        over_n = tl.load(of_candidate + rows_c + columns)[None, :]
        slope, by_root, by_a, by_n = geodesic_gradient(
            g, x, root, over_root, a, e_a, from_a, n, over_n, NORM
        )
        tl.store(sums_root + tile_n.to(tl.int64) * rows_q + rows, tl.sum(by_root, 1))
        tl.store(sums_a + tile_n.to(tl.int64) * rows_q + rows, tl.sum(by_a, 1))
        tl.store(sums_n + tile_b.to(tl.int64) * rows_c + columns, tl.sum(by_n, 0))
    else:
        slope = root_gradient(g, x, NORM)
    tl.store(slopes + at, slope)


@jit
def load_rows(pointer, rows, numbers, by_row, by_number, ROWS, C):
    inside = (rows < ROWS)[:, None] & (numbers < C)[None, :]
    at = rows[:, None] * by_row + numbers[None, :] * by_number
    return tl.load(pointer + at, mask=inside, other=0.0)


@kernel
def paired_kernel(
    q, c, root, a, n, grad, out, to_q, to_c, to_root, to_a, to_n, M, rows, C,
    by_qm, by_qb, by_qc, by_cm, by_cb, by_cc,
    GEODESIC: tl.constexpr, NORM: tl.constexpr, BACKWARD: tl.constexpr, WIDTH: tl.constexpr,
    BLOCK: tl.constexpr, BLOCK_C: tl.constexpr, SCALE: tl.constexpr = -LOG2_E,
):  # fmt: skip
    """``out[m, b] = d_m(q_b, c_b)^norm``, or with ``BACKWARD`` all gradients under ``grad`` (rows,).

    Gradients of vectors are contiguous, (M, rows, C), as are the scalars of both sides, (M, rows).
    """
    m = (tl.program_id(0) % M).to(tl.int64)
    row = (tl.program_id(0) // M).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = row < rows
    q += m * by_qm
    c += m * by_cm
    x = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, WIDTH, BLOCK_C):
        number = start + tl.arange(0, BLOCK_C)
        own = load_rows(q, row, number, by_qb, by_qc, rows, C)
        x += tl.sum(own * load_rows(c, row, number, by_cb, by_cc, rows, C), 1)
    at = m * rows + row
    if GEODESIC:
        root_b = tl.load(root + at, mask=inside, other=1.0)
        a_b = tl.load(a + at, mask=inside, other=1.0)
        n_b = tl.load(n + at, mask=inside, other=1.0)
        over_root, over_n = 1 / root_b, 1 / n_b
        e_a, from_a = exp2(a_b * SCALE), one_minus_exp(a_b)
    if BACKWARD:
        g = tl.load(grad + row, mask=inside, other=0.0)
        if GEODESIC:
            slope, by_root, by_a, by_n = geodesic_gradient(
                g, x, root_b, over_root, a_b, e_a, from_a, n_b, over_n, NORM
            )
            tl.store(to_root + at, by_root, mask=inside)
            tl.store(to_a + at, by_a, mask=inside)
            tl.store(to_n + at, by_n, mask=inside)
        else:
            slope = root_gradient(g, x, NORM)
        for start in range(0, WIDTH, BLOCK_C):
            number = start + tl.arange(0, BLOCK_C)
            there = inside[:, None] & (number < C)[None, :]
            to = at[:, None] * C + number[None, :]
            other = load_rows(c, row, number, by_cb, by_cc, rows, C)
            tl.store(to_q + to, slope[:, None] * other, mask=there)
            own = load_rows(q, row, number, by_qb, by_qc, rows, C)
            tl.store(to_c + to, slope[:, None] * own, mask=there)
    else:
        if GEODESIC:
            value = geodesic_value(x, root_b, over_root, a_b, e_a, from_a, n_b, over_n, NORM)
        else:
            value = root_value(x, NORM)
        tl.store(out + at, value, mask=inside)
