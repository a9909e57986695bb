"""Adam by rows: deferred it is dense Adam whenever it settles, lazy it leaves undrawn rows alone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from golde.config import Config
from golde.kernels.adam import BETA1, BETA2, EPSILON, MOVING
from golde.models import GoldE
from golde.runs import RunFolder
from golde.training import StoppedError, dense_adam, row_adam, train
from golde.training.row_adam import DeferredRowAdam, FusedRowAdam, LazyRowAdam, RowAdam
from golde.training.sampling import Sampler
from golde.training.update import Update
from oracles import normal, seeded
from tiny import quick, ring

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
TRITON = find_spec("triton") is not None
kernels = pytest.mark.skipif(not TRITON, reason="Triton is not installed (extra: kernels)")

if TRITON:
    with pytest.MonkeyPatch.context() as patch:
        if not CUDA:
            patch.setenv(
                "TRITON_INTERPRET", "1"
            )  # read when kernels are defined; see tests/kernels
        launchers: Any = import_module("golde.kernels.triton.row_adam")


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    if not CUDA:
        monkeypatch.setenv("TRITON_INTERPRET", "1")


class Step(NamedTuple):
    """What an optimiser is given: the gradient of a row at every position, and how to take it."""

    rate: float
    ids: Tensor  # (n,)
    grad: Tensor  # (n, D)
    scale: Tensor  # ()
    found_inf: Tensor  # ()


SKIPPED = 5


def steps(E: int, D: int, n: int, count: int) -> list[Step]:
    """Draws among the first two rows, now and then among all; one step is not finite."""
    draw, made = seeded(E + D), []
    for k in range(count):
        among = E if k % 4 == 0 else min(E, 2)
        ids = torch.randint(among, (n,), generator=draw)
        grad = normal(n, D, seed=k).float()
        if k == SKIPPED:
            grad[0, 0] = torch.nan
        scale = torch.tensor(1.0 + k % 3)
        found_inf = torch.tensor(float(k == SKIPPED))
        rate = 0.1 * math.cos(k / count)
        tensors = (t.to(DEVICE) for t in (ids, grad, scale, found_inf))
        made.append(Step(rate, *tensors))
    return made


def table(E: int, D: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return normal(E, D, seed=7, scale=0.1).to(DEVICE, dtype)


def run(optimiser: RowAdam, made: Iterable[Step]) -> list[Tensor]:
    """Take the steps; the squared norms of their gradients."""
    norms = []
    for step in made:
        optimiser.advance(step.rate)
        rows = optimiser.rows(step.ids)
        norms.append(optimiser.fold(step.grad.to(rows.dtype).clone()).sum())
        optimiser.step(step.scale, step.found_inf)
    return norms


def outcome(optimiser: RowAdam) -> dict[str, Tensor]:
    """The table and its moments, settled."""
    optimiser.settle()
    tensors = {"parameter": optimiser.parameter, **optimiser.state()}
    return {name: tensor.clone() for name, tensor in tensors.items()}


def dense(
    parameter: Tensor, made: Iterable[Step], pull: float = 0.0
) -> tuple[dict[str, Tensor], list[Tensor]]:
    """The same by torch's Adam over the whole table, on a CPU; ``pull · Σ‖e‖`` is added to the loss.

    On a GPU torch takes 1 − β₂ from a β₂ in float32, which is off by 10⁻⁵ of it.
    """
    leaf = parameter.to("cpu", copy=True).requires_grad_()
    optimiser: Any = torch.optim.Adam([leaf], fused=True)
    norms = []
    for step in made:
        grad = step.grad.to("cpu", leaf.dtype)
        leaf.grad = torch.zeros_like(leaf).index_add_(0, step.ids.cpu(), grad)
        norms.append(leaf.grad.square().sum().to(DEVICE))
        norm = torch.linalg.vector_norm(leaf.detach(), dim=1, keepdim=True)
        leaf.grad += pull * step.scale.to(norm) * leaf.detach() / norm
        optimiser.param_groups[0]["lr"] = step.rate
        optimiser.grad_scale, optimiser.found_inf = step.scale.cpu(), step.found_inf.cpu()
        optimiser.step()
    tensors = {"parameter": leaf.detach(), **optimiser.state[leaf]}
    return {name: tensor.to(DEVICE) for name, tensor in tensors.items()}, norms


def same(one: dict[str, Tensor], two: dict[str, Tensor]) -> bool:
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


@kernels
@pytest.mark.parametrize(
    ("E", "D", "n", "columns"),
    [(6, 7, 4, 1024), (4, 1, 3, 1024), (3, 70, 3, 64), (4, 7, 1, 1024), (1, 3, 4, 1024)],
    ids=["usual", "a column", "blocks of columns", "a position", "one row"],
)
def test_deferred_is_dense_adam(
    E: int, D: int, n: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under a schedule, clipping and a skipped step, with duplicates and rows drawn rarely or never."""
    monkeypatch.setattr(launchers, "COLUMNS", columns)
    made, parameter = steps(E, D, n, 9), table(E, D)
    expected, expected_norms = dense(parameter, made)
    optimiser = FusedRowAdam(parameter, lazy=False)
    norms = run(optimiser, made)
    torch.testing.assert_close(outcome(optimiser), expected, rtol=2e-6, atol=2e-7)
    torch.testing.assert_close(norms, expected_norms, rtol=1e-6, atol=0, equal_nan=True)
    assert expected["step"] == 8


