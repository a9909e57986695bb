"""Forms side by side in one run: each checked against the plain one, then timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import torch

from golde.benchmark.agreement import (
    ROUNDINGS,
    STEPS,
    Expected,
    Trace,
    expected,
    round_once_more,
    trace,
    widened,
    worst,
)
from golde.benchmark.clock import Memory, milliseconds, release, spread
from golde.benchmark.forms import Form, Shared, Step, fastest, forms, plain
from golde.benchmark.memory import refuse_oversize
from golde.benchmark.provenance import provenance
from golde.benchmark.size import check, growth
from golde.benchmark.task import SEED, Task
from golde.errors import ConfigError, GoldeError
from golde.progress import Progress, silent
from golde.training.memory import enough_memory

MANY_FACTS = 1_000_000
"""From so many on, it takes seconds until the first step."""


def bench(
    task: Task,
    *,
    repeats: int,
    sweeps: Iterable[str] = (),
    progress: Progress = silent,
    tell: Callable[[str], None] = lambda what: None,
) -> dict[str, Any]:
    """Every form at one size, the form that a run takes at the sizes of some sweeps, and the provenance.

    A form that differs from the plain one has ``failed`` for a time, one that cannot be had ``skipped``.
    ``tell`` hears of work that keeps the progress waiting.
    """
    sizes = {name: size for sweep in sweeps for name, size in growth(task.size, sweep).items()}
    _refuse_impossible(task)
    for name, size in sizes.items():
        try:
            _refuse_impossible(task.at(size))
        except ConfigError as error:
            raise ConfigError(f"--sweep {name.partition(' ')[0]} goes to {name}: {error}") from None
    record: dict[str, Any] = {**_asked(task), "forms": {}, "sizes": {}}
    total = len(forms(task.device)) + len(sizes)
    if task.size.facts >= MANY_FACTS:
        tell(f"drawing and sorting {task.size.facts:,} random facts, which takes a while")
    comparison = Comparison(task)
    for name in forms(task.device):
        progress(len(record["forms"]), total)
        record["forms"][name] = comparison.measure(name, repeats)
    for name, size in sizes.items():
        progress(len(record["forms"]) + len(record["sizes"]), total)
        record["sizes"][name] = bench_fastest(task.at(size), repeats)
    progress(total, total)
    return record | about(task.device, repeats)


def _refuse_impossible(task: Task) -> None:
    """Before minutes of measuring, what would fail after them."""
    check(task.size)
    refuse_oversize(task)


def bench_fastest(task: Task, repeats: int) -> dict[str, Any]:
    """The form that a run takes on this device, at one size."""
    found = Comparison(task).measure(fastest(task.device), repeats)
    return {**_asked(task), **found}


def _asked(task: Task) -> dict[str, Any]:
    return {"size": task.size._asdict(), "given": list(task.settings)}


def about(device: torch.device, repeats: int) -> dict[str, Any]:
    """Where figures come from."""
    found = provenance(("torch", "triton"))
    found["machine"] |= {"device": device.type, "threads": torch.get_num_threads()}
    if device.type == "cuda":
        found["machine"]["gpu"] = torch.cuda.get_device_name(device)
    return found | {"settings": {"repeats": repeats, "checked_steps": STEPS, "seed": SEED}}


class Started(NamedTuple):
    """A form after its first steps."""

    step: Step
    trace: Trace
    captured: bool


class Comparison:
    """Forms of one task, and what the plain one does there."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._plain: dict[Task, tuple[Task, Expected]] = {}
        self._settled: set[Task] = (
            set()
        )  # whose limits come from as many roundings as there are to be

    def measure(self, name: str, repeats: int) -> dict[str, Any]:
        """Figures of a form, or why there are none."""
        form = forms(self.task.device)[name]
        if (missing := form.missing()) is not None:
            return {"skipped": missing}
        comparable = form.comparable(self.task)
        checked, rule = self._rule(comparable)
        try:
            found = self._measured(form, checked, rule, repeats)
            if "failed" in found and comparable not in self._settled:
                release()
                found = self._measured(form, checked, self._settle(comparable), repeats)
            return found
        except torch.OutOfMemoryError:
            return {"skipped": "does not fit into memory"}
        except GoldeError:
            raise
        except Exception as error:  # compilers fail in many ways
            words, _, _ = str(error).strip().partition("\n")
            return {"failed": f"{type(error).__name__}: {words}"}
        finally:
            release()

    def _measured(self, form: Form, checked: Task, rule: Expected, repeats: int) -> dict[str, Any]:
        task = self.task
        with form.settings():
            error = None
            if checked != task:  # another number of negatives, or fewer queries
                error, words = worst(start(form.build_comparable, checked).trace, rule)
                release()
            task.sampler()  # is no part of a step's memory
            memory, begin = Memory(task.device), time.perf_counter()
            step, found, captured = start(form.build, task)
            ready = time.perf_counter() - begin
            if error is None:
                error, words = worst(found, rule)
            if error > 1:
                return {"failed": words}
            times = milliseconds(step, range(STEPS, STEPS + repeats), task.device)
            peak = memory.peak(step.model, lambda: step(STEPS + repeats))
        figures = spread(times)
        pairs = task.size.batch * step.columns
        return {
            **figures,
            "pairs_per_second": round(pairs / (1e-3 * figures["ms"])),
            "memory_beyond_state_mb": round(peak / 2**20),
            "captured": captured,
            "checked": {
                "batch": checked.size.batch,
                "negatives": checked.size.negatives,
                "error": float(f"{error:.3g}"),
            },
            "ready_s": round(ready, 1),
        }

    def _rule(self, task: Task) -> tuple[Task, Expected]:
        """What the plain form does, uncaptured, with so few queries that it fits into memory."""
        if task not in self._plain:
            at, found = task, _rule(task)
            while found is None:
                release()
                at = at.at(at.size._replace(batch=at.size.batch // 2))
                found = _rule(at)
            self._plain[task] = at, found
        return self._plain[task]

    def _settle(self, task: Task) -> Expected:
        """The rule of a task after all roundings."""
        at, rule = self._plain[task]
        for seed in range(1, ROUNDINGS):
            rule = widened(rule, _rounded(at, seed))
        self._plain[task] = at, rule
        self._settled.add(task)
        return rule


def _rule(task: Task) -> Expected | None:
    """None where the plain form does not fit into the memory of the device."""
    with enough_memory("one query of the plain form"):
        try:
            with plain():
                as_it_is = trace(Shared(task, capture=False))
            return expected(as_it_is, _rounded(task, 0))
        except torch.OutOfMemoryError:
            if task.size.batch == 1:
                raise
            return None


def _rounded(task: Task, seed: int) -> Trace:
    """What the plain form does from parameters that were rounded once more."""
    with plain():
        return trace(Shared(task, capture=False, prepare=partial(round_once_more, seed=seed)))


def start(build: Callable[..., Step], task: Task) -> Started:
    """Build a form and make its first steps, captured on a GPU if that can be."""
    if task.device.type == "cuda":
        try:
            return _started(build, task, capture=True)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError:  # something in it cannot be captured
            pass
        release()
    return _started(build, task, capture=False)


def _started(build: Callable[..., Step], task: Task, *, capture: bool) -> Started:
    step = build(task, capture=capture)
    return Started(step, trace(step), capture)
