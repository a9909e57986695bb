"""Forms of a step on a small random graph: each is right or has no time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from golde.benchmark import compare, forms
from golde.benchmark.agreement import ROUNDINGS, STEPS, Expected, Trace, expected, worst
from golde.benchmark.clock import Memory, spread
from golde.benchmark.compare import Comparison, bench
from golde.benchmark.forms import Shared, form, plain
from golde.benchmark.gathered import Gathered
from golde.benchmark.provenance import provenance
from golde.benchmark.size import Size
from golde.benchmark.task import Task
from golde.errors import ConfigError
from golde.kernels import Core, Finish, pairwise_reference
from golde.runs.commit import commit, loaded_commit
from golde.training.update import Outcome

CPU = torch.device("cpu")
TINY = Task(Size(60, 3, 200, "P3x2 Q4x2", 12, 20), CPU)
FIGURES = {"ms", "quartiles_ms", "pairs_per_second", "memory_beyond_state_mb", "captured"}


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "can_compile", lambda: False)


def replaced(monkeypatch: pytest.MonkeyPatch, build: Any, settings: Any = plain) -> dict[str, Any]:
    """What becomes of a form that is put in the place of the CPU's own."""
    monkeypatch.setitem(forms.ON_CPU, "blocked", form(build, settings))
    return Comparison(TINY).measure("blocked", 3)


@pytest.mark.usefixtures("no_compiler")
def test_every_form_does_what_the_plain_one_does() -> None:
    done: list[tuple[int, int]] = []
    found = bench(
        TINY, repeats=3, sweeps=["batch", "dimension"], progress=lambda *at: done.append(at)
    )
    assert set(found["forms"]) == set(forms.ON_CPU)
    for name in ("gathered", "plain", "blocked"):
        one = found["forms"][name]
        assert set(one) >= FIGURES
        low, high = one["quartiles_ms"]
        assert 0 < low <= one["ms"] <= high
        assert one["checked"]["error"] < 0.7, name  # gathered shares no code with the others
    assert found["forms"]["plain"]["checked"]["error"] == 0
    assert "C++ compiler" in found["forms"]["plain compiled"]["skipped"]
    assert list(found["sizes"])[:2] == ["batch 3", "batch 6"]
    assert len(found["sizes"]) == 8
    for one in found["sizes"].values():
        assert one["ms"] > 0
        assert one["size"]["entities"] == 60
    assert {"machine", "versions", "commit", "settings", "size"} <= set(found)
    assert done[0] == (0, 13)
    assert done[-1] == (13, 13)


@pytest.mark.slow
def test_compiled_forms_are_right_too() -> None:
    comparison = Comparison(TINY)
    for name in ("plain compiled", "blocked compiled"):
        found = comparison.measure(name, 3)
        assert "ms" in found, found


def test_the_plain_form_takes_no_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it would be no rule for them."""
    asked = []

    def counted(query: Core, candidate: Core, finish: Finish, norm: int) -> Tensor:
        asked.append(norm)
        return pairwise_reference(query, candidate, finish, norm)

    monkeypatch.setenv("GOLDE_KERNELS", "fused")
    with plain(counted):
        assert forms.os.environ["GOLDE_KERNELS"] == "plain"
        Shared(TINY, capture=False)(0)
    assert len(asked) == 2  # one a group of components
    assert forms.os.environ["GOLDE_KERNELS"] == "fused"
    Shared(TINY, capture=False)(0)
    assert len(asked) == 2


@contextmanager
def distances_times(factor: float) -> Iterator[None]:
    def scaled(query: Core, candidate: Core, finish: Finish, norm: int) -> Tensor:
        return factor * pairwise_reference(query, candidate, finish, norm)

    with plain(scaled):
        yield


def test_another_loss_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    found = replaced(monkeypatch, Shared, lambda: distances_times(1.01))
    assert set(found) == {"failed"}
    assert "differs from the plain form's by" in found["failed"]


def test_a_step_that_is_repeated_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Right in step 0; a captured step that does not draw anew would look like this."""

    class Stale(Shared):
        def __call__(self, number: int) -> Outcome:
            return super().__call__(min(number, 3))

    assert "failed" in replaced(monkeypatch, Stale)


def test_a_parameter_that_does_not_learn_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Idle(Shared):
        def __call__(self, number: int) -> Outcome:
            kept = self.model.geometries[1].free_beta  # type: ignore[attr-defined]
            before = kept.detach().clone()
            outcome = super().__call__(number)
            kept.detach().copy_(before)
            return outcome

    found = replaced(monkeypatch, Idle)
    assert "parameter groups.1.free_beta after 8 steps differs" in found["failed"]