@kernels
@pytest.mark.parametrize(("E", "D", "n"), [(6, 7, 4), (3, 70, 1), (1, 3, 4)])
def test_rows_are_pulled_in_the_steps_they_miss(
    E: int, D: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that were never drawn from the first step on; a row wider than a block is one all the same."""
    monkeypatch.setattr(launchers, "COLUMNS", 64)
    made, parameter = steps(E, D, n, 9), table(E, D)
    expected, expected_norms = dense(parameter, made, pull=0.3)
    optimiser = FusedRowAdam(parameter.clone(), lazy=False, pull=0.3)
    norms = run(optimiser, made)
    torch.testing.assert_close(outcome(optimiser), expected, rtol=2e-5, atol=2e-6)
    torch.testing.assert_close(norms, expected_norms, rtol=1e-6, atol=0, equal_nan=True)
    assert (outcome(optimiser)["parameter"] != parameter).all()

    monkeypatch.setattr(row_adam, "TURNS", 4)  # the records begin anew, and a run is resumed
    resumed = FusedRowAdam(parameter.clone(), lazy=False, pull=0.3)
    run(resumed, made[:3])
    state = outcome(resumed)
    resumed = FusedRowAdam(state.pop("parameter"), lazy=False, pull=0.3)
    resumed.load(state)
    run(resumed, made[3:])
    torch.testing.assert_close(outcome(resumed), expected, rtol=2e-5, atol=2e-6)


@kernels
def test_a_row_of_zeros_is_not_pulled() -> None:
    nothing = torch.zeros(2, 3, device=DEVICE)
    optimiser = FusedRowAdam(nothing.clone(), lazy=False, pull=0.3)
    ids, zero = torch.zeros(1, dtype=torch.int64, device=DEVICE), torch.zeros((), device=DEVICE)
    run(optimiser, [Step(0.1, ids, nothing[:1], zero + 1, zero)] * 3)
    assert torch.equal(outcome(optimiser)["parameter"], nothing)


@kernels
def test_rows_are_up_to_date_when_they_are_drawn() -> None:
    made, parameter = steps(6, 7, 4, 11), table(6, 7)
    expected, _ = dense(parameter, made)
    optimiser = FusedRowAdam(parameter, lazy=False)
    run(optimiser, made)
    optimiser.advance(1.0)
    ids = torch.tensor([5, 0, 5, 3], device=DEVICE)
    rows = optimiser.rows(ids)
    assert rows.is_leaf
    assert rows.requires_grad
    torch.testing.assert_close(rows.detach(), expected["parameter"][ids], rtol=2e-6, atol=2e-7)


@kernels
def test_settling_at_any_time_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does beginning the records anew, nor going on from a checkpoint."""
    # At most two of a kind: three are added up in no fixed order on a GPU.
    made = steps(6, 5, 2, 18 if CUDA else 9)

    def optimiser() -> FusedRowAdam:
        return FusedRowAdam(table(6, 5), lazy=False)

    plain = optimiser()
    run(plain, made)
    expected = outcome(plain)

    settled, resumed = optimiser(), optimiser()
    for k, step in enumerate(made):
        run(settled, [step])
        run(resumed, [step])
        if torch.rand((), generator=seeded(k)) < 0.4:
            settled.settle()
        if k % 4 == 3:
            state = {name: tensor.cpu() for name, tensor in outcome(resumed).items()}
            resumed = FusedRowAdam(state.pop("parameter").to(DEVICE), lazy=False)
            resumed.load(state)
    assert same(outcome(settled), expected)
    assert same(outcome(resumed), expected)

    monkeypatch.setattr(row_adam, "TURNS", 5)
    renewed = optimiser()
    run(renewed, made)
    assert same(outcome(renewed), expected)


@pytest.mark.parametrize("pull", [0.0, 0.3], ids=["plain", "pulled"])
@pytest.mark.parametrize("turns", [4096, 7], ids=["one record", "records begun anew"])
def test_deferred_in_plain_operations_is_dense_adam(
    pull: float, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of rows that miss more steps than can move them; resuming and settling change no bit."""
    monkeypatch.setattr(row_adam, "TURNS", turns)
    made = steps(6, 5, 4, 20)
    alone = torch.zeros(4, dtype=torch.int64, device=DEVICE)
    made += [made[1]._replace(ids=alone, rate=1e-5)] * (MOVING + 20)
    parameter = table(6, 5, torch.float64)
    expected, expected_norms = dense(parameter, made, pull=pull)

    def optimiser() -> DeferredRowAdam:
        return DeferredRowAdam(parameter.clone(), pull=pull)

    deferred, resumed = optimiser(), optimiser()
    norms = run(deferred, made)
    torch.testing.assert_close(outcome(deferred), expected, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(norms, expected_norms, rtol=1e-9, atol=0, equal_nan=True)
    run(resumed, made[:30])
    state = outcome(resumed)
    resumed = DeferredRowAdam(state.pop("parameter"), pull=pull)
    resumed.load(state)
    run(resumed, made[30:])
    assert same(outcome(resumed), outcome(deferred))


P, ROOT_V = [[0.0, 0.0, 1e-12, 0.5]], [[1e-3, 1e-15, 1e-3, 10.0]]
MISSED = 600 if CUDA else 300  # more than can move a row
FARTHEST = (1 - BETA1) / math.sqrt((1 - BETA2) * (1 - BETA1**2 / BETA2))  # m / √v can be


def absent(rates: Tensor, portions: list[int]) -> dict[str, Tensor]:
    """One row that misses steps of such rates, late in a run, settled whenever so many have gone by."""
    state = launchers.Table.of(torch.tensor(P, device=DEVICE), len(rates))
    state.exp_avg.copy_(FARTHEST * torch.tensor(ROOT_V))
    state.exp_avg_sq.copy_(torch.tensor(ROOT_V) ** 2)
    state.last.fill_(0)
    state.taken.copy_(torch.arange(len(rates) + 1))
    state.coefficients.copy_(torch.stack((rates, torch.ones_like(rates)), 1))
    for done in portions:
        state.turn.fill_(done - 1)
        state.settle()
    state.turn.fill_(len(rates))
    drawn = state.gather(torch.zeros(1, dtype=torch.int64, device=DEVICE), lazy=False)
    return {"p": drawn.rows, "m": drawn.exp_avg, "v": drawn.exp_avg_sq}


@kernels
@pytest.mark.parametrize("late", [False, True], ids=["always", "late"])
def test_after_long_absence(late: bool) -> None:
    """A bounded number of steps move a row: dense Adam all the same, and no bit differs in portions.

    Where the rate is zero at first, p is still so small when the bound is reached that any step shows.
    """
    rates = torch.full((MISSED,), 0.01)
    rates[: 240 * late] = 0
    found = absent(rates, [])
    assert same(absent(rates, [3, 255, 256, 257, 280, MISSED]), found)
    p, root = (torch.tensor(value, dtype=torch.float64) for value in (P, ROOT_V))
    m, v = FARTHEST * root, root**2
    for rate in rates.tolist():
        m, v = BETA1 * m, BETA2 * v
        p -= rate * m / (v.sqrt() + EPSILON)
    left_out = 2e-10 * 0.01
    for name, value, atol in [("p", p, left_out), ("m", m, 1e-44), ("v", v, 1e-44)]:
        torch.testing.assert_close(found[name].cpu().double(), value, rtol=1e-4, atol=atol)


def by_hand(parameter: Tensor, made: Iterable[Step]) -> dict[str, Tensor]:
    """Lazy Adam row by row."""
    p, m, v = parameter.clone(), torch.zeros_like(parameter), torch.zeros_like(parameter)
    k = 0
    for step in made:
        if step.found_inf:
            continue
        k += 1
        for row in sorted(set(step.ids.tolist())):
            g = step.grad[step.ids == row].to(p.dtype).sum(0) / step.scale
            m[row] = BETA1 * m[row] + (1 - BETA1) * g
            v[row] = BETA2 * v[row] + (1 - BETA2) * g**2
            root = (v[row] / (1 - BETA2**k)).sqrt()
            p[row] -= step.rate * m[row] / (1 - BETA1**k) / (root + EPSILON)
    count = torch.tensor(float(k), device=DEVICE)
    return {"parameter": p, "step": count, "exp_avg": m, "exp_avg_sq": v}


@pytest.mark.parametrize(("E", "D", "n"), [(6, 7, 5), (4, 1, 3), (3, 130, 1), (1, 3, 4)])
def test_lazy_leaves_rows_alone_that_are_not_drawn(E: int, D: int, n: int) -> None:
    made = steps(E, D, n, 9)
    exact = by_hand(table(E, D, torch.float64), made)
    plain = LazyRowAdam(table(E, D, torch.float64))
    norms = run(plain, made)
    torch.testing.assert_close(outcome(plain), exact, rtol=1e-12, atol=1e-14)
    expected_norms = dense(table(E, D, torch.float64), made)[1]
    torch.testing.assert_close(norms, expected_norms, equal_nan=True)
    narrow: list[RowAdam] = [LazyRowAdam(table(E, D))]
    if TRITON:
        narrow.append(FusedRowAdam(table(E, D), lazy=True))
    for optimiser in narrow:
        norms = run(optimiser, made)
        found = outcome(optimiser)
        wide = {name: value.to(exact[name].dtype) for name, value in found.items()}
        torch.testing.assert_close(wide, exact, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(
            [norm.double() for norm in norms], expected_norms, rtol=1e-5, atol=0, equal_nan=True
        )
        drawn = {int(row) for step in made if not step.found_inf for row in step.ids}
        for row in set(range(E)) - drawn:
            assert torch.equal(found["parameter"][row], table(E, D)[row])


@pytest.mark.parametrize("kernel", [pytest.param(True, marks=kernels), False])
def test_lazy_and_dense_differ_where_a_row_was_not_drawn(kernel: bool) -> None:
    """After a step that draws both rows and one that draws the first, the second has not moved on."""
    both, first = (torch.tensor(ids, device=DEVICE) for ids in ([0, 1], [0, 0]))
    one, zero = torch.ones((), device=DEVICE), torch.zeros((), device=DEVICE)
    made = [Step(0.1, ids, torch.ones(2, 3, device=DEVICE), one, zero) for ids in (both, first)]
    parameter = table(2, 3)
    expected, _ = dense(parameter, made)
    after_one, _ = dense(parameter, made[:1])
    lazy = FusedRowAdam(parameter, lazy=True) if kernel else LazyRowAdam(parameter)
    run(lazy, made)
    found = outcome(lazy)
    for name in ("parameter", "exp_avg", "exp_avg_sq"):
        torch.testing.assert_close(found[name][0], expected[name][0])
        torch.testing.assert_close(found[name][1], after_one[name][1])
        assert not torch.allclose(found[name][1], expected[name][1], rtol=1e-4)


@kernels
def test_a_table_the_kernels_cannot_move() -> None:
    for wrong in (torch.zeros(3, 4).T, torch.zeros(3, 4, dtype=torch.float64), torch.zeros(3)):
        with pytest.raises(ValueError, match="contiguous float32 tables"):
            FusedRowAdam(wrong.to(DEVICE), lazy=False)


def first_steps(config: Config, count: int) -> tuple[list[Any], Tensor, Tensor]:
    """Loss and gradient norm of the first steps, the table after them, and whose rows were drawn."""
    graph = ring()
    model = GoldE(config.model, len(graph.entities), len(graph.relations)).to(DEVICE)
    sampler = Sampler(
        graph.train,
        len(graph.entities),
        len(graph.relations),
        batch_size=3,
        negatives=2,
        subsampling=True,
        seed=0,
        device=DEVICE,
    )
    update = Update(model, sampler, config.training, capture=False)
    outcomes = [update(step, 0.01) for step in range(count)]
    update.settle()
    return outcomes, model.entity.detach(), sampler.seek(0).draw().entities


def test_the_first_step_is_that_of_dense_adam(monkeypatch: pytest.MonkeyPatch) -> None:
    """The norm that is clipped by is that of all gradients together."""
    monkeypatch.setenv("GOLDE_KERNELS", "plain")
    clipped: dict[str, Any] = {"gradient_clip": 1e-3}
    expected, entity, _ = first_steps(quick(**clipped), 1)
    found, rows, drawn = first_steps(quick(optimiser="lazy-adam", **clipped), 1)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(rows, entity)
    start, *_ = first_steps(quick(), 0)[1:]
    moved = (rows != start).any(1).nonzero().flatten()
    assert set(moved.tolist()) == set(drawn.tolist())


def test_clipping_leaves_the_pull_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the first step Adam moves by the sign of a gradient: undrawn rows go towards the origin."""
    monkeypatch.setenv("GOLDE_KERNELS", "plain")
    start, drawn = first_steps(quick(), 0)[1:]
    config = quick(gradient_clip=1e-3, regulariser="norm", regulariser_weight=0.3)
    outcomes, table, _ = first_steps(config, 1)
    unclipped = first_steps(quick(gradient_clip=1e9, regulariser="none"), 1)[0]
    torch.testing.assert_close(outcomes, unclipped)  # loss and norm are those of the facts
    undrawn = sorted(set(range(len(table))) - set(drawn.tolist()))
    assert undrawn
    moved = (table - start)[undrawn]
    torch.testing.assert_close(moved, -0.01 * start[undrawn].sign(), rtol=1e-3, atol=1e-6)


@kernels
@pytest.mark.parametrize(
    ("validate_every", "penalty"),
    [(3, {}), (0, {"regulariser": "norm", "regulariser_weight": 0.3})],
)
def test_training_with_deferred_rows_is_training_with_dense_adam(
    validate_every: int, penalty: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Validations, checkpoints and the end see settled rows; a resumed run ends where the whole one does."""
    training = {"steps": 4, "batch_size": 2, "negatives": 2, "validate_every": validate_every}
    training |= penalty
    config = quick({"signature": "P3x1"}, **training)
    monkeypatch.setattr(dense_adam, "has_kernels", lambda config, device: False)
    expected = train(ring(), tmp_path / "dense", config, device=DEVICE.type)
    monkeypatch.setattr(dense_adam, "has_kernels", lambda config, device: True)
    whole = train(ring(), tmp_path / "whole", config, device=DEVICE.type)
    for _ in range(2):
        with pytest.raises(StoppedError):
            train(
                ring(),
                tmp_path / "run",
                config,
                device=DEVICE.type,
                resume=True,
                should_stop=lambda: True,
            )
    resumed = train(ring(), tmp_path / "run", config, device=DEVICE.type, resume=True)

    def parameters(folder: RunFolder) -> dict[str, Tensor]:
        return dict(folder.load_model().state_dict())

    torch.testing.assert_close(parameters(whole), parameters(expected), rtol=1e-4, atol=1e-5)
    validations = [folder.about()["validation"] for folder in (whole, expected, resumed)]
    assert validations[0] == validations[1] == validations[2]
    if not CUDA:
        assert same(parameters(resumed), parameters(whole))
