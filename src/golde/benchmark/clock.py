"""Time and memory of a step that is known to be right."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from golde.training.update import Outcome

MOMENTS = 2
"""Tensors as large as the parameters that Adam keeps."""


def milliseconds(
    step: Callable[[int], Outcome], numbers: range, device: torch.device
) -> list[float]:
    """Of every step, by the device's own clock where it has one."""
    if device.type != "cuda":
        times = []
        for number in numbers:
            begin = time.perf_counter()
            step(number)
            times.append(1e3 * (time.perf_counter() - begin))
        return times
    events = []
    for number in numbers:
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        step(number)
        stop.record()
        events.append((start, stop))
    torch.cuda.synchronize()
    return [start.elapsed_time(stop) for start, stop in events]


def spread(times: list[float]) -> dict[str, Any]:
    """The median and the quartiles."""
    low, median, high = statistics.quantiles(times, n=4, method="inclusive")
    return {"ms": round(median, 4), "quartiles_ms": [round(low, 4), round(high, 4)]}


class Memory:
    """The most that steps take beyond parameters, the moments of Adam and the facts, in bytes.

    On a GPU it counts from its making, before the model's, so that the steps that are captured are in it.
    On a CPU one step is watched by the profiler.
    """

    def __init__(self, device: torch.device) -> None:
        self.device, self.before = device, 0
        if device.type == "cuda":
            release()
            self.before = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()

    def peak(self, model: torch.nn.Module, step: Callable[[], object]) -> int:
        """After all steps on a GPU; of this ``step`` on a CPU."""
        if self.device.type == "cuda":
            numbers = sum(p.numel() * p.element_size() for p in model.parameters())
            lasting = self.before + (1 + MOMENTS) * numbers
            return max(0, torch.cuda.max_memory_allocated() - lasting)
        kinds = [ProfilerActivity.CPU]
        with profile(activities=kinds, profile_memory=True, acc_events=True) as watched:
            step()
        events = watched.profiler.kineto_results.events()
        taken = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]")
        most = total = 0
        for _, size in taken:
            total += size
            most = max(most, total)
        return most


def release() -> None:
    """Give back what forms before this one left behind."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
