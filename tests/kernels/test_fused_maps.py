"""Maps of relations as kernels, ``Orth(U, w)`` and positive numbers, against the plain form."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from math import log
from typing import Any

import pytest
import torch
from torch import Tensor

from golde.geometry.constraints import POSITIVE_RANGE, positive
from golde.geometry.reflections import LARGEST_FUSED, orth_matrix
from oracles import normal

if find_spec("triton") is None:
    pytest.skip("Triton is not installed (extra: kernels)", allow_module_level=True)

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
EPS = torch.finfo(torch.float32).eps

with pytest.MonkeyPatch.context() as patch:
    if not CUDA:
        patch.setenv("TRITON_INTERPRET", "1")  # read when kernels are defined; see conftest
    orth: Any = import_module("golde.kernels.triton.orth")
    positives: Any = import_module("golde.kernels.triton.positive")


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter where there is no GPU, and memory that reads as NaN until it is written to."""
    if not CUDA:
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    plain = orth._new

    def poisoned(like: Tensor, *shape: int) -> Tensor:
        new: Tensor = plain(like, *shape)
        return new.fill_(torch.nan)

    for module in (orth, positives):
        monkeypatch.setattr(module, "_new", poisoned)


def outcome(of: Callable[..., Tensor], *given: Tensor) -> list[Tensor]:
    """The value and all gradients under a fixed incoming one."""
    leaves = [t.detach().requires_grad_() for t in given]
    value = of(*leaves)
    incoming = normal(*value.shape, seed=9).to(value)
    gradients = torch.autograd.grad((value * incoming).sum(), leaves)
    return [t.detach().cpu() for t in (value, *gradients)]


def check(fused: Callable[..., Tensor], plain: Callable[..., Tensor], *given: Tensor) -> None:
    """At most twice the error of the plain form in float32, in max-norm, beside a few roundings."""
    exact, narrow = outcome(plain, *(t.double() for t in given)), outcome(plain, *given)
    found = outcome(fused, *(t.to(DEVICE) for t in given))
    for truth, one, two in zip(exact, narrow, found, strict=True):
        assert two.shape == truth.shape
        assert two.isfinite().all()
        if truth.numel():
            error, allowed = (float((t - truth).abs().max()) for t in (two, one))
            assert error <= 2 * allowed + 8 * EPS * max(1.0, float(truth.abs().max()))


def reflections(rows: int, K: int, *batch: int) -> tuple[Tensor, Tensor]:
    """Rows and weights, far apart in length as training may leave them; one row is zero."""
    U, w = normal(*batch, rows, K, seed=1).float(), normal(*batch, K, seed=2).exp().float()
    U *= torch.logspace(-3, 3, max(1, rows))[:rows, None]
    if rows > 2:
        U[0, 1] = 0
    return U, w


@pytest.mark.parametrize(
    ("rows", "K", "batch"),
    [(1, 1, (2,)), (3, 3, (2, 2)), (4, 5, (2,)), (0, 4, (2,)), (12, 12, (1,)), (2, 2, (0,))]
    + [(K, K, (1,)) for K in ([17, 33, LARGEST_FUSED] if CUDA else [17])],
)
def test_orth_is_the_product_of_its_reflections(rows: int, K: int, batch: tuple[int, ...]) -> None:
    check(orth.fused_orth, orth_matrix, *reflections(rows, K, *batch))


def test_layout_and_broadcasting_do_not_matter() -> None:
    """Strided reflections, and one row of weights for all maps, as Euclidean maps have them."""
    U, w = reflections(3, 3, 2)
    strided = U.mT.contiguous().mT
    assert not strided.is_contiguous()
    found = outcome(orth.fused_orth, strided.to(DEVICE), w.to(DEVICE))
    torch.testing.assert_close(found, outcome(orth.fused_orth, U.to(DEVICE), w.to(DEVICE)))
    check(
        lambda U: orth.fused_orth(U, U.new_ones(()).expand(2, 3)),
        lambda U: orth_matrix(U, U.new_ones(()).expand(2, 3)),
        U,
    )


@pytest.mark.parametrize("shape", [(1,), (2, 3), (0,), (3, 700)])
def test_positive_numbers(shape: tuple[int, ...]) -> None:
    """From next to 1/20 to next to 20, and exactly 1 with slope 1 at 0."""
    free = normal(*shape, seed=3, scale=4.0).float()
    limit = log(POSITIVE_RANGE)
    check(lambda x: positives.fused_positive(x, limit), positive, free)
    ends = torch.tensor([0.0, 1e-8, -1e3, 1e3], device=DEVICE)
    value, slope = outcome(lambda x: positives.fused_positive(x, limit), ends)
    torch.testing.assert_close(value, torch.tensor([1.0, 1.0, 0.05, 20.0]))
    assert torch.equal(slope[2:], torch.zeros(2))
