"""Independent constructions that tests compare against: matrices, groups, decompositions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from golde.geometry import Geometry, Grouping
from golde.geometry.rotation import Rotation
from golde.kernels import Core, pairwise


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int, scale: float = 1.0) -> Tensor:
    return scale * torch.randn(*shape, generator=seeded(seed), dtype=torch.float64)


def householder(u: Tensor, w: Tensor) -> Tensor:
    """``I − 2 u uᵀ diag(w) / (uᵀ diag(w) u)`` as the paper prints it (Eq. 7), one vector."""
    W = torch.diag(w)
    return torch.eye(len(u), dtype=u.dtype) - 2 * torch.outer(u, u) @ W / (u @ W @ u)


def lorentz(k: int) -> Tensor:
    """``q = (−1, 1, …, 1)``."""
    q = torch.ones(k, dtype=torch.float64)
    q[0] = -1
    return q


def anisotropic(n: int, w: Tensor, *, seed: int) -> Tensor:
    """n random rows with ``|⟨u,u⟩_w|`` at least a third of ``Σ |w| u²``: well away from the light cone."""
    U = normal(n, len(w), seed=seed)
    squares = w.abs() * U.square()
    q = (squares * w.sign()).sum(-1, keepdim=True)
    near_cone = q.abs() < squares.sum(-1, keepdim=True) / 3
    # Near the cone both signs weigh alike, so three times the positive part decides for it.
    return torch.where(near_cone & (w > 0), 3 * U, U)


def random_isometry(w: Tensor, *, seed: int, flips: Tensor) -> Tensor:
    """``exp(W⁻¹ S) · diag(±1)`` with S skew: an element of O_w(k) that owes nothing to reflections."""
    S = normal(len(w), len(w), seed=seed, scale=0.5)
    root = w.abs().sqrt()
    A = torch.diag(w.sign() / root) @ (S - S.T) @ torch.diag(root)
    return torch.linalg.matrix_exp(A) @ torch.diag(flips)


def cartan_dieudonne(G: Tensor, w: Tensor, n: int) -> Tensor:
    """Exactly n rows U with ``Orth(U, w) = G`` (App. B by hand), or an error if parity forbids it.

    Each step takes a vector x of the subspace still to be settled, reflects ``G x − x`` away so that
    x is fixed, and goes on in the w-orthogonal complement of x. Left-over pairs cancel each other.
    """
    k, W = len(w), torch.diag(w)
    basis = torch.eye(k, dtype=G.dtype)  # columns span the subspace still to be settled
    found: list[Tensor] = []
    for step in range(k):
        x = basis @ normal(basis.shape[1], 256, seed=step)  # candidates as columns
        x = torch.cat((basis, x / x.norm(dim=0)), 1)
        moved = G @ x - x
        q_x, q_moved = (w @ x.square()).abs(), (w @ moved.square()).abs()
        # A reflection is as well conditioned as its vector is far from isotropic.
        quality = torch.minimum(q_x, q_moved / moved.square().sum(0).clamp_min(1e-20))
        fixed = moved.norm(dim=0) < 1e-9
        best = int(torch.where(fixed, q_x, quality).argmax())
        if not fixed[best]:
            u = moved[:, best]
            found.append(u)
            G = householder(u, w) @ G
        complement = torch.linalg.svd((x[:, best] @ W @ basis).unsqueeze(0)).Vh[1:].T
        basis = basis @ complement
    if len(found) > n or (n - len(found)) % 2:
        raise ValueError(f"{len(found)} reflections cannot be written as exactly {n}")
    spare = torch.eye(k, dtype=G.dtype)[:1].expand(n - len(found), k)
    # G = H(u_1) ⋯ H(u_m) and row 0 is applied first, so rows run backwards.
    return torch.cat([*(u.unsqueeze(0) for u in reversed(found)), spare])


def boost_matrix(b: Tensor) -> Tensor:
    """``[[√(1+‖b‖²), bᵀ], [b, √(I + b bᵀ)]]`` with a matrix square root, as in Proposition 3.4."""
    values, vectors = torch.linalg.eigh(torch.eye(len(b), dtype=b.dtype) + torch.outer(b, b))
    root = vectors @ torch.diag(values.sqrt()) @ vectors.T
    top = torch.cat(((1 + b @ b).sqrt().reshape(1, 1), b.reshape(1, -1)), 1)
    return torch.cat((top, torch.cat((b.reshape(-1, 1), root), 1)), 0)


def block_one(Q: Tensor) -> Tensor:
    """``diag(1, Q)``."""
    return torch.block_diag(torch.ones(1, 1, dtype=Q.dtype), Q)


def ask(group: Geometry, head: Tensor, maps: Any) -> Core:
    """The query side of heads (B, M, K) that take the maps in turn (or all the one map)."""
    index = torch.arange(len(head)) % len(maps[0])
    return group.query(head, maps, Grouping(index, len(maps[0]), group.numbers))


def distances(
    group: Geometry, head: Tensor, tail: Tensor, relation: int, *, back: bool = False
) -> Tensor:
    """``Σ_m d_m(G_r h, t)`` of every head (B, M, K) with every tail (N, M, K); ``back`` takes G⁻¹."""
    maps = group.maps(torch.tensor([relation]))
    maps = group.inverse(maps) if back else maps
    return pairwise(ask(group, head, maps), group.candidate(tail), group.finish, 1)


def randomised(group: nn.Module, *, seed: int, scale: float = 0.7) -> Any:
    """The group in float64 with every parameter drawn anew: maps, weights, curvatures, boosts."""
    group.double()
    generator = seeded(seed)
    with torch.no_grad():
        for parameter in group.parameters():
            parameter.normal_(std=scale, generator=generator)
    return group


def set_rows(rotation: Rotation, relation: int, component: int, rows: Tensor) -> None:
    """Store reflections in the order they act, all in ``U`` unless they alternate."""
    with torch.no_grad():
        rotation.U[relation, component, 0] = rows


def unit_hyperboloid(e: Tensor, beta: Tensor) -> Tensor:
    """``g_β(e)/√β = (cosh(‖e‖/√β), sinh(‖e‖/√β) e/‖e‖)`` (Eq. 11), one vector."""
    norm = e.norm()
    alpha = norm / beta.sqrt()
    return torch.cat((alpha.cosh().reshape(1), alpha.sinh() * e / norm))


def geodesic(u: Tensor, v: Tensor, beta: Tensor) -> Tensor:
    """``√β acosh(−⟨x, y⟩_q / β)`` between two tangent vectors (Eq. 13)."""
    x, y = unit_hyperboloid(u, beta), unit_hyperboloid(v, beta)
    return beta.sqrt() * torch.acosh(-(lorentz(len(x)) * x) @ y)


def tangent_map(G: Tensor, e: Tensor, beta: Tensor) -> Tensor:
    """``log ∘ G ∘ exp``: what a map of the hyperboloid does in tangent coordinates."""
    z = (G @ unit_hyperboloid(e, beta))[1:]
    return beta.sqrt() * torch.asinh(z.norm()) * z / z.norm()
