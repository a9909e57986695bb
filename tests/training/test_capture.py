"""A captured step is the step: whole runs against the same ones without a capture, on a GPU."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from golde.config import Config
from golde.kernels.triton.rehearsal import Kernel
from golde.models import build
from golde.training import checkpoint, train
from golde.training.checkpoint import Progress
from golde.training.replay import EAGER
from golde.training.sampling import Sampler
from golde.training.update import Update
from tiny import quick, ring

CAPTURE = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CAPTURE else "cpu")
pytestmark = pytest.mark.skipif(not CAPTURE, reason="only a GPU captures steps")

STEPS = 20  # of 10 queries; the graph has 64, so that the order is drawn anew three times

SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # of the model, of training
    "defaults": ({}, {}),
    "inverse maps": ({"reciprocal": False}, {}),
    "biases": ({"bias": True}, {}),
    "biases, inverse maps": ({"bias": True, "reciprocal": False}, {}),
    "loop biases": ({"loop_bias": True}, {"answers_as_negatives": True}),
    "squares": ({"norm": 2, "weights": {"P": 0.5}}, {}),
    "three groups": ({"signature": "E3x1 P3x2 Q4x2"}, {}),
    "long components": ({"signature": "P33x1 Q4x2"}, {}),
    "cross-entropy": ({}, {"loss": "cross-entropy"}),
    "norm": ({}, {"regulariser": "norm", "regulariser_weight": 0.01}),
    "n3": ({}, {"regulariser": "n3", "regulariser_weight": 0.01}),
    "shared negatives alone": ({}, {"query_as_negative": False}),
    "answers": ({"bias": True}, {"answers_as_negatives": True}),
    "all entities": ({}, {"negatives": 0}),
    "clipped": ({}, {"gradient_clip": 0.05}),
    "float64": ({}, {"precision": "float64"}),
    "lazy": ({}, {"optimiser": "lazy-adam"}),
    "lazy, float64": ({}, {"optimiser": "lazy-adam", "precision": "float64"}),
    "transe": ({"signature": None, "kind": "transe", "numbers": 12}, {}),
    "distmult": ({"signature": None, "kind": "distmult", "numbers": 12, "bias": True}, {}),
    "complex": (
        {"signature": None, "kind": "complex", "numbers": 12, "reciprocal": False},
        {"regulariser": "n3", "regulariser_weight": 0.01},
    ),
}


def settings(name: str) -> Config:
    model, training = SETTINGS[name]
    return quick(model, **training)


def some(*names: str) -> Any:
    return pytest.mark.parametrize("config", [settings(name) for name in names], ids=names)


class Run:
    """The first steps of a run."""

    def __init__(self, config: Config, *, capture: bool) -> None:
        graph, training = ring(), config.training
        assert training.batch_size is not None
        assert training.negatives is not None
        sizes = len(graph.entities), len(graph.relations)
        sampler = Sampler(
            graph.train,
            *sizes,
            batch_size=training.batch_size,
            negatives=training.negatives,
            answers=training.answers_as_negatives,
            subsampling=training.subsampling,
            seed=training.seed,
            device=DEVICE,
        )
        self.model = build(config.model, *sizes).to(DEVICE, getattr(torch, training.precision))
        self.update = Update(self.model, sampler, training, capture=capture)
        self.losses: list[float] = []

    def step(self, step: int) -> float:
        """Make a step, at a rate that falls; returns the norm of its gradient."""
        outcome = self.update(step, 0.02 * (1 - step / (2 * STEPS)))
        self.losses.append(outcome.loss.item())
        return outcome.gradient_norm.item()

    def steps(self, numbers: Iterable[int]) -> None:
        for step in numbers:
            self.step(step)

    def state(self) -> dict[str, Tensor]:
        """Parameters and moments, settled."""
        self.update.settle()
        found = dict(self.model.named_parameters())
        for name, state in self.update.state().items():
            found |= {f"{name}/{key}": value for key, value in state.items()}
        return {name: tensor.detach().clone() for name, tensor in found.items()}


def assert_same(found: Run, expected: Run) -> None:
    """To within rounding, which is far below what a single step moves."""
    wide = found.model.entity.dtype == torch.float64
    close: dict[str, float] = {"rtol": 1e-6, "atol": 1e-6} if wide else {"rtol": 1e-3, "atol": 1e-3}
    torch.testing.assert_close(found.losses, expected.losses, **close)
    torch.testing.assert_close(found.state(), expected.state(), **close)


@some(*SETTINGS)
def test_a_captured_run_is_the_run(config: Config) -> None:
    found, expected = Run(config, capture=CAPTURE), Run(config, capture=False)
    start = expected.state()["entity"]
    for run in (found, expected):
        run.steps(range(STEPS))
    assert found.update._replay.captured == CAPTURE
    assert_same(found, expected)
    assert (expected.state()["entity"] - start).abs().amax(1).min() > 0.01  # every row was moved


@some("defaults", "lazy", "all entities")
def test_without_kernels(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """Captured in plain operations, and beside a run with kernels."""
    with_kernels = Run(config, capture=CAPTURE)
    with_kernels.steps(range(STEPS))
    monkeypatch.setenv("GOLDE_KERNELS", "plain")
    found, expected = Run(config, capture=CAPTURE), Run(config, capture=False)
    for run in (found, expected):
        run.steps(range(STEPS))
    assert_same(found, expected)
    torch.testing.assert_close(found.losses, with_kernels.losses, rtol=1e-2, atol=1e-2)


@contextmanager
def broken(run: Run) -> Iterator[None]:
    """A relation's curvature is not a number for a while."""
    (parameter,) = (p for name, p in run.model.named_parameters() if name.endswith("free_beta"))
    before = parameter.detach().clone()
    parameter.data.fill_(torch.nan)
    yield
    parameter.data.copy_(before)


