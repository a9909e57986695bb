"""The kernels of ``orth``: a map, and the gradients of its reflections, a map a program.

**Forward.** G starts as the identity and goes through one reflection after another. It is kept as
``H = √w∘G``, for which ``ũ = √w∘u`` is all that a reflection needs:

    H ← H − ũ y,    y = 2 ũᵀ H / ⟨ũ,ũ⟩

The rows y form W, with which ``G = I − Uᵀ W``; the backward pass takes them up. Nothing depends on the
length of u, but rows below 10⁻¹⁵ count as zero: they reflect nothing and have no gradient.

**Backward.** In coordinates ``√w∘x`` the map is orthogonal, ``G = I − Ũᵀ T Ũ`` with ``W = T Ũ`` and
``T⁻¹ + T⁻ᵀ = Ũ Ũᵀ``, so ``Tᵀ Ũ G = −W``. This removes T from the gradient of the plain form, whose Z is
``−Tᵀ Ũ ∂G = W Gᵀ ∂G``. Back in x, with L of the plain form, five products and no loop are left:

    Z = W diag(w)⁻¹ Gᵀ ∂G,    F = (L∘Z Wᵀ + (L∘Z Wᵀ)ᵀ) U

    ∂U = (Z − F) diag(w) − W ∂Gᵀ,    ∂w = Σ U∘(Z − F/2) over rows

Since nothing depends on the length of u, ∂u is at right angles to it; what rounding adds along u is taken
out again.
"""

from __future__ import annotations

from golde.kernels.triton.language import jit, kernel, tl
from golde.kernels.triton.products import mixed, multiplied, split


@kernel
def orth_kernel(
    U, weights, G, W, ROWS: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr,
    ACROSS: tl.constexpr = 16, SHORT: tl.constexpr = 1e-30,
):  # fmt: skip
    """``G = H(u_n) ··· H(u_1)``, and W.

    H has three axes so that a thread has every second row of one column in ``ACROSS``: sums over rows
    stay in the thread but for the last step, and few numbers of u go around. Rows past the last are zero
    anyway; where the compiler is told so, they take no registers, −0 being what a sum does not change by.
    """
    at = tl.program_id(0).to(tl.int64)
    number = tl.arange(0, BLOCK)
    row = number[None, :, None]
    column = ACROSS * tl.arange(0, BLOCK // ACROSS)[:, None, None]
    column += tl.arange(0, ACROSS)[None, None, :]
    used = row < (K + 1) // 2 * 2
    root = tl.sqrt(tl.load(weights + at * K + number, mask=number < K, other=1.0))
    found = tl.where(row == column, root[None, :, None], 0.0)
    U += at * ROWS * K
    W += at * ROWS * K
    following = tl.load(U + number, mask=(number < K) & (ROWS > 0), other=0.0)
    for done in range(0, ROWS):
        u = root * following
        U += K
        following = tl.load(U + number, mask=(number < K) & (done + 1 < ROWS), other=0.0)
        length = tl.sum(u * u, 0)
        c = tl.where(length > SHORT, 2 / tl.where(length > SHORT, length, 1.0), 0.0)
        u = u[None, :, None]
        y = c * tl.sum(tl.where(used, u * found, -0.0), 1, keep_dims=True)
        found = tl.where(used, found - u * y, 0.0)
        tl.store(W + column, y, mask=column < K)
        W += K
    inside = (row < K) & (column < K)
    found *= (1 / root)[None, :, None]
    tl.store(G + at * K * K + row * K + column, found, mask=inside)


@jit
def product(x, y):
    """``x y`` by three products of halves."""
    high, low = split(x)
    other_high, other_low = split(y)
    return multiplied(high, low, other_high, other_low, "tf32x3")


@kernel
def orth_backward_kernel(
    U, weights, G, W, grad, to_U, to_weights,
    ROWS: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Gradients of U and w under ``grad`` (L, K, K)."""
    at = tl.program_id(0).to(tl.int64)
    number = tl.arange(0, BLOCK)
    i, j = number[:, None], number[None, :]
    whole, some = at * K * K + i * K + j, at * ROWS * K + i * K + j
    in_whole, in_some = (i < K) & (j < K), (i < ROWS) & (j < K)
    w = tl.load(weights + at * K + number, mask=number < K, other=1.0)
    to_map = tl.load(grad + whole, mask=in_whole, other=0.0)
    turn = product(tl.trans(to_map), tl.load(G + whole, mask=in_whole, other=0.0))
    turn *= (1 / w)[None, :]
    mixed_W = mixed(tl.load(W + some, mask=in_some, other=0.0), BLOCK, BLOCK)
    Z = product(mixed_W, tl.trans(mixed(turn, BLOCK, BLOCK)))
    outer = product(mixed_W, tl.trans(mixed(to_map, BLOCK, BLOCK)))
    lower = product(mixed(Z, BLOCK, BLOCK), tl.trans(mixed_W))
    lower = tl.where(i > j, lower, tl.where(i == j, 0.5 * lower, 0.0))
    rows = tl.load(U + some, mask=in_some, other=0.0)
    mixed_U = tl.trans(mixed(tl.trans(rows), BLOCK, BLOCK))
    F = product(mixed(lower + tl.trans(lower), BLOCK, BLOCK), mixed_U)
    to_rows = (Z - F) * w[None, :] - outer
    length = tl.sum(rows * rows, 1)
    along = tl.sum(rows * to_rows, 1) / tl.where(length > 0, length, 1.0)
    tl.store(to_U + some, to_rows - along[:, None] * rows, mask=in_some)
    to_w = tl.sum(rows * (Z - 0.5 * F), 0)
    tl.store(to_weights + at * K + number, to_w, mask=number < K)
