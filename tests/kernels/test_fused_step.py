"""A whole step of training by kernels against the plain one: they draw, score and move the same."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from golde.config import Config
from golde.geometry import constraints, present, reflections
from golde.models import GoldE, golde, place
from golde.training import dense_adam, losses, sampling
from golde.training.dense_adam import FusedAdam
from golde.training.host_update import HostUpdate
from golde.training.sampling import Sampler
from golde.training.update import Update
from tiny import quick, ring

pytest.importorskip("triton", reason="Triton is not installed (extra: kernels)")

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
BATCH, OTHERS = (5, "E2x1 Q3x1") if CUDA else (3, "E2x1")  # what the interpreter does in a second


def first_steps(
    config: Config, count: int, *, fused: bool, host: bool = False
) -> tuple[list[float], dict[str, Tensor]]:
    """The losses of the first steps and the parameters after them."""
    with pytest.MonkeyPatch.context() as patch:
        if not fused:
            patch.setenv("GOLDE_KERNELS", "plain")
        elif not CUDA:  # everything is as on a GPU
            patch.setenv("TRITON_INTERPRET", "1")
            for module in (losses, sampling, reflections, constraints):
                patch.setattr(module, "fuses", lambda tensor: True)
            patch.setattr(golde, "supports", lambda finish, dtype, device: True)
            patch.setattr(golde, "present", partial(present, fixed=True))
            patch.setattr(dense_adam, "has_kernels", lambda config, device: True)
        graph, training = ring(), config.training
        sizes = len(graph.entities), len(graph.relations)
        made: dict[str, Any] = {"batch_size": BATCH, "negatives": training.negatives, "seed": 4}
        sampler = Sampler(graph.train, *sizes, subsampling=True, device=DEVICE, **made)
        model = GoldE(config.model, *sizes, seed=2)
        model = place(model, DEVICE, torch.float32, host=host)
        make = HostUpdate if host else Update
        update = make(model, sampler, training, capture=False)
        assert isinstance(update.dense, FusedAdam) == fused
        outcomes = [update(step, 0.01).loss.item() for step in range(count)]
        update.settle()
        return outcomes, {name: p.detach().cpu() for name, p in model.named_parameters()}


@pytest.mark.parametrize(
    ("model", "training"),
    [
        ({"signature": "P3x1 Q4x1"}, {}),
        (
            {"signature": OTHERS, "reciprocal": False, "bias": True, "norm": 2},
            {"query_as_negative": False, "optimiser": "lazy-adam", "negatives": 0},
        ),
    ],
    ids=["defaults", "others"],
)
def test_a_step_by_kernels_is_the_step(model: dict[str, Any], training: dict[str, Any]) -> None:
    config = quick(model, **training)
    found, moved = first_steps(config, 2, fused=True)
    expected, wanted = first_steps(config, 2, fused=False)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=0)
    torch.testing.assert_close(moved, wanted, rtol=0, atol=1e-4)


def test_a_step_by_kernels_on_a_table_in_host_memory_is_the_step() -> None:
    """Each step has rows of the one before, others that were away, and some of neither."""
    config = quick({"signature": "E2x1"}, negatives=2)
    found, moved = first_steps(config, 4, fused=True, host=True)
    expected, wanted = first_steps(config, 4, fused=False)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=0)
    torch.testing.assert_close(moved, wanted, rtol=0, atol=1e-4)