@some("defaults", "lazy", "float64", "cross-entropy")
@pytest.mark.parametrize("when", [1, EAGER, 11], ids=["before", "first replay", "later"])
def test_a_step_that_is_not_finite_moves_nothing(config: Config, when: int) -> None:
    """Before the capture or after; the steps that follow go on as if it had not been there."""
    found, expected = Run(config, capture=CAPTURE), Run(config, capture=False)
    for run in (found, expected):
        run.steps(range(when))
        before = run.state()
        with broken(run):
            assert not math.isfinite(run.step(when))
        after = run.state()
        assert all(torch.equal(after[name], before[name]) for name in before)
        run.losses.pop()
        run.steps(range(when + 1, STEPS))
    assert all(math.isfinite(loss) for loss in found.losses)
    assert_same(found, expected)


@some("defaults", "lazy", "biases", "float64")
@pytest.mark.parametrize("stop", [2, 9], ids=["before the capture", "after"])
@pytest.mark.parametrize("capture", [CAPTURE, False], ids=["captured", "eager"])
def test_going_on_from_a_checkpoint(
    config: Config, stop: int, capture: bool, tmp_path: Path
) -> None:
    """In another process it would be: another model, optimiser, sampler and capture."""
    whole, first = Run(config, capture=CAPTURE), Run(config, capture=CAPTURE)
    second = Run(config, capture=capture)
    whole.steps(range(STEPS))
    first.steps(range(stop))
    first.update.settle()
    path = tmp_path / "checkpoint"
    checkpoint.save(path, first.model, first.update, None, Progress(step=stop), "digest")
    progress, _ = checkpoint.load(path, second.model, second.update, "digest")
    second.steps(range(progress.step, STEPS))
    second.losses[:0] = first.losses
    assert_same(second, whole)


def test_training_captures_unless_it_is_told_not_to(tmp_path: Path) -> None:
    """From the command's side: validations and logs in between, the same model at the end."""
    folders = [
        train(ring(), tmp_path / setting, quick(compile=setting), device=DEVICE.type)
        for setting in ("auto", "off")
    ]
    found, expected = (dict(folder.load_model().state_dict()) for folder in folders)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)


@some("defaults", "inverse maps", "lazy")
def test_a_rehearsal_leaves_nothing_to_compile(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the same tensors to the last bit of their addresses' alignment."""
    knobs = pytest.importorskip("triton").knobs
    run = Run(config, capture=False)
    for name, module in list(sys.modules.items()):
        if name.startswith("golde.kernels.triton."):
            for kernel in vars(module).values():
                if isinstance(kernel, Kernel):
                    kernel.function.device_caches.clear()
    compiled: list[Any] = []
    monkeypatch.setattr(knobs.compilation, "listener", lambda **about: compiled.append(about))
    run.update.rehearse()
    assert len(compiled) > 20
    compiled.clear()
    run.steps(range(2))
    assert not compiled
