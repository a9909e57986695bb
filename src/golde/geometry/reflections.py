"""Generalised orthogonal maps as products of Householder reflections, for any weighting ``w``.

The order is stated once, here: row 0 of ``U`` is applied first, so as a matrix
``Orth(U, w) = H(u_n) ··· H(u_2) H(u_1)`` (Eq. 17; the appendix reads Eq. 8 the same way).
"""

from __future__ import annotations

import torch
from torch import Tensor


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
    """``Orth(U, w) = I − Uᵀ T U diag(w)``, with ``T⁻¹ = ½ diag(S) + tril(S, −1)``, ``S = U diag(w) Uᵀ``.

    The compact WY form: one batched triangular solve replaces as many dependent steps as ``U`` has
    rows. The map does not depend on the length of a row, so rows are first scaled to
    ``⟨u, u⟩_w = ±1``, which keeps ``T⁻¹`` well conditioned in float32. A zero row is the identity.
    """
    length = inner(U, U, w.unsqueeze(-2))  # (..., n)
    sign = torch.where(length < 0, -1.0, 1.0).to(U)
    tiny = torch.finfo(U.dtype).tiny
    U = U * (length.abs() + tiny).rsqrt().unsqueeze(-1)
    Uw = U * w.unsqueeze(-2)  # (..., n, K)
    S = Uw @ U.mT
    T_inverse = torch.tril(S, -1) + torch.diag_embed(0.5 * sign)
    TUw: Tensor = torch.linalg.solve_triangular(T_inverse, Uw, upper=False)
    return torch.eye(U.shape[-1], dtype=U.dtype, device=U.device) - U.mT @ TUw


def orth_inverse(G: Tensor, w: Tensor) -> Tensor:
    """``G⁻¹ = diag(w)⁻¹ Gᵀ diag(w)``: the same product with its rows reversed."""
    return G.mT * w.unsqueeze(-2) / w.unsqueeze(-1)
