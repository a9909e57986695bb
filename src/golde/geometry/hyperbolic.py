"""Hyperbolic components: relation-specific hyperboloids of curvature −1/β (Eq. 2, 11–13)."""

from __future__ import annotations

from typing import NamedTuple, Unpack

import torch
from torch import Tensor, nn

from golde.geometry.constraints import positive
from golde.geometry.grouping import Grouping, gather
from golde.geometry.numerics import safe_norm
from golde.geometry.rotation import Rotation, RotationOptions
from golde.kernels import Core, Geodesic


class HyperbolicMap(NamedTuple):
    Q: Tensor  # (r, M, K, K) Euclidean orthogonal, K = dimension − 1
    b: Tensor  # (r, M, K) boost, applied before Q
    beta: Tensor  # (r, M)


class Hyperbolic(nn.Module):
    """A group of ``count`` hyperbolic components Q^``dimension``, each storing ``dimension − 1`` numbers.

    ``boost_left`` applies the boost after the rotation (as RotH and RefH do) instead of before it (as
    Proposition 3.4 does): ``Boost(b) Q = Q Boost(Qᵀ b)``.
    """

    letter = "Q"
    word = "hyperbolic"
    unstored = 1  # coordinates of the ambient space that follow from the others
    finish = Geodesic()

    def __init__(
        self,
        dimension: int,
        count: int,
        relations: int,
        *,
        boost_left: bool = False,
        **rotation: Unpack[RotationOptions],
    ) -> None:
        super().__init__()
        self.dimension, self.count, self.numbers = dimension, count, dimension - self.unstored
        self.boost_left = boost_left
        self.rotation = Rotation(relations, count, self.numbers, **rotation)
        self.b = nn.Parameter(torch.zeros(relations, count, self.numbers))
        self.free_beta = nn.Parameter(torch.zeros(relations, count))

    def maps(self, relation: Tensor | None) -> HyperbolicMap:
        """``Orth_Q(U_r, b_r)`` and ``β_r`` of each relation (Prop. 3.4, Eq. 12)."""
        Q = self.rotation.matrices(relation)
        b = gather(self.b, relation)
        if self.boost_left:
            b = torch.einsum("rmji,rmj->rmi", Q, b)
        return HyperbolicMap(Q, b, positive(gather(self.free_beta, relation)))

    @staticmethod
    def inverse(maps: HyperbolicMap) -> HyperbolicMap:
        """``Orth_Q(U, b)⁻¹ = Orth_Q(reversed U, −Orth(U) b)``."""
        return HyperbolicMap(maps.Q.mT, -torch.einsum("rmij,rmj->rmi", maps.Q, maps.b), maps.beta)

    @staticmethod
    def query(head: Tensor, maps: HyperbolicMap, groups: Grouping) -> Core:
        """Exp map, boost, rotate (Eq. 11, 12): core ``[−ζ, ‖ζ‖]``, scalars √β and a; head (B, M, K).

        Everything stays scaled by ``e^{−α}``, α the head's rapidity, so that no norm overflows:
        ``e^{a−α} = ‖z‖ + √(‖z‖² + e^{−2α})`` for the scaled z, written so that a small a is exact.
        """
        root = groups.rows(maps.beta.sqrt())  # (B, M)
        alpha, z0, z = exp_map(head, root)
        _, z = boost(z0, z, groups.rows(maps.b))
        z = groups.apply(maps.Q, z).transpose(0, 1)
        alpha, norm = alpha.transpose(0, 1), safe_norm(z)  # (M, B)
        unit = torch.exp(-alpha)
        expm1_a = norm + norm.square() / (unit + torch.hypot(norm, unit))  # (e^a − 1) e^{−α}
        a = alpha + torch.log1p(torch.expm1(-alpha) + expm1_a)
        core = torch.cat((-z, norm.unsqueeze(-1)), -1) / (unit + expm1_a).unsqueeze(-1)
        return Core(core, (root.transpose(0, 1), a))

    @staticmethod
    def transport(head: Tensor, maps: HyperbolicMap, groups: Grouping) -> Tensor:
        """``log ∘ G ∘ exp = √β a · z/‖z‖``, the tangent vector of the moved point; head (B, M, K)."""
        core, (root, a) = Hyperbolic.query(head, maps, groups)
        moved = -core[..., :-1] * (root * a / core[..., -1]).unsqueeze(-1)  # (M, B, K)
        return moved.transpose(0, 1)

    @staticmethod
    def candidate(entity: Tensor) -> Core:
        """Core ``[e, ‖e‖]`` of the raw tangent vector, scalar ‖e‖; entity (N, M, K)."""
        e = entity.transpose(0, 1)
        norm = safe_norm(e)
        return Core(torch.cat((e, norm.unsqueeze(-1)), -1), (norm,))


def exp_map(x: Tensor, root: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """``g_β(x)/√β = (cosh α, sinh(α) x/‖x‖) = e^α (z₀, z)`` with ``α = ‖x‖/√β`` (Eq. 11).

    Returns α, z₀ and z, which are bounded at any norm; root = √β without the last axis.
    """
    norm = safe_norm(x)
    alpha = norm / root
    sinh = -0.5 * torch.expm1(-2 * alpha)  # e^{−α} sinh α
    return alpha, 1 - sinh, (sinh / norm).unsqueeze(-1) * x


def boost(z0: Tensor, z: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """``z₀' = γ z₀ + ⟨b,z⟩``, ``z' = z + b z₀ + ⟨b,z⟩ b/(1+γ)``, ``γ = √(1+‖b‖²)`` (Prop. 3.4)."""
    gamma = (1 + b.square().sum(-1)).sqrt()
    along = (b * z).sum(-1)
    return gamma * z0 + along, z + b * (z0 + along / (1 + gamma)).unsqueeze(-1)
