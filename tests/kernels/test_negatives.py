"""Reductions of negatives as kernels, against the plain losses."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import Tensor

from golde.training.losses import Adversarial
from oracles import normal, seeded

if find_spec("triton") is None:
    pytest.skip("Triton is not installed (extra: kernels)", allow_module_level=True)

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")

with pytest.MonkeyPatch.context() as patch:
    if not CUDA:
        patch.setenv("TRITON_INTERPRET", "1")  # read when kernels are defined; see conftest
    negatives: Any = import_module("golde.kernels.triton.negatives")


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    if not CUDA:
        monkeypatch.setenv("TRITON_INTERPRET", "1")


@pytest.mark.parametrize("N", [1, 100, 2100])
def test_the_reduction_is_that_of_the_plain_loss(N: int) -> None:
    scores = normal(5, N, seed=1, scale=3.0).float().to(DEVICE)
    masked = (torch.rand(5, N, generator=seeded(2)) < 0.4).to(DEVICE)
    masked[2], masked[3] = True, False
    weight = normal(5, seed=3).float().to(DEVICE)

    def run(reduce: Any) -> tuple[Tensor, Tensor, Tensor]:
        leaf = scores.clone().requires_grad_()
        log_weight, wrong = reduce(leaf)
        (grad,) = torch.autograd.grad((weight * wrong).sum(), leaf)
        return log_weight, wrong.detach(), grad

    plain = run(lambda s: Adversarial.of(s, masked, margin=6.0, temperature=0.7))
    found = run(lambda s: negatives.adversarial(s, masked, 6.0, 0.7))
    for one, two in zip(plain, found, strict=True):
        torch.testing.assert_close(two, one, rtol=3e-6, atol=1e-6)
