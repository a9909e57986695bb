"""The loss of a step as one kernel, with its gradients, against the plain form in double precision."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
import torch
from torch import Tensor

from golde.training import losses
from golde.training.losses import Negatives, adversarial_loss
from oracles import normal, seeded

pytest.importorskip("triton", reason="Triton is not installed (extra: kernels)")

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
MARGIN, TEMPERATURE = 6.0, 0.7
EPS = torch.finfo(torch.float32).eps

kernels: Any = import_module("golde.kernels.triton.loss")


pytestmark = pytest.mark.usefixtures("surroundings")


class Step:
    """Scores, masks and weights of a step in float32."""

    def __init__(self, B: int, N: int, *, own: bool = True, scale: float = 4.0) -> None:
        self.positive = (normal(B, seed=1, scale=scale) - 3).float()
        self.shared = (normal(B, N, seed=2, scale=scale) - 9).float()
        self.own = (normal(B, seed=3, scale=scale) - 6).float() if own else None
        self.masked = torch.rand(B, N, generator=seeded(4)) < 0.4
        self.own_masked = torch.rand(B, generator=seeded(5)) < 0.4
        weight = torch.rand(B, generator=seeded(6))
        self.weight = weight / weight.sum()

    def loss(self, dtype: torch.dtype, device: torch.device, factor: float = 1.0) -> list[Tensor]:
        """The loss times a factor, and its gradients by positive, shared and own scores."""
        leaves = [
            scores.to(device, dtype).requires_grad_()
            for scores in (self.positive, self.shared, self.own)
            if scores is not None
        ]
        positive, shared, own = [*leaves, None][:3]
        masked, own_masked = self.masked.to(device), self.own_masked.to(device)
        value = factor * adversarial_loss(
            positive,
            Negatives(shared, masked, own, own_masked),
            self.weight.to(device),
            margin=MARGIN,
            temperature=TEMPERATURE,
        )
        return [x.detach().cpu() for x in (value, *torch.autograd.grad(value, leaves))]

    def exact(self, factor: float = 1.0) -> list[Tensor]:
        return self.loss(torch.float64, torch.device("cpu"), factor)

    def fused(self, factor: float = 1.0) -> list[Tensor]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(losses, "fuses", lambda tensor: True)
            return self.loss(torch.float32, DEVICE, factor)


def assert_close(step: Step, factor: float = 1.0) -> None:
    """A score of 100 rounds by some 10⁻⁵, so this much a weight may be off; what is zero stays zero."""
    for found, expected in zip(step.fused(factor), step.exact(factor), strict=True):
        torch.testing.assert_close(found.double(), expected, rtol=100 * EPS, atol=1e-30)


@pytest.mark.parametrize("own", [True, False], ids=["own", "shared"])
@pytest.mark.parametrize(
    ("B", "N"), [(1, 1), (3, 17), (7, 3), (2, 1030)] + ([(17, 3), (70, 5)] if CUDA else [])
)
def test_value_and_gradients_are_those_of_the_plain_form(B: int, N: int, own: bool) -> None:
    assert_close(Step(B, N, own=own))


@pytest.mark.parametrize("N", [127, 128, 129, 500])
def test_rows_longer_than_a_block(N: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest score first, last, and in the middle; a block with nothing live."""
    monkeypatch.setattr(kernels, "HELD", 128)
    step = Step(5, N)
    for row, place in enumerate((0, N // 2, N - 1)):
        step.shared[row, place], step.masked[row, place] = 9.0, False
    step.masked[3, :128], step.own_masked[3] = True, True
    step.masked[4, 128:], step.own_masked[4] = True, True
    assert_close(step)


@pytest.mark.parametrize("own", [True, False], ids=["own", "shared"])
def test_few_live_negatives_or_none(own: bool) -> None:
    """None at all, the own one alone, a single shared one."""
    step = Step(4, 17, own=own)
    step.masked[:3] = True
    step.own_masked[:] = torch.tensor([True, False, True, True])
    step.masked[2, 16] = False
    assert_close(step)
    assert step.fused()[2][:2].eq(0).all()


@pytest.mark.parametrize("scale", [0.0, 100.0, 1e4, 1e30], ids=str)
def test_scores_of_any_size(scale: float) -> None:
    """Exact where a single negative has all the weight, finite where the others vanish."""
    step = Step(5, 40, scale=scale)
    step.masked[0] = True
    for found, expected in zip(step.fused(), step.exact(), strict=True):
        assert found.isfinite().all()
        torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("factor", [1.0, -3.0, 0.0])
def test_the_gradients_take_the_factor_of_the_loss(
    factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "SCALED", 16)  # fewer than there are
    assert_close(Step(3, 5), factor)


def test_tables_of_any_layout() -> None:
    step = Step(3, 5)
    step.shared, step.masked = step.shared.T.contiguous().T, step.masked.T.contiguous().T
    assert_close(step)


def test_a_nan_score_is_not_hidden() -> None:
    for name in ("positive", "shared", "own"):
        step = Step(3, 5)
        step.masked[:], step.own_masked[:] = False, False
        getattr(step, name)[1] = torch.nan
        assert step.fused()[0].isnan()


def test_gradients_are_given_once() -> None:
    """They are handed out of the memory they were found in; autograd notices a second demand."""
    step = Step(3, 5)
    shared = step.shared.to(DEVICE).requires_grad_()
    masked, own_masked, weight, positive = (
        t.to(DEVICE) for t in (step.masked, step.own_masked, step.weight, step.positive)
    )
    loss = kernels.fused_adversarial(
        positive, None, shared, own_masked, masked, weight, MARGIN, TEMPERATURE
    )
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
