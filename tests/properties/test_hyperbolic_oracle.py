"""The hyperbolic exp map and distance against 120-digit arithmetic (Eq. 11 and 13 as printed)."""

from __future__ import annotations

from typing import NamedTuple

import mpmath
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mpf
from torch import Tensor

from golde.geometry import Grouping
from golde.geometry.hyperbolic import Hyperbolic, HyperbolicMap, exp_map
from golde.kernels import paired, pairwise
from golde.kernels.finish import DISTANCE_FLOOR

mpmath.mp.dps = 120  # sinh²(45) ≈ 10³⁸ cancels in acosh: 50 digits would leave too few
ONE = Grouping(torch.tensor([0]), 1, 1)  # one query, one relation
DTYPES = (torch.float32, torch.float64)


class Case(NamedTuple):
    """Vectors in a plane: the head along the first axis, the others at an angle to it."""

    head: float
    tail: float
    tail_angle: float
    boost: float
    boost_angle: float
    beta: float

    def tensors(self, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        def vector(norm: float, angle: float) -> Tensor:
            direction = torch.tensor([0.8, 0.0, 0.6], dtype=torch.float64) * torch.cos(
                torch.tensor(angle, dtype=torch.float64)
            )
            direction[1] = torch.sin(torch.tensor(angle, dtype=torch.float64))
            return (norm * direction).to(dtype)

        return (
            vector(self.head, 0),
            vector(self.tail, self.tail_angle),
            vector(self.boost, self.boost_angle),
            torch.tensor(self.beta, dtype=dtype),
        )


norms = st.floats(-6, 1).map(lambda power: 10.0**power)
cases = st.builds(
    Case,
    head=norms,
    tail=norms,
    tail_angle=st.sampled_from([0.0, 1e-4, 1e-2]) | st.floats(0, 3.1),
    boost=st.just(0.0) | st.floats(-3, 0.3).map(lambda power: 10.0**power),
    boost_angle=st.floats(0, 3.1),
    beta=st.floats(0.05, 20),
)
COINCIDENT = Case(1.0, 1.0, 0.0, 0.0, 0.0, 1.0)
FAR_COINCIDENT = Case(10.0, 10.0, 0.0, 0.0, 0.0, 0.05)
FAR_BOOSTED = Case(10.0, 10.0, 3.0, 2.0, 0.1, 0.05)
ZERO_HEAD = Case(0.0, 0.3, 1.0, 0.5, 0.0, 2.0)
ZERO_TAIL = Case(0.3, 0.0, 0.0, 0.5, 1.0, 2.0)
ALL_ZERO = Case(0.0, 0.0, 0.0, 0.0, 0.0, 1.0)


def numbers(x: Tensor) -> list[mpf]:
    return [mpf(value) for value in x.detach().double().flatten().tolist()]


def dot(x: list[mpf], y: list[mpf]) -> mpf:
    return mpmath.fsum(a * b for a, b in zip(x, y, strict=True))


def exact_exp(x: list[mpf], root: mpf) -> tuple[mpf, list[mpf]]:
    """Eq. 11 over √β."""
    norm = mpmath.sqrt(dot(x, x))
    factor = mpmath.sinh(norm / root) / norm if norm else 1 / root
    return mpmath.cosh(norm / root), [factor * v for v in x]


def exact_distance(head: Tensor, tail: Tensor, b: Tensor, beta: Tensor) -> mpf:
    """Eq. 13 of the boosted head (Prop. 3.4), in units of √β."""
    root = mpmath.sqrt(numbers(beta)[0])
    z0, z = exact_exp(numbers(head), root)
    push = numbers(b)
    gamma, along = mpmath.sqrt(1 + dot(push, push)), dot(push, z)
    z0, z = (
        gamma * z0 + along,
        [zi + bi * (z0 + along / (1 + gamma)) for zi, bi in zip(z, push, strict=True)],
    )
    y0, y = exact_exp(numbers(tail), root)
    return mpmath.acosh(max(z0 * y0 - dot(z, y), mpf(1)))


def allowed(head: Tensor, tail: Tensor, b: Tensor, beta: Tensor, true: mpf) -> mpf:
    """The floor of any bilinear form, ``2 asinh √(s + ε sinh a sinh b)``, and rounding, over √β.

    ``DISTANCE_FLOOR`` is added on purpose: it keeps the gradient finite where points coincide.
    """
    epsilon = 4 * mpf(torch.finfo(head.dtype).eps)
    root = mpmath.sqrt(numbers(beta)[0])
    a, c = (mpmath.sqrt(dot(numbers(v), numbers(v))) / root for v in (head, tail))
    a += mpmath.asinh(mpmath.sqrt(dot(numbers(b), numbers(b))))  # the boost can add this much
    s = mpmath.sinh(true / 2) ** 2
    floor = epsilon * mpmath.sinh(a) * mpmath.sinh(c) + mpf(DISTANCE_FLOOR) * mpmath.exp(a + c) / 3
    lost = 2 * (mpmath.asinh(mpmath.sqrt(s + floor)) - mpmath.asinh(mpmath.sqrt(s)))
    return epsilon * (1 + a + c) + lost


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@settings(max_examples=80)
@given(case=cases)
@example(case=COINCIDENT)
@example(case=FAR_COINCIDENT)
@example(case=FAR_BOOSTED)
@example(case=ZERO_HEAD)
@example(case=ZERO_TAIL)
@example(case=ALL_ZERO)
def test_distance_is_exact_up_to_its_floor_with_finite_gradients(
    dtype: torch.dtype, case: Case
) -> None:
    inputs = [x.requires_grad_() for x in case.tensors(dtype)]
    head, tail, b, beta = inputs
    eye = torch.eye(3, dtype=dtype).expand(1, 1, 3, 3)
    maps = HyperbolicMap(eye, b.view(1, 1, 3), beta.view(1, 1))
    query = Hyperbolic.query(head.view(1, 1, 3), maps, ONE)
    candidate = Hyperbolic.candidate(tail.view(1, 1, 3))
    true = exact_distance(head, tail, b, beta)
    for distance in (pairwise, paired):
        d = distance(query, candidate, Hyperbolic.finish, 1).sum()
        error = abs(numbers(d / beta.sqrt())[0] - true)
        assert error <= allowed(head, tail, b, beta, true)
        for gradient in torch.autograd.grad(d, inputs, retain_graph=True):
            assert gradient.isfinite().all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@given(norm=st.just(0.0) | norms, beta=st.floats(0.05, 20))
def test_exp_map_is_exact(dtype: torch.dtype, norm: float, beta: float) -> None:
    x = torch.tensor([0.8 * norm, -0.6 * norm], dtype=dtype)
    root = torch.tensor(beta, dtype=dtype).sqrt()
    alpha, z0, z = exp_map(x, root)
    scale = mpmath.exp(numbers(alpha)[0])
    true0, true = exact_exp(numbers(x), numbers(root)[0])
    # α itself is rounded and sits in an exponent: relative errors up to ε α.
    epsilon = 4 * mpf(torch.finfo(dtype).eps) * (1 + numbers(alpha)[0])
    assert abs(numbers(z0)[0] * scale - true0) <= epsilon * true0
    for actual, expected in zip(numbers(z), true, strict=True):
        assert abs(actual * scale - expected) <= epsilon * abs(expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("norm", [1e-3, 1.0, 10.0, 40.0])
def test_distance_to_the_origin_is_the_norm_with_unit_gradient(
    dtype: torch.dtype, norm: float
) -> None:
    """At any norm, also where sinh overflows (40 at β = 0.05 is sinh 179): no clamp stops learning."""
    direction = torch.tensor([0.6, -0.8], dtype=dtype)
    far = (norm * direction).requires_grad_()
    origin = torch.zeros(2, dtype=dtype)
    maps = HyperbolicMap(
        torch.eye(2, dtype=dtype).expand(1, 1, 2, 2),
        torch.zeros(1, 1, 2, dtype=dtype),
        torch.full((1, 1), 0.05, dtype=dtype),
    )
    for head, tail in ((far, origin), (origin, far)):
        query = Hyperbolic.query(head.view(1, 1, 2), maps, ONE)
        d = pairwise(query, Hyperbolic.candidate(tail.view(1, 1, 2)), Hyperbolic.finish, 1).sum()
        (gradient,) = torch.autograd.grad(d, far)
        torch.testing.assert_close(d, far.norm(), rtol=1e-4, atol=0)
        torch.testing.assert_close(gradient, direction, rtol=1e-3, atol=1e-4)
