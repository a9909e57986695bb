"""Hyperbolic components: relation-specific hyperboloids of curvature −1/β (Eq. 2, 11–13)."""

from __future__ import annotations

from typing import NamedTuple, Unpack

import torch
from torch import Tensor, nn

from golde.geometry.constraints import positive
from golde.geometry.grouping import Grouping
from golde.geometry.layout import batch_last, join
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

    def maps(self, relation: Tensor) -> HyperbolicMap:
        """``Orth_Q(U_r, b_r)`` and ``β_r`` of each relation (Prop. 3.4, Eq. 12)."""
        Q = self.rotation.matrices(relation)
        b = self.b[relation]
        if self.boost_left:
            b = torch.einsum("rmji,rmj->rmi", Q, b)
        return HyperbolicMap(Q, b, positive(self.free_beta[relation]))

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
        root = groups.rows(maps.beta.sqrt()).T  # (M, B)
        alpha, z0, z = exp_map(batch_last(head), root)
        x = join(z, z0.unsqueeze(-1)).transpose(0, 1)  # (B, M, K + 1)
        z = batch_last(groups.apply(spatial_map(maps), x))
        norm, unit = safe_norm(z), torch.exp(-alpha)
        expm1_a = norm + norm.square() / (unit + torch.hypot(norm, unit))  # (e^a − 1) e^{−α}
        a = alpha + torch.log1p(torch.expm1(-alpha) + expm1_a)
        core = join(-z, norm.unsqueeze(-1)) / (unit + expm1_a).unsqueeze(-1)
        return Core(core, (root, a))

    @staticmethod
    def candidate(entity: Tensor) -> Core:
        """Core ``[e, ‖e‖]`` of the raw tangent vector, scalar ‖e‖; entity (N, M, K)."""
        e = batch_last(entity)
        norm = safe_norm(e)
        return Core(join(e, norm.unsqueeze(-1)), (norm,))


def exp_map(x: Tensor, root: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """``g_β(x)/√β = (cosh α, sinh(α) x/‖x‖) = e^α (z₀, z)`` with ``α = ‖x‖/√β`` (Eq. 11).

    Returns α, z₀ and z, which are bounded at any norm; root = √β without the last axis.
    """
    norm = safe_norm(x)
    alpha = norm / root
    sinh = -0.5 * torch.expm1(-2 * alpha)  # e^{−α} sinh α
    return alpha, 1 - sinh, (sinh / norm).unsqueeze(-1) * x


def spatial_map(maps: HyperbolicMap) -> Tensor:
    """``x' = Q(x + b x₀ + ⟨b,x⟩ b/(1+γ))``, ``γ = √(1+‖b‖²)``, as a matrix on (x, x₀) (Prop. 3.4).

    The time coordinate of the result follows from x', so a map is K×(K+1) numbers, (r, M, K, K + 1).
    """
    gamma = (1 + maps.b.square().sum(-1, keepdim=True)).sqrt()
    Qb = (maps.Q @ maps.b.unsqueeze(-1)).squeeze(-1)  # (r, M, K)
    on_space = maps.Q + Qb.unsqueeze(-1) * (maps.b / (1 + gamma)).unsqueeze(-2)
    return torch.cat((on_space, Qb.unsqueeze(-1)), -1)