def test_a_form_that_breaks_has_a_reason_and_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("cannot be compiled\nand much more")

    assert replaced(monkeypatch, broken) == {"failed": "RuntimeError: cannot be compiled"}

    def large(*_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError

    assert replaced(monkeypatch, large) == {"skipped": "does not fit into memory"}


def test_where_the_plain_form_is_too_large_fewer_queries_are_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def small_only(most: int) -> Callable[..., Shared]:
        def build(task: Task, **options: Any) -> Shared:
            if task.size.batch > most:
                raise torch.OutOfMemoryError
            return Shared(task, **options)

        return build

    monkeypatch.setattr(compare, "Shared", small_only(4))
    found = Comparison(TINY).measure("blocked", 3)
    assert found["ms"] > 0
    assert found["checked"]["batch"] == 3
    assert found["checked"]["error"] < 0.5
    monkeypatch.setattr(compare, "Shared", small_only(0))
    with pytest.raises(ConfigError, match="one query of the plain form does not fit in memory"):
        Comparison(TINY).measure("blocked", 3)


class Fake:
    """A step that moves one parameter."""

    columns = 1

    def __init__(self, task: object, *, capture: bool) -> None:
        self.model, self.capture = torch.nn.Linear(1, 1), capture

    def __call__(self, number: int) -> Outcome:
        if self.capture:
            raise RuntimeError("operation not permitted when stream is capturing")
        return Outcome(torch.tensor(1.0), torch.tensor(2.0))

    def settle(self) -> None:
        pass


def test_the_textbook_form_keeps_its_optimiser() -> None:
    asked = replace(TINY, settings=("training.optimiser=lazy-adam", "model.norm=1"))
    assert Gathered.comparable(asked).settings == (
        *("model.norm=1", "training.query_as_negative=false"),
    )


def test_the_textbook_form_is_compared_with_the_negatives_there_are() -> None:
    assert Gathered.comparable(TINY).size.negatives == 60
    assert Gathered.comparable(TINY.at(TINY.size._replace(entities=300))).size.negatives == 200


def test_what_cannot_be_captured_is_run_without() -> None:
    task: Any = SimpleNamespace(device=SimpleNamespace(type="cuda"))
    step, trace, captured = compare.start(Fake, task)
    assert not captured
    assert trace.first == (1.0, 2.0)
    assert isinstance(step, Fake)


def traced(loss: float = 1.0, norm: float = 2.0, moved: float = 1.0) -> Trace:
    start = {"w": torch.zeros(4)}
    return Trace((1.0, 2.0), (loss, norm), start, {"w": start["w"] + moved})


@pytest.fixture
def rule() -> Expected:
    return expected(traced(), traced())


def test_a_form_within_rounding_is_right(rule: Expected) -> None:
    share, _ = worst(traced(loss=1 + 0.9e-4, moved=1 + 0.9e-3), rule)
    assert share == pytest.approx(0.9, rel=0.01)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"loss": 1 + 2e-4}, f"loss in step {STEPS - 1} differs from the plain form's by 0.0002"),
        ({"norm": 2 + 1e-3}, f"gradient norm in step {STEPS - 1} differs"),
        ({"moved": 1 + 2e-3}, f"parameter w after {STEPS} steps differs"),
        ({"loss": float("nan")}, f"loss in step {STEPS - 1} differs"),
    ],
)
def test_what_is_beyond_rounding_is_named(
    rule: Expected, wrong: dict[str, float], words: str
) -> None:
    share, found = worst(traced(**wrong), rule)
    assert share > 1
    assert found.startswith(words)


def test_what_rounding_alone_does_is_allowed() -> None:
    """Where the plain form itself is off by as much after one more rounding."""
    rule = expected(traced(), traced(loss=1 + 1e-3, moved=1.01))
    assert worst(traced(loss=1 + 5e-3, moved=1.05), rule)[0] < 1
    assert worst(traced(loss=1 + 2e-2), rule)[0] > 1


@pytest.mark.parametrize(
    ("signature", "name"),
    [("E1", "blocked"), ("P1", "blocked"), ("E1x2", "gathered"), ("P1x3", "blocked")],
)
def test_points_on_a_line_are_no_reason_to_refuse(signature: str, name: str) -> None:
    """A few pairs that nearly coincide carry most of the rounding: once may show next to nothing of it."""
    found = Comparison(Task(Size(500, 2, 1000, signature, 100, 50), CPU)).measure(name, 3)
    assert "ms" in found, found


def test_a_form_that_seems_wrong_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """After as many roundings as there are to be, and once for all forms of the same task."""
    seeds = []

    def rounded(task: Task, seed: int) -> Trace:
        seeds.append(seed)
        return traced(loss=1 + (1e-3 if seed == 5 else 0))

    def measured(form: object, task: Task, rule: Expected, repeats: int) -> dict[str, Any]:
        return {"ms": 1} if worst(traced(loss=1 + 5e-3), rule)[0] <= 1 else {"failed": "differs"}

    comparison = Comparison(TINY)
    monkeypatch.setattr(compare, "_rounded", rounded)
    monkeypatch.setattr(compare, "trace", lambda step: traced())
    monkeypatch.setattr(comparison, "_measured", measured)
    assert comparison.measure("blocked", 3) == {"ms": 1}
    assert seeds == [*range(ROUNDINGS)]
    assert comparison.measure("plain", 3) == {"ms": 1}
    monkeypatch.setattr(comparison, "_measured", lambda *_: {"failed": "differs"})
    assert comparison.measure("blocked", 3) == {"failed": "differs"}
    assert seeds == [*range(ROUNDINGS)]


def test_memory_of_a_step_is_the_most_it_holds_at_a_time() -> None:
    def step() -> None:
        for _ in range(3):
            first = torch.zeros(1 << 20)
            second = torch.zeros(1 << 19)
            del first, second

    peak = Memory(CPU).peak(torch.nn.Linear(1, 1), step)
    assert peak == pytest.approx(6 << 20, rel=0.01)


def test_the_spread_is_the_median_and_the_quartiles() -> None:
    assert spread([5.0, 1.0, 2.0, 3.0, 4.0]) == {"ms": 3.0, "quartiles_ms": [2.0, 4.0]}


def test_the_commit_is_ours_or_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOLDE_COMMIT", "abc")
    assert commit() == "abc"
    monkeypatch.delenv("GOLDE_COMMIT")
    monkeypatch.setenv("PATH", "")
    assert commit() == "unknown"


def test_figures_are_of_the_commit_that_their_process_began_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded_commit.cache_clear()
    try:
        for now in ("abc", "def"):
            monkeypatch.setenv("GOLDE_COMMIT", now)
            assert provenance(())["commit"] == "abc"
    finally:
        loaded_commit.cache_clear()
