"""``positive`` as a kernel, with its gradient, against the plain form in double precision."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
import torch
from torch import Tensor

from golde.geometry import constraints
from golde.geometry.constraints import POSITIVE_RANGE, positive
from oracles import normal

pytest.importorskip("triton", reason="Triton is not installed (extra: kernels)")

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
EPS = torch.finfo(torch.float32).eps

kernels: Any = import_module("golde.kernels.triton.positive")


pytestmark = pytest.mark.usefixtures("surroundings")


def outcome(free: Tensor, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """Values and gradients under a fixed incoming one, on the CPU."""
    free = free.detach().to(device, dtype).requires_grad_()
    value = positive(free)
    incoming = normal(*value.shape, seed=2).float().to(value)
    (gradient,) = torch.autograd.grad(value, free, incoming)
    return value.detach().cpu(), gradient.cpu()


def check(free: Tensor) -> Tensor:
    """Within a few roundings; of the largest value for gradients, where tanh is lost against 1."""
    expected = outcome(free, torch.float64, torch.device("cpu"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constraints, "fuses", lambda tensor: True)
        found = outcome(free, torch.float32, DEVICE)
    for one, two, atol in zip(found, expected, (0, 8 * EPS * POSITIVE_RANGE), strict=True):
        torch.testing.assert_close(one.double(), two, rtol=20 * EPS, atol=atol)
    return found[0]


@pytest.mark.parametrize("shape", [(1,), (1023,), (1024,), (3, 5, 205), (0,), (4, 0)])
def test_it_is_the_plain_form(shape: tuple[int, ...]) -> None:
    check(normal(*shape, seed=1).float())


def test_numbers_of_all_sizes() -> None:
    """Both signs and zero; the value stays within its range and, near 0, is ``1 + free``."""
    sizes = torch.logspace(-20, 2, 150)
    value = check(torch.cat((-sizes, torch.zeros(1), sizes)))
    assert value[150] == 1
    assert value.min() >= (1 - 4 * EPS) / POSITIVE_RANGE
    assert value.max() <= (1 + 4 * EPS) * POSITIVE_RANGE


def test_layout_does_not_matter() -> None:
    check(normal(7, 5, seed=3).float().T)
