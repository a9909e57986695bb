"""From products to distances: the pointwise ends of the bilinear form, with their derivatives.

A finish turns the product ``x`` of a query's and a candidate's core vectors, and the scalars of both
sides, into the distance of one component. It is written twice: ``value`` in plain operations that
autograd can follow (the reference), and ``gradient`` in closed form, for the blocked version that
keeps no intermediate. What depends on one side alone is worked out once, by ``sides``, and not for
every pair. All arguments broadcast against ``x``.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

DISTANCE_FLOOR = 1e-12
"""Added to squared distances, so that gradients at coincident points are finite."""

Scalars = tuple[Tensor, ...]


class Finish(Protocol):
    """A pointwise end; ``gradient`` is the chain rule with the incoming gradient already applied."""

    def sides(self, query: Scalars, candidate: Scalars) -> tuple[Scalars, Scalars]:
        """All that a pair needs of its query and of its candidate, from their scalars."""

    def value(self, x: Tensor, query: Scalars, candidate: Scalars) -> Tensor:
        """The distance of every pair; ``query`` and ``candidate`` as ``sides`` gives them."""

    def gradient(
        self, grad: Tensor, x: Tensor, query: Scalars, candidate: Scalars
    ) -> tuple[Tensor, Scalars, Scalars]:
        """Gradients of ``x`` and, before summing over pairs, of the scalars that ``sides`` took."""


class Root:
    """``d = √x`` for a core that multiplies out to the squared distance (Euclidean, elliptic)."""

    def sides(self, query: Scalars, candidate: Scalars) -> tuple[Scalars, Scalars]:
        return (), ()

    def value(self, x: Tensor, query: Scalars, candidate: Scalars) -> Tensor:
        return (x.clamp_min(0) + DISTANCE_FLOOR).sqrt()

    def gradient(
        self, grad: Tensor, x: Tensor, query: Scalars, candidate: Scalars
    ) -> tuple[Tensor, Scalars, Scalars]:
        """``∂d/∂x = 1 / 2√x``, zero where rounding made x negative."""
        half = (x.clamp_min(0) + DISTANCE_FLOOR).rsqrt_().mul_(0.5).mul_(grad)
        return half.masked_fill_(x <= 0, 0.0), (), ()


def _complement(b: Tensor) -> Tensor:
    """``1 − e^{−b}`` for b ≥ 0, exact at small b too.

    Compiled code takes ``expm1(x)`` for ``exp(x) − 1``, so a series replaces it there in float32; the
    first term left out is below 2e-8 of the sum.
    """
    if not torch.compiler.is_compiling() or b.dtype != torch.float32:
        return -torch.expm1(-b)
    series = b * (1 / 720 - b * (1 / 5040))
    for factor in (1 / 120, 1 / 24, 1 / 6, 1 / 2, 1.0):
        series = b * (factor - series)
    return torch.where(b < 0.35, series, 1 - torch.exp(-b))


class Geodesic:
    """The hyperbolic geodesic distance in logarithms, so that nothing overflows.

    A query is a point of the unit hyperboloid at rapidity ``a`` (spatial part z, ‖z‖ = sinh a), a
    candidate a tangent vector e with norm n, at rapidity ``b = n/√β``. The distance is
    ``d = 2√β · asinh √s``, ``s = sinh²((a−b)/2) + ½ (‖z‖ n − ⟨z,e⟩) sinh(b)/n``. With
    ``E = e^{−a−b}``, ``F = 1 − e^{−b}``, ``δ = (1 − e^{−a}) − F``, ``ζ = e^{−a} z`` (so that
    ‖ζ‖ = ½(1 − e^{−2a}) < ½) and ``x = ‖ζ‖ n − ⟨ζ,e⟩``, the product of the core vectors:

        σ = 4Es = δ² + x · F(2 − F)/n        every factor is bounded
        d = √β · (a + b + log(E + ½(σ + √(σ(σ + 4E)))))

    since ``2 asinh √s = log(1 + 2s + 2√(s + s²))``: one ``expm1``, one root and one logarithm a
    pair. No vector is normalised: at e = 0 the quotient tends to 2/√β, with the true gradient.

    Derivatives: d is a function of s alone, so with ``κ = √β/√(σ(σ + 4E))``,
    ``∂d/∂σ = κ``, ``∂d/∂a = κ(∂σ/∂a + σ)``, ``∂d/∂b = κ(∂σ/∂b + σ)``.

    Query scalars are √β and a, the candidate scalar is n.
    """

    def sides(self, query: Scalars, candidate: Scalars) -> tuple[Scalars, Scalars]:
        """``√β, 1/√β, a, e^{−a}, 1 − e^{−a}`` and ``n, 1/n``."""
        (root, a), (n,) = query, candidate
        return (root, root.reciprocal(), a, torch.exp(-a), -torch.expm1(-a)), (n, n.reciprocal())

    def value(self, x: Tensor, query: Scalars, candidate: Scalars) -> Tensor:
        (root, over_root, a, e_a, from_a), (n, over_n) = query, candidate
        b = n * over_root
        F = _complement(b)
        sigma = (from_a - F).square() + x * (F * (2 - F)) * over_n
        sigma = sigma.clamp_min(0) + DISTANCE_FLOOR
        E = e_a * (1 - F)
        return root * (a + b + torch.log(E + 0.5 * (sigma + (sigma * (sigma + 4 * E)).sqrt())))

    def gradient(
        self, grad: Tensor, x: Tensor, query: Scalars, candidate: Scalars
    ) -> tuple[Tensor, Scalars, Scalars]:
        (root, over_root, a, e_a, from_a), (n, over_n) = query, candidate
        b = n * over_root
        F = _complement(b)
        delta = from_a - F
        G = (2 - F).mul_(F).mul_(over_n)
        e_b = F.neg_().add_(1)
        raw = delta.square().addcmul_(x, G)
        sigma = raw.clamp_min(0).add_(DISTANCE_FLOOR)
        E = e_b * e_a
        Q = (4 * E).add_(sigma).mul_(sigma).sqrt_()
        kappa = root / Q * grad
        log = Q.add_(sigma).mul_(0.5).add_(E).log_()
        kappa_sigma = kappa * sigma
        kappa = kappa.masked_fill_(raw <= 0, 0.0)
        kappa_G = kappa * G
        kappa_delta = delta.mul_(kappa)
        grad_a = torch.addcmul(kappa_sigma, kappa_delta, 2 * e_a)  # ∂σ/∂a = 2δ e^{−a}
        # ∂σ/∂b = −2δ e^{−b} + 2x e^{−2b}/n, and b = n/√β
        slope = x * over_n
        grad_b = kappa.mul_(slope).mul_(e_b).sub_(kappa_delta).mul_(e_b).mul_(2).add_(kappa_sigma)
        grad_n = (grad_b * over_root).addcmul_(kappa_G, slope, value=-1)
        grad_root = log.add_(b).add_(a).mul_(grad).addcmul_(grad_b, b.mul_(over_root), value=-1)
        return kappa_G, (grad_root, grad_a), (grad_n,)
