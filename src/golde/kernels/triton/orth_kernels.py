"""The kernels of ``orth``: a map, and the gradients of its reflections, held in registers by one program.

**Forward.** ``G`` starts as the identity and goes through one reflection after another,
``G ← G − c u (vᵀ G)`` with ``v = w∘u`` and ``c = 2/⟨u,v⟩``. The length of u does not matter and is
scaled away first (weights are positive here), so that nothing overflows.

**Backward.** A reflection undoes itself, so the maps before each of them need not have been kept: from
the last row of U to the first, G goes through the same reflection once more. With ``s = Gᵀ v``,
``y = ∂Gᵀ u`` and ``z = ∂G s``, G now being the map before, the product rule gives

    ∂u = −c z + ∂ℓ v,    ∂v = −c G y + ∂ℓ u,    ∂ℓ = ½ c² ⟨u, z⟩,    ∂G ← ∂G − c v yᵀ

where ℓ is ``⟨u,v⟩``; and v is ``w∘u``. A zero row reflects nothing and has no gradient.
"""

from __future__ import annotations

from golde.kernels.triton.language import jit, kernel, tl


@jit
def load_row(U, w, number, K):
    """u and v of one reflection, scaled so that ⟨u,v⟩ is close to 1 (0 for a zero row); c, the scale."""
    u = tl.load(U + number, mask=number < K, other=0.0)[:, None]
    length = tl.sum(w * u * u, 0)[:, None]
    scale = tl.where(length > 0, tl.rsqrt(tl.where(length > 0, length, 1.0)), 0.0)
    u = scale * u
    v = w * u
    return u, v, 2 / tl.where(length > 0, tl.sum(u * v, 0)[:, None], 1.0), scale


@kernel
def orth_kernel(U, weights, G, ROWS, K, BLOCK: tl.constexpr):
    """``G = H(u_n) ··· H(u_1)``, a map a program."""
    at = tl.program_id(0).to(tl.int64)
    number = tl.arange(0, BLOCK)
    w = tl.load(weights + at * K + number, mask=number < K, other=0.0)[:, None]
    found = (number[:, None] == number[None, :]).to(tl.float32)
    for row in range(0, ROWS):
        u, v, c, _ = load_row(U + (at * ROWS + row) * K, w, number, K)
        found -= c * u * tl.sum(v * found, 0)[None, :]
    inside = (number < K)[:, None] & (number < K)[None, :]
    tl.store(G + at * K * K + number[:, None] * K + number[None, :], found, mask=inside)


@kernel
def orth_backward_kernel(U, weights, G, grad, to_U, to_weights, ROWS, K, BLOCK: tl.constexpr):
    """Gradients of U and w under ``grad`` (L, K, K)."""
    at = tl.program_id(0).to(tl.int64)
    number = tl.arange(0, BLOCK)
    w = tl.load(weights + at * K + number, mask=number < K, other=0.0)[:, None]
    square = number[:, None] * K + number[None, :]
    inside = (number < K)[:, None] & (number < K)[None, :]
    found = tl.load(G + at * K * K + square, mask=inside, other=0.0)
    to_found = tl.load(grad + at * K * K + square, mask=inside, other=0.0)
    to_w = tl.zeros((BLOCK, 1), tl.float32)
    for back in range(0, ROWS):
        row = at * ROWS + ROWS - 1 - back
        u, v, c, scale = load_row(U + row * K, w, number, K)
        found -= c * u * tl.sum(v * found, 0)[None, :]
        s, y = tl.sum(v * found, 0)[None, :], tl.sum(u * to_found, 0)[None, :]
        z = tl.sum(to_found * s, 1)[:, None]
        to_length = 0.5 * c * c * tl.sum(u * z, 0)[:, None]
        to_v = to_length * u - c * tl.sum(found * y, 1)[:, None]
        to_u = to_length * v - c * z + w * to_v
        to_w += u * to_v
        tl.store(to_U + row * K + number[:, None], scale * to_u, mask=(number < K)[:, None])
        to_found -= c * v * y
    tl.store(to_weights + at * K + number[:, None], to_w, mask=(number < K)[:, None])
