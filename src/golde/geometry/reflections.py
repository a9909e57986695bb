"""Generalised orthogonal maps as products of Householder reflections, for any weighting ``w``.

The order is stated once, here: row 0 of ``U`` is applied first, so as a matrix
``Orth(U, w) = H(u_n) ··· H(u_2) H(u_1)`` (Eq. 17; the appendix reads Eq. 8 the same way).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from golde.kernels.triton.support import fuses

LARGEST_FUSED = 64
"""Dimension and number of reflections up to which a kernel holds a map in registers."""


def inner(x: Tensor, y: Tensor, w: Tensor) -> Tensor:
    """``⟨x, y⟩_w = Σ w_i x_i y_i`` over the last axis (Eq. 3)."""
    return (w * x * y).sum(-1)


def reflect(x: Tensor, u: Tensor, w: Tensor) -> Tensor:
    """``H(u, w) x = x − 2 ⟨u, x⟩_w / ⟨u, u⟩_w · u`` (Eq. 7); ``u`` must be anisotropic."""
    return x - 2 * (inner(u, x, w) / inner(u, u, w)).unsqueeze(-1) * u


def orth_apply(x: Tensor, U: Tensor, w: Tensor) -> Tensor:
    """``Orth(U, w) x`` one reflection after another (Eq. 17): the reference for ``orth_matrix``."""
    for u in U.unbind(-2):
        x = reflect(x, u, w)
    return x


def orth_matrix(U: Tensor, w: Tensor) -> Tensor:
    """``Orth(U, w) = I − Uᵀ T V``, with ``V = U diag(w)``, ``T⁻¹ = ½ diag(S) + tril(S, −1)``, ``S = V Uᵀ``.

    The compact WY form: one batched triangular solve replaces as many dependent steps as ``U`` has
    rows. The map does not depend on the length of a row, so rows are first scaled to
    ``⟨u, u⟩_w = ±1``, which keeps ``T⁻¹`` well conditioned in float32. A zero row is the identity.
    """
    if fuses(U) and max(U.shape[-2:]) <= LARGEST_FUSED:
        from golde.kernels.triton.orth import fused_orth

        return fused_orth(U, w)
    return _compact(U, U * w.unsqueeze(-2))


class _Compact(torch.autograd.Function):
    """``G = I − Uᵀ T V`` and its gradient, which keeps ``T`` and so needs no solve.

    With ``W = T V`` and ``Z = −Tᵀ U ∂G``: ``∂S = −L ∘ Z Wᵀ``, where ``T⁻¹ = L ∘ S``, and then
    ``∂V = Z + ∂S U``, ``∂U = ∂Sᵀ V − W ∂Gᵀ``. Scaling is a constant to it, as G does not depend on it.
    """

    @staticmethod
    def forward(ctx: Any, U: Tensor, V: Tensor) -> Tensor:
        length = (U * V).sum(-1, keepdim=True)  # (..., n, 1)
        scale = (length.abs() + torch.finfo(U.dtype).tiny).rsqrt()
        U, V = U * scale, V * scale
        T_inverse = (V @ U.mT).mul_(_lower(U))
        T_inverse.diagonal(dim1=-2, dim2=-1).copy_(torch.where(length < 0, -0.5, 0.5).squeeze(-1))
        T = torch.linalg.solve_triangular(T_inverse, _eye(T_inverse), upper=False)
        W = T @ V
        ctx.save_for_backward(U, V, T, W, scale)
        G: Tensor = _eye(W) - U.mT @ W
        return G

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        U, V, T, W, scale = ctx.saved_tensors
        Z = T.mT @ (U @ -grads[0])
        grad_S = (Z @ W.mT).mul_(-_lower(U))
        grad_U = (grad_S.mT @ V).sub_(W @ grads[0].mT)
        grad_V = (grad_S @ U).add_(Z)
        return grad_U.mul_(scale), grad_V.mul_(scale)


_compact: Callable[[Tensor, Tensor], Tensor] = _Compact.apply


def _eye(like: Tensor) -> Tensor:
    return torch.eye(like.shape[-1], dtype=like.dtype, device=like.device)


def _lower(U: Tensor) -> Tensor:
    """The factor L: ones below the diagonal, ½ on it, (n, n)."""
    ones = U.new_ones(U.shape[-2], U.shape[-2]).tril_()
    return ones - 0.5 * _eye(ones)


def orth_inverse(G: Tensor, w: Tensor) -> Tensor:
    """``G⁻¹ = diag(w)⁻¹ Gᵀ diag(w)``: the same product with its rows reversed."""
    return G.mT * w.unsqueeze(-2) / w.unsqueeze(-1)
