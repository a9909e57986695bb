"""The kernels of the fused pairwise distance, and how they come about.

**Forward.** A program owns a tile of the table. For one component after another it multiplies the core
vectors of its queries and candidates, finishes the product into distances without leaving registers,
and adds them up; the table is written once, and nothing of shape B×N×M exists.

**Backward.** With ``g`` the incoming gradient of the table and ``s = g · ∂d^norm/∂x`` the slope of each
pair, the product rule gives ``∂q = s c`` and ``∂c = sᵀ q`` for each component, and the gradient of a
scalar is the sum of its pointwise gradients over the pairs it takes part in. Nothing was kept from the
forward pass: x is multiplied out again, tile by tile. A program owns some rows of *one* side of one
component and walks over the other side, so every sum is finished by the program that began it: no
atomics, and two runs agree to the bit. Queries and candidates take the same kernel with the sides
exchanged (x, g and s are then transposed as they are read or formed). The gradient is linear in g, so a
weight on the whole sum is applied once, at the end.

**Long core vectors** (more than ``WHOLE`` numbers) are walked through in pieces, and their gradients do
not fit into registers. There one kernel forms the slopes of one component as a B×N table, with sums of
the scalars' gradients over each tile; the two products with that table are left to PyTorch, in whatever
precision it is set to (float32 unless asked otherwise), and the tiles' sums are added up by it.

Offsets within a component or table are 32-bit, for fewer registers, unless ``WIDE`` says that one may
pass 2³¹; offsets between components are always 64-bit. Outside a tensor, vectors read as 0 and scalars
as 1, which every finish survives, with an incoming gradient of 0.
"""

from __future__ import annotations

from golde.kernels.triton.language import jit, tl
from golde.kernels.triton.pointwise import (
    geodesic_gradient,
    geodesic_value,
    root_gradient,
    root_value,
)


