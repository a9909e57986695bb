"""Losses against their formulas in plain Python, with masks, splits and extreme scores."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from golde.training.losses import Adversarial, cross_entropy, log_sum, self_adversarial
from oracles import normal, seeded

MARGIN, TEMPERATURE = 2.0, 0.7
B, N = 5, 7


def log_sigmoid(x: float) -> float:
    return -math.log1p(math.exp(-x))


def adversarial_by_hand(positive: Any, negative: Any, masked: Any, weight: Any) -> float:
    total = 0.0
    for s, row, hidden, w in zip(positive, negative, masked, weight, strict=True):
        live = [x for x, m in zip(row, hidden, strict=True) if not m]
        share = [math.exp(TEMPERATURE * x) for x in live]
        wrong = sum(
            p / sum(share) * log_sigmoid(-MARGIN - x) for p, x in zip(share, live, strict=True)
        )
        total -= w * (log_sigmoid(MARGIN + s) + wrong) / 2
    return total


def cross_entropy_by_hand(positive: Any, negative: Any, masked: Any, weight: Any) -> float:
    total = 0.0
    for s, row, hidden, w in zip(positive, negative, masked, weight, strict=True):
        everything = [s, *(x for x, m in zip(row, hidden, strict=True) if not m)]
        total -= w * (s - math.log(sum(math.exp(x) for x in everything)))
    return total


def example() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Scores, masks and weights; the first query has no live negative, the second a single one."""
    masked = torch.rand(B, N, generator=seeded(1)) < 0.4
    masked[0] = True
    masked[1] = torch.arange(N) != 2
    weight = torch.rand(B, generator=seeded(2), dtype=torch.float64)
    return normal(B, seed=3), normal(B, N, seed=4, scale=2), masked, weight / weight.sum()


def adversarial(
    positive: Tensor, negative: Tensor, masked: Tensor, weight: Tensor, cuts: tuple[int, ...] = ()
) -> Tensor:
    parts = [
        Adversarial.of(s, m, margin=MARGIN, temperature=TEMPERATURE)
        for s, m in zip(negative.tensor_split(cuts, 1), masked.tensor_split(cuts, 1), strict=True)
    ]
    whole = Adversarial.merge(parts) if cuts else parts[0]
    return self_adversarial(positive, whole, weight, margin=MARGIN)


def softmax(
    positive: Tensor, negative: Tensor, masked: Tensor, weight: Tensor, cuts: tuple[int, ...] = ()
) -> Tensor:
    parts = zip(negative.tensor_split(cuts, 1), masked.tensor_split(cuts, 1), strict=True)
    return cross_entropy(positive, log_sum(parts), weight)


def test_self_adversarial_is_equation_16() -> None:
    values = example()
    expected = adversarial_by_hand(*(v.tolist() for v in values))
    assert adversarial(*values).item() == pytest.approx(expected, rel=1e-12)


def test_cross_entropy_is_its_formula() -> None:
    values = example()
    expected = cross_entropy_by_hand(*(v.tolist() for v in values))
    assert softmax(*values).item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("loss", [adversarial, softmax])
@pytest.mark.parametrize("cuts", [(3,), (2, 3)], ids=["two", "three"])
def test_parts_of_the_candidate_axis_merge_into_the_whole(loss: Any, cuts: tuple[int, ...]) -> None:
    """Value and gradients; some parts of some rows hold nothing live."""
    positive, negative, masked, weight = example()
    masked[2, :3], masked[3, 3:] = True, True
    results = []
    for split in ((), cuts):
        s, n = positive.clone().requires_grad_(), negative.clone().requires_grad_()
        value = loss(s, n, masked, weight, split)
        results.append((value.detach(), *torch.autograd.grad(value, (s, n))))
    torch.testing.assert_close(results[1], results[0], rtol=1e-12, atol=1e-15)


def test_self_adversarial_weights_are_constants() -> None:
    """The gradient is that of the formula with p frozen, not that of the softmax."""
    positive, negative, masked, weight = example()
    negative.requires_grad_()
    (found,) = torch.autograd.grad(adversarial(positive, negative, masked, weight), negative)
    logits = (TEMPERATURE * negative.detach()).masked_fill(masked, -1e30)
    p = torch.softmax(logits, 1).masked_fill(masked, 0)
    slope = torch.sigmoid(MARGIN + negative.detach())  # −∂ log σ(−γ − s)/∂s
    torch.testing.assert_close(found, weight[:, None] * p * slope / 2)


@pytest.mark.parametrize("loss", [adversarial, softmax])
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e4, 1e30], ids=str)
def test_gradients_are_finite_and_masked_scores_get_none(loss: Any, scale: float) -> None:
    positive, negative, masked, weight = (
        v.float() if v.is_floating_point() else v for v in example()
    )
    positive = (positive * scale).requires_grad_()
    negative = (negative * scale).requires_grad_()
    value = loss(positive, negative, masked, weight)
    value.backward()
    assert value.isfinite()
    assert positive.grad is not None
    assert negative.grad is not None
    assert positive.grad.isfinite().all()
    assert negative.grad.isfinite().all()
    assert (negative.grad[masked] == 0).all()


@pytest.mark.parametrize("loss", [adversarial, softmax])
def test_a_nan_score_is_not_hidden(loss: Any) -> None:
    positive, negative, masked, weight = example()
    negative[4, int((~masked[4]).nonzero()[0])] = torch.nan
    assert loss(positive, negative, masked, weight).isnan()
