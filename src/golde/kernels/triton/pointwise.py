"""The finishes of ``golde.kernels.finish`` on a tile held in registers: values and gradients.

The formulas, the floor and the names are those of the plain form. All arguments broadcast against the
tile ``x``: what belongs to its rows is a column, what belongs to its columns is a row, so the same
functions serve a tile whose rows are queries and one whose rows are candidates. A result that nobody
uses costs nothing, since these functions are inlined and dead code is dropped.

One thing differs from the plain form: at norm 2 a root is not taken where only its square is used.
"""

from __future__ import annotations

from golde.kernels.finish import DISTANCE_FLOOR
from golde.kernels.triton.language import jit, tl


@jit
def one_minus_exp(b):
    """``1 − e^{−b}`` for b ≥ 0 within a few ulps, where the difference alone would lose small b.

    On [0, 1] it is ``b + b² r(b)``, r being the polynomial with the least relative error in the
    result (3·10⁻⁹); beyond, at most e^{−1} is taken from 1 and little can cancel.
    """
    r = 1.2913094e-4 * b - 1.3011265e-3
    r = r * b + 8.2762088e-3
    r = r * b - 4.1647468e-2
    r = r * b + 1.6666366e-1
    r = r * b - 4.9999984e-1
    return tl.where(b < 1, b + b * b * r, 1 - tl.exp(-b))


@jit
def above_floor(squared, FLOOR: tl.constexpr = DISTANCE_FLOOR):
    """``max(squared, 0) + floor``; a comparison with NaN is false, so NaN stays."""
    return tl.where(squared < 0, 0.0, squared) + FLOOR


@jit
def root_value(x, NORM: tl.constexpr):
    """``d^norm`` for ``d = √x``."""
    squared = above_floor(x)
    if NORM == 2:
        return squared
    else:
        return tl.sqrt(squared)


@jit
def root_gradient(grad, x, NORM: tl.constexpr):
    """``grad · ∂d^norm/∂x``: 1/2√x at norm 1, 1 at norm 2; zero where rounding made x negative."""
    if NORM == 1:
        grad = 0.5 * grad * tl.rsqrt(above_floor(x))
    return tl.where(x <= 0, 0.0, grad)


@jit
def geodesic_value(x, root, a, n, NORM: tl.constexpr):
    """``d^norm`` for ``d = √β · (a + b + log(E + ½(σ + √(σ(σ + 4E)))))``."""
    b = n * (1 / root)
    F = one_minus_exp(b)
    delta = one_minus_exp(a) - F
    sigma = above_floor(delta * delta + x * (F * (2 - F)) * (1 / n))
    E = tl.exp(-a) * (1 - F)
    distance = root * (a + b + tl.log(E + 0.5 * (sigma + tl.sqrt(sigma * (sigma + 4 * E)))))
    if NORM == 2:
        return distance * distance
    else:
        return distance


@jit
def geodesic_gradient(grad, x, root, a, n, NORM: tl.constexpr):
    """``grad`` times the derivatives of ``d^norm`` by x, √β, a and n, pair by pair."""
    over_n, over_root, e_a = 1 / n, 1 / root, tl.exp(-a)
    b = n * over_root
    F = one_minus_exp(b)
    delta = one_minus_exp(a) - F
    G = F * (2 - F) * over_n
    e_b = 1 - F
    raw = delta * delta + x * G
    sigma = above_floor(raw)
    E = e_a * e_b
    Q = tl.sqrt(sigma * (sigma + 4 * E))
    length = a + b + tl.log(E + 0.5 * (sigma + Q))  # d / √β
    if NORM == 2:
        grad = 2 * grad * (root * length)
    kappa = root / Q * grad
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
