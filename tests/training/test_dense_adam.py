"""Adam for whole parameters: the kernels do what torch's does, clipping and skipping included."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from golde.training.dense_adam import Clipping, DenseAdam, FusedAdam, TorchAdam
from oracles import normal

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
CLIP = 40.0

if find_spec("triton") is None:
    pytest.skip("Triton is not installed (extra: kernels)", allow_module_level=True)
with pytest.MonkeyPatch.context() as patch:
    if not CUDA:
        patch.setenv("TRITON_INTERPRET", "1")  # read when kernels are defined; see tests/kernels
    launchers: Any = import_module("golde.kernels.triton.dense_adam")


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    if not CUDA:
        monkeypatch.setenv("TRITON_INTERPRET", "1")
        monkeypatch.setattr(launchers, "BLOCK", 128)


MAPS, BLOCKS = ((5, 2, 103), (2, 512)) if CUDA else ((5, 2, 13), (2, 128))  # more than one block
SHAPES = {"number": (1,), "vector": (7,), "maps": MAPS, "blocks": BLOCKS, "empty": (3, 0)}
NOT_FINITE, ALONE = 4, 6


class Step(NamedTuple):
    """What an optimiser is given."""

    rate: float
    grads: dict[str, Tensor]  # of parameters that have one
    squares: Tensor  # of other gradients


def steps(count: int, shapes: Mapping[str, tuple[int, ...]] = SHAPES) -> list[Step]:
    """Gradients below and above the limit, now and then missing; one step is not finite."""
    made = []
    for k in range(count):
        scale = 0.1 if k % 3 else 2.0
        grads = {
            name: normal(*shape, seed=100 * k + i, scale=scale).float().to(DEVICE)
            for i, (name, shape) in enumerate(shapes.items())
            if k % 4 != i
        }
        if k == NOT_FINITE:
            next(iter(grads.values())).view(-1)[-1] = torch.inf
        if k == ALONE:
            grads.clear()
        squares = normal(3000 * (k % 2), seed=k).square().float().to(DEVICE)
        made.append(Step(0.1 * math.cos(k / count), grads, squares))
    return made


def parameters(
    shapes: Mapping[str, tuple[int, ...]] = SHAPES, device: torch.device = DEVICE
) -> dict[str, Tensor]:
    return {
        name: normal(*shape, seed=i, scale=0.1).float().to(device).requires_grad_()
        for i, (name, shape) in enumerate(shapes.items())
    }


def fused(shapes: Mapping[str, tuple[int, ...]] = SHAPES) -> FusedAdam:
    return FusedAdam(parameters(shapes), CLIP, DEVICE)


def by_torch() -> TorchAdam:
    """On a CPU: on a GPU torch takes 1 − β₂ from a β₂ in float32, which is off by 10⁻⁵ of it."""
    cpu = torch.device("cpu")
    return TorchAdam(parameters(device=cpu), CLIP, cpu, capture=False)


def run(adam: DenseAdam, made: Iterable[Step]) -> list[Clipping]:
    """Take the steps; how their gradients were taken."""
    device = next((p.device for p in adam.parameters.values()), DEVICE)
    clippings = []
    for step in made:
        adam.advance(step.rate)
        adam.zero_grad()
        for name, grad in step.grads.items():
            if name in adam.parameters:
                adam.parameters[name].grad = grad.to(device, copy=True)
        clippings.append(adam.clip(step.squares.to(device)))
        adam.step(*clippings[-1][1:])
    return clippings


def outcome(adam: DenseAdam) -> dict[str, Tensor]:
    """Parameters and moments, by name."""
    found = {
        name: p.detach().to("cpu", copy=True) for name, p in adam.parameters.items() if p.numel()
    }
    for name, kept in adam.state().items():
        if adam.parameters[name].numel():
            found |= {f"{name}/{key}": value.to("cpu", copy=True) for key, value in kept.items()}
    return found


def same(one: dict[str, Tensor], two: dict[str, Tensor]) -> bool:
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize("block", [512, 128])
def test_the_kernels_are_torchs_adam(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a schedule, clipping, a skipped step and steps in which some or all have no gradient."""
    monkeypatch.setattr(launchers, "BLOCK", block)
    made, found, expected = steps(10), fused(), by_torch()
    clippings, wanted = (
        [Clipping(*(t.cpu() for t in clipping)) for clipping in run(adam, made)]
        for adam in (found, expected)
    )
    for k, (one, other) in enumerate(zip(clippings, wanted, strict=True)):
        assert one.found_inf == other.found_inf == (k == NOT_FINITE)
        torch.testing.assert_close(one.norm, other.norm, rtol=2e-6, atol=0)
        if k != NOT_FINITE:
            torch.testing.assert_close(one.scale, other.scale, rtol=2e-6, atol=0)
    assert {one.scale.item() > 1 for one in clippings} == {True, False}
    torch.testing.assert_close(outcome(found), outcome(expected), rtol=2e-6, atol=2e-7)
    taken = {name: kept["step"].item() for name, kept in found.state().items()}
    assert taken == {"number": 6, "vector": 5, "maps": 7, "blocks": 6}


