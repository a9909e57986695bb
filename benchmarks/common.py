"""What benchmarks share with those run where golde is not installed.

Clocks that leave warm-up out, and results that others are added to.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


class Meter:
    """Work a second between the ticks of a loop.

    ``tick`` is called at the end of every step with the work done in it. The first step, and those of
    the next ``warmup`` seconds, are left out; the tick that ends ``seconds`` of measuring returns True.
    """

    def __init__(self, warmup: float, seconds: float) -> None:
        self.warmup, self.seconds = warmup, seconds
        self.begun: float | None = None
        self.start: float | None = None
        self.stop = 0.0
        self.steps = self.work = 0

    def tick(self, work: int) -> bool:
        now = time.perf_counter()
        if self.begun is None:
            self.begun = now
        if self.start is None:
            if now - self.begun >= self.warmup:
                self.start = now
            return False
        self.steps, self.work, self.stop = self.steps + 1, self.work + work, now
        return now - self.start >= self.seconds

    @property
    def rate(self) -> float:
        if self.start is None or not self.steps:
            raise RuntimeError("the loop ended before anything was measured")
        return self.work / (self.stop - self.start)


def measure_calls(
    call: Callable[[], object], work: int, *, seconds: float, warm_up: Callable[[], object]
) -> float:
    """Work a second of ``call``, made once and then again until ``seconds`` have passed."""
    warm_up()
    calls, start = 0, time.perf_counter()
    while calls == 0 or time.perf_counter() - start < seconds:
        call()
        calls += 1
    return calls * work / (time.perf_counter() - start)


def spread(values: Iterable[float]) -> dict[str, Any]:
    """The median of repeated figures, their range, and the figures."""
    each = [float(f"{value:.5g}") for value in values]
    return {"median": statistics.median(each), "min": min(each), "max": max(each), "each": each}


def replaced(path: Path, results: list[dict[str, Any]], *key: str) -> list[dict[str, Any]]:
    """The results of an earlier run, those that have the same key replaced by the new ones."""
    earlier = json.loads(path.read_text("utf-8"))["results"] if path.is_file() else []
    by_key = {tuple(one[part] for part in key): one for one in [*earlier, *results]}
    return list(by_key.values())
