"""The finishes of ``golde.kernels.finish`` on a tile held in registers: values and gradients.

The formulas, the floor and the names are those of the plain form; products are ordered so that few
instructions a pair remain. All arguments broadcast against the tile ``x``: what belongs to its rows is
a column, what belongs to its columns a row. A result that nobody uses costs nothing, since these
functions are inlined and dead code is dropped.

One thing differs from the plain form: at norm 2 a root is not taken where only its square is used.
"""

from __future__ import annotations

from golde.kernels.finish import DISTANCE_FLOOR
from golde.kernels.triton.language import exp2, jit, log2, rsqrt, tl

LOG2_E = 1.4426950408889634
LN_2 = 0.6931471805599453


@jit
def one_minus(e_b, b):
    """``1 − e^{−b}`` for b ≥ 0 within a few ulps, where the difference alone would lose small b.

    On [0, 1] it is ``b + b² r(b)``, r being the polynomial with the least relative error in the
    result (3·10⁻⁹); beyond, at most e^{−1} is taken from 1 and little can cancel.
    """
    r = 1.2913094e-4 * b - 1.3011265e-3
    r = r * b + 8.2762088e-3
    r = r * b - 4.1647468e-2
    r = r * b + 1.6666366e-1
    r = r * b - 4.9999984e-1
    return tl.where(b < 1, b + b * b * r, 1 - e_b)


@jit
def one_minus_exp(b, SCALE: tl.constexpr = -LOG2_E):
    """The same from b alone."""
    return one_minus(exp2(b * SCALE), b)


@jit
def above_floor(squared, FLOOR: tl.constexpr = DISTANCE_FLOOR):
    """``max(squared, 0) + floor``; NaN stays NaN."""
    return tl.maximum(squared, 0.0, propagate_nan=tl.PropagateNan.ALL) + FLOOR


@jit
def root_value(x, NORM: tl.constexpr):
    """``d^norm`` for ``d = √x``."""
    squared = above_floor(x)
    if NORM == 2:
        return squared
    else:
        return squared * rsqrt(squared)


@jit
def root_gradient(grad, x, NORM: tl.constexpr):
    """``grad · ∂d^norm/∂x``: 1/2√x at norm 1, 1 at norm 2; zero where rounding made x negative."""
    if NORM == 1:
        grad = 0.5 * grad * rsqrt(above_floor(x))
    return tl.where(x <= 0, 0.0, grad)


@jit
def geodesic_parts(x, over_root, e_a, from_a, n, over_n, SCALE: tl.constexpr = -LOG2_E):
    """``b, σ, E, σ(σ + 4E)``, which the value needs, and ``e^{−b}, F(2 − F)/n, δ``, σ without the floor."""
    b = n * over_root
    e_b = exp2(b * SCALE)
    F = one_minus(e_b, b)
    G = F * (2 - F) * over_n
    delta = from_a - F
    raw = delta * delta + x * G
    sigma = above_floor(raw)
    E = e_a * e_b
    return b, sigma, E, sigma * (sigma + 4 * E), e_b, G, delta, raw


@jit
def geodesic_length(a, b, sigma, E, Q, SCALE: tl.constexpr = LN_2):
    """``d / √β = a + b + log(E + ½(σ + Q))``, ``Q = √(σ(σ + 4E))``."""
    return a + b + SCALE * log2(E + 0.5 * (sigma + Q))


@jit
def geodesic_value(x, root, over_root, a, e_a, from_a, n, over_n, NORM: tl.constexpr):
    """``d^norm``; the scalars are those of ``Geodesic.sides``."""
    b, sigma, E, square, _, _, _, _ = geodesic_parts(x, over_root, e_a, from_a, n, over_n)
    distance = root * geodesic_length(a, b, sigma, E, square * rsqrt(square))
    if NORM == 2:
        return distance * distance
    else:
        return distance


@jit
def geodesic_gradient(grad, x, root, over_root, a, e_a, from_a, n, over_n, NORM: tl.constexpr):
    """``grad`` times the derivatives of ``d^norm`` by x, √β, a and n, pair by pair."""
    b, sigma, E, square, e_b, G, delta, raw = geodesic_parts(x, over_root, e_a, from_a, n, over_n)
    over_Q = rsqrt(square)
    length = geodesic_length(a, b, sigma, E, square * over_Q)
    if NORM == 2:
        grad = 2 * grad * (root * length)
    kappa = root * grad * over_Q
    kappa_sigma = kappa * sigma
    kappa = tl.where(raw <= 0, 0.0, kappa)
    kappa_G = kappa * G
    kappa_delta = kappa * delta
    slope = x * over_n
    grad_a = kappa_sigma + 2 * e_a * kappa_delta
    grad_b = kappa_sigma + 2 * e_b * (kappa * slope * e_b - kappa_delta)
    grad_n = grad_b * over_root - kappa_G * slope
    grad_root = grad * length - grad_b * (b * over_root)
    return kappa_G, grad_root, grad_a, grad_n