def test_going_on_from_a_state_changes_no_bit() -> None:
    """From torch's it changes none to speak of, and torch goes on from the kernels'."""
    made = steps(7)
    whole, first, torchs = fused(), fused(), by_torch()
    run(whole, made)

    run(first, made[:5])
    run(torchs, made[:5])
    state = {name: {k: t.cpu() for k, t in kept.items()} for name, kept in first.state().items()}
    resumed, from_kernels = fused(), by_torch()
    from_torch = fused()
    for adam, start, kept in (
        (resumed, first, state),
        (from_kernels, first, state),
        (from_torch, torchs, dict(torchs.state())),
    ):
        for name, parameter in adam.parameters.items():
            with torch.no_grad():
                parameter.copy_(start.parameters.get(name, parameter))
        adam.load(kept)
        run(adam, made[5:])
    assert same(outcome(resumed), outcome(whole))
    for adam in (from_kernels, from_torch):
        torch.testing.assert_close(outcome(adam), outcome(whole), rtol=2e-6, atol=2e-7)


def test_bias_corrections_end_where_they_are_one() -> None:
    """The count of steps goes on past the table of them."""
    adam, expected = fused(), by_torch()
    for one in (adam, expected):
        run(one, steps(2))
        kept = {
            name: state | {"step": torch.tensor(launchers.CORRECTED + 5.0)}
            for name, state in one.state().items()
        }
        one.load(kept)
        run(one, steps(2))
    torch.testing.assert_close(outcome(adam), outcome(expected), rtol=2e-6, atol=2e-7)


def test_without_parameters_the_others_are_clipped() -> None:
    adam = fused({"empty": (3, 0)})
    (clipping,) = run(adam, [Step(0.1, {}, torch.full((5000,), 2.0, device=DEVICE))])
    torch.testing.assert_close(clipping.norm.item(), 100.0)
    torch.testing.assert_close(clipping.scale.item(), 100.0 / CLIP)
    assert clipping.found_inf == 0
    assert not adam.state()


def test_parameters_the_kernels_cannot_move() -> None:
    for wrong in (torch.zeros(3, 4).T, torch.zeros(3, dtype=torch.float64)):
        with pytest.raises(ValueError, match="contiguous float32 tensors"):
            FusedAdam({"wrong": wrong}, CLIP, DEVICE)


@pytest.mark.skipif(not CUDA, reason="only a GPU captures")
def test_a_captured_step_does_the_same() -> None:
    """Replayed it takes the gradients from where autograd put them during the capture."""

    def step(adam: FusedAdam, weight: Tensor) -> Clipping:
        adam.zero_grad()
        losses = [(weight * p).square().sum() for p in adam.parameters.values()]
        torch.stack(losses).sum().backward()
        clipping = adam.clip(weight.new_empty(0))
        adam.step(*clipping[1:])
        return clipping

    adam, plain, weight = fused(), fused(), torch.ones((), device=DEVICE)
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    adam.advance(0.1)
    plain.advance(0.1)
    step(plain, weight)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step(adam, weight)
    torch.cuda.current_stream().wait_stream(stream)
    with torch.cuda.graph(graph, stream=stream):
        clipping = step(adam, weight)
    for k in range(1, 5):
        weight.fill_(math.inf if k == 2 else 3.0 * k)
        for one in (adam, plain):
            one.advance(0.1 / k)
        graph.replay()
        expected = step(plain, weight)
        assert torch.equal(clipping.norm, expected.norm)
    assert same(outcome(adam), outcome(plain))
    assert adam.state()["maps"]["step"] == 4