@jit
def places(block, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    """The indices that a block covers, some of them perhaps past the end."""
    index = block * BLOCK + tl.arange(0, BLOCK)
    if WIDE:
        index = index.to(tl.int64)
    return index


@jit
def load_tile(pointer, rows, columns, by_row, by_column, ROWS, COLUMNS):
    inside = (rows < ROWS)[:, None] & (columns < COLUMNS)[None, :]
    at = rows[:, None] * by_row + columns[None, :] * by_column
    return tl.load(pointer + at, mask=inside, other=0.0)


@jit
def product_tile(
    q, c, rows, columns, by_b, by_qc, by_n, by_cc, B, N, C, PIECES: tl.constexpr,
    PRECISION: tl.constexpr, BLOCK_B: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """``⟨q_b, c_n⟩`` of one component for a tile of pairs, a piece of the core vectors at a time."""
    x = tl.zeros((BLOCK_B, BLOCK_N), tl.float32)
    for piece in range(PIECES):
        numbers = piece * BLOCK_C + tl.arange(0, BLOCK_C)
        own = load_tile(q, rows, numbers, by_b, by_qc, B, C)
        other = load_tile(c, columns, numbers, by_n, by_cc, N, C)
        x = tl.dot(own, tl.trans(other), x, input_precision=PRECISION)
    return x


@jit
def forward_kernel(
    q, c, root, a, n, out, weight, M, B, N, C, by_qm, by_b, by_qc, by_cm, by_n, by_cc,
    GEODESIC: tl.constexpr, NORM: tl.constexpr, ACCUMULATE: tl.constexpr, PIECES: tl.constexpr,
    PRECISION: tl.constexpr, WIDE: tl.constexpr,
    BLOCK_B: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """``out (+)= weight · Σ_m d_m^norm``, a tile of the (B, N) table a program.

    Programs that follow each other share their candidates, which then come from the cache.
    """
    down = tl.cdiv(B, BLOCK_B)
    program = tl.program_id(0)
    rows, columns = places(program % down, BLOCK_B, WIDE), places(program // down, BLOCK_N, WIDE)
    total = tl.zeros((BLOCK_B, BLOCK_N), tl.float32)
    for _ in range(M):
        x = product_tile(
            q, c, rows, columns, by_b, by_qc, by_n, by_cc, B, N, C,
            PIECES, PRECISION, BLOCK_B, BLOCK_N, BLOCK_C,
        )  # fmt: skip
        if GEODESIC:
            root_b = tl.load(root + rows, mask=rows < B, other=1.0)[:, None]
            a_b = tl.load(a + rows, mask=rows < B, other=1.0)[:, None]
            n_n = tl.load(n + columns, mask=columns < N, other=1.0)[None, :]
            total += geodesic_value(x, root_b, a_b, n_n, NORM)
            root += B
            a += B
            n += N
        else:
            total += root_value(x, NORM)
        q += by_qm
        c += by_cm
    total *= weight
    inside = (rows < B)[:, None] & (columns < N)[None, :]
    at = out + rows[:, None] * N + columns[None, :]
    if ACCUMULATE:
        total += tl.load(at, mask=inside, other=0.0)
    tl.store(at, total, mask=inside)


@jit
def gradients_kernel(
    own, other, root, a, n, grad, grad_own, grad_first, grad_second, weight, M, OWN, OTHER, C,
    by_own_m, by_own, by_own_c, by_other_m, by_other, by_other_c,
    by_to_m, by_to, by_to_c, by_grad_own, by_grad_other,
    OF_QUERIES: tl.constexpr, GEODESIC: tl.constexpr, NORM: tl.constexpr, PRECISION: tl.constexpr,
    WIDE: tl.constexpr, BLOCK_OWN: tl.constexpr, BLOCK_OTHER: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Gradients of the core vectors and scalars of one side; a program owns some rows of it.

    Scalars are √β and a if the side is the queries', else n alone (``grad_second`` is not touched).
    Programs that follow each other share their part of the incoming gradient.
    """
    m = (tl.program_id(0) % M).to(tl.int64)
    rows = places(tl.program_id(0) // M, BLOCK_OWN, WIDE)
    numbers = tl.arange(0, BLOCK_C)
    other += m * by_other_m
    if OF_QUERIES:
        root += m * OWN
        a += m * OWN
        n += m * OTHER
    else:
        root += m * OTHER
        a += m * OTHER
        n += m * OWN
    if GEODESIC:
        if OF_QUERIES:
            root_pair = tl.load(root + rows, mask=rows < OWN, other=1.0)[:, None]
            a_pair = tl.load(a + rows, mask=rows < OWN, other=1.0)[:, None]
        else:
            n_pair = tl.load(n + rows, mask=rows < OWN, other=1.0)[:, None]
    vectors = load_tile(own + m * by_own_m, rows, numbers, by_own, by_own_c, OWN, C)
    to_vectors = tl.zeros((BLOCK_OWN, BLOCK_C), tl.float32)
    to_first = tl.zeros((BLOCK_OWN,), tl.float32)
    to_second = tl.zeros((BLOCK_OWN,), tl.float32)
    for block in range(0, tl.cdiv(OTHER, BLOCK_OTHER)):
        columns = places(block, BLOCK_OTHER, WIDE)
        others = load_tile(other, columns, numbers, by_other, by_other_c, OTHER, C)
        g = load_tile(grad, rows, columns, by_grad_own, by_grad_other, OWN, OTHER)
        x = tl.dot(vectors, tl.trans(others), input_precision=PRECISION)
        if GEODESIC:
            if OF_QUERIES:
                n_pair = tl.load(n + columns, mask=columns < OTHER, other=1.0)[None, :]
            else:
                root_pair = tl.load(root + columns, mask=columns < OTHER, other=1.0)[None, :]
                a_pair = tl.load(a + columns, mask=columns < OTHER, other=1.0)[None, :]
            slope, to_root, to_a, to_n = geodesic_gradient(g, x, root_pair, a_pair, n_pair, NORM)
            if OF_QUERIES:
                to_first += tl.sum(to_root, 1)
                to_second += tl.sum(to_a, 1)
            else:
                to_first += tl.sum(to_n, 1)
        else:
            slope = root_gradient(g, x, NORM)
        to_vectors = tl.dot(slope, others, to_vectors, input_precision=PRECISION)
    at = grad_own + m * by_to_m + rows[:, None] * by_to + numbers[None, :] * by_to_c
    inside = (rows < OWN)[:, None] & (numbers < C)[None, :]
    tl.store(at, to_vectors * weight, mask=inside)
    if GEODESIC:
        tl.store(grad_first + m * OWN + rows, to_first * weight, mask=rows < OWN)
        if OF_QUERIES:
            tl.store(grad_second + m * OWN + rows, to_second * weight, mask=rows < OWN)


@jit
def slopes_kernel(
    q, c, root, a, n, grad, slopes, sums_root, sums_a, sums_n, weight, B, N, C,
    by_b, by_qc, by_n, by_cc, by_grad_b, by_grad_n,
    GEODESIC: tl.constexpr, NORM: tl.constexpr, PIECES: tl.constexpr, PRECISION: tl.constexpr,
    WIDE: tl.constexpr, BLOCK_B: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """The slopes (B, N) of one component, and the scalars' gradients summed over each tile.

    Sums for queries are (tiles across, B), for candidates (tiles down, N).
    """
    down = tl.cdiv(B, BLOCK_B)
    tile_b, tile_n = tl.program_id(0) % down, tl.program_id(0) // down
    rows, columns = places(tile_b, BLOCK_B, WIDE), places(tile_n, BLOCK_N, WIDE)
    x = product_tile(
        q, c, rows, columns, by_b, by_qc, by_n, by_cc, B, N, C,
        PIECES, PRECISION, BLOCK_B, BLOCK_N, BLOCK_C,
    )  # fmt: skip
    g = load_tile(grad, rows, columns, by_grad_b, by_grad_n, B, N) * weight
    if GEODESIC:
        root_b = tl.load(root + rows, mask=rows < B, other=1.0)[:, None]
        a_b = tl.load(a + rows, mask=rows < B, other=1.0)[:, None]
        n_n = tl.load(n + columns, mask=columns < N, other=1.0)[None, :]
        slope, to_root, to_a, to_n = geodesic_gradient(g, x, root_b, a_b, n_n, NORM)
        tl.store(sums_root + tile_n.to(tl.int64) * B + rows, tl.sum(to_root, 1), mask=rows < B)
        tl.store(sums_a + tile_n.to(tl.int64) * B + rows, tl.sum(to_a, 1), mask=rows < B)
        tl.store(sums_n + tile_b.to(tl.int64) * N + columns, tl.sum(to_n, 0), mask=columns < N)
    else:
        slope = root_gradient(g, x, NORM)
    inside = (rows < B)[:, None] & (columns < N)[None, :]
    tl.store(slopes + rows[:, None] * N + columns[None, :], slope, mask=inside)
