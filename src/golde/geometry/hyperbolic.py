"""Hyperbolic components: relation-specific hyperboloids of curvature −1/β (Eq. 3, 11–13).

The distance in logarithms, so that nothing overflows
-----------------------------------------------------
With the unit-hyperboloid query at rapidity ``a`` (spatial part ``z``, ``‖z‖ = sinh a``) and a
candidate with tangent vector ``e`` at rapidity ``b = ‖e‖/√β``, the geodesic distance is
``d = 2√β · asinh √s`` where ``s = sinh²((a−b)/2) + ½ (‖z‖‖e‖ − ⟨z,e⟩) sinh(b)/‖e‖``.
Let ``F_a = 1 − e^{−a}``, ``F_b = 1 − e^{−b}``, ``E = e^{−a−b}`` and ``ζ = e^{−a} z`` (so ‖ζ‖ < ½). Then
``s = σ / 4E`` with ``σ = (F_a − F_b)² + (‖ζ‖‖e‖ − ⟨ζ,e⟩) · F_b (2 − F_b) / ‖e‖``, every factor of
which is bounded, and since ``2 asinh √s = log(1 + 2s + 2√(s + s²))``,
``d = √β · (a + b + log(E + ½(σ + √(σ(σ + 4E)))))``.
One product, one ``expm1``, one square root and one logarithm a pair. No vector is normalised: at
``e = 0`` the quotient ``F_b (2 − F_b)/‖e‖`` tends to ``2/√β``, and the gradient is the true one.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from golde.geometry.constraints import positive
from golde.geometry.numerics import DISTANCE_FLOOR, safe_norm
from golde.geometry.rotation import ReflectionCount, Rotation
from golde.kernels import Core

MAX_RAPIDITY = 80.0
"""Head rapidities beyond this would overflow float32; tangent norms stay below 17.8 √β by far."""


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

    def __init__(
        self,
        dimension: int,
        count: int,
        relations: int,
        *,
        reflections: ReflectionCount = "k",
        block: int | None = None,
        boost_left: bool = False,
        scale: float = 0.1,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.dimension, self.count, self.numbers = dimension, count, dimension - self.unstored
        self.boost_left = boost_left
        self.rotation = Rotation(
            relations,
            count,
            self.numbers,
            reflections=reflections,
            block=block,
            scale=scale,
            generator=generator,
        )
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
    def query(head: Tensor, maps: HyperbolicMap) -> Core:
        """Exp map, boost, rotate (Eq. 11, 12), then ζ and its scalars; head (B, M, K)."""
        root = maps.beta.sqrt()  # (B, M)
        z0, z = exp_map(head, root)
        _, z = boost(z0, z, maps.b)
        z = torch.einsum("bmij,bmj->mbi", maps.Q, z)
        norm = safe_norm(z)  # (M, B)
        a = torch.asinh(norm)
        shrink = torch.exp(-a)
        root = root.transpose(0, 1)
        return Core(z * shrink.unsqueeze(-1), (root, a, -torch.expm1(-a), shrink, norm * shrink))

    @staticmethod
    def candidate(entity: Tensor) -> Core:
        """The raw tangent vector and its norm, free of the relation; entity (N, M, K)."""
        e = entity.transpose(0, 1)
        return Core(e, (safe_norm(e),))

    @staticmethod
    def finish(dot: Tensor, query: tuple[Tensor, ...], candidate: tuple[Tensor, ...]) -> Tensor:
        """``d = √β · (a + b + log(E + ½(σ + √(σ(σ + 4E)))))`` (see the module's text)."""
        (root, a, F_a, shrink, zeta), (norm,) = query, candidate
        b = norm / root
        F_b = -torch.expm1(-b)
        sigma = (F_a - F_b).square() + (zeta * norm - dot) * (F_b * (2 - F_b) / norm)
        sigma = torch.clamp_min(sigma, 0) + DISTANCE_FLOOR
        E = shrink * (1 - F_b)
        return root * (a + b + torch.log(E + 0.5 * (sigma + (sigma * (sigma + 4 * E)).sqrt())))


def exp_map(x: Tensor, root: Tensor) -> tuple[Tensor, Tensor]:
    """``g_β(x)/√β = (cosh(‖x‖/√β), sinh(‖x‖/√β) x/‖x‖)`` (Eq. 11); root = √β without the last axis."""
    norm = safe_norm(x)
    rapidity = (norm / root).clamp_max(MAX_RAPIDITY)
    return torch.cosh(rapidity), (torch.sinh(rapidity) / norm).unsqueeze(-1) * x


def boost(z0: Tensor, z: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """``z₀' = γ z₀ + ⟨b,z⟩``, ``z' = z + b z₀ + ⟨b,z⟩ b/(1+γ)``, ``γ = √(1+‖b‖²)`` (Prop. 3.4)."""
    gamma = (1 + b.square().sum(-1)).sqrt()
    along = (b * z).sum(-1)
    return gamma * z0 + along, z + b * (z0 + along / (1 + gamma)).unsqueeze(-1)
