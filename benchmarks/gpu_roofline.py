"""What bounds the kernels of a training step on a GPU: memory, FP32, special functions or tensor cores?

Four small kernels measure the ceilings of this GPU (``ceilings.py``); then the profiler times the kernels of
a captured step, what each has to do is counted from the algorithm (``operations.py``), and the two make
the share of each ceiling that a kernel reaches. Once for the whole space, and once for the components of
each kind alone.

    python benchmarks/gpu_roofline.py --out results/gpu_roofline.json
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch
from ceilings import ceilings
from operations import COUNTED, Operations, Shape, named, shape
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from golde.benchmark.agreement import STEPS
from golde.benchmark.clock import milliseconds
from golde.benchmark.compare import about, start
from golde.benchmark.forms import Shared
from golde.benchmark.size import WN18RR
from golde.benchmark.task import Task
from golde.geometry import Signature

PROFILED = 10
TIMED = 40
LEAST_SHARE = 0.01
"""Kernels that take less of the step are told of together."""

BOUND = 0.25
"""Below this share of every ceiling nothing that was counted bounds a kernel."""


class Launched(NamedTuple):
    """A kernel in all profiled steps."""

    launches: int
    microseconds: float


def kernel_times(events: Iterable[Any]) -> dict[str, Launched]:
    """What ran on the device, by short names."""
    found: dict[str, Launched] = {}
    for event in events:
        if event.device_type == DeviceType.CUDA and not event.is_user_annotation:
            name = named(event.name)
            launches, total = found.get(name, Launched(0, 0.0))
            found[name] = Launched(launches + 1, total + event.time_range.elapsed_us())
    return found


def rows(
    times: dict[str, Launched], steps: int, step_ms: float, at: Shape, most: Operations
) -> list[dict[str, Any]]:
    """One a kernel, the longest first; then all small ones together, and what is left of the step."""
    found, small = [], Launched(0, 0.0)
    for name, (launches, total) in sorted(times.items(), key=lambda item: -item[1].microseconds):
        ms = total / steps / 1e3
        if ms < LEAST_SHARE * step_ms:
            small = Launched(small.launches + launches, small.microseconds + total)
            continue
        one: dict[str, Any] = {
            "kernel": name,
            "launches": launches / steps,
            "ms": round(ms, 5),
            "share": round(ms / step_ms, 4),
        }
        if name in COUNTED:
            done = COUNTED[name](at)
            reached = {
                kind: round(count / (1e-3 * ms) / asdict(most)[kind], 4)
                for kind, count in asdict(done).items()
            }
            bound = max(reached, key=lambda kind: reached[kind])
            one |= {"operations": asdict(done), "reached": reached}
            one["bound"] = bound if reached[bound] >= BOUND else None
        found.append(one)
    busy = sum(one.microseconds for one in times.values()) / steps / 1e3
    rest = {"all smaller ones": (small.launches / steps, small.microseconds / steps / 1e3)}
    rest["between kernels"] = (0, max(0.0, step_ms - busy))
    for name, (launches, ms) in rest.items():
        share = round(ms / step_ms, 4)
        found.append({"kernel": name, "launches": launches, "ms": round(ms, 5), "share": share})
    return found


def profiled(task: Task, most: Operations) -> dict[str, Any]:
    """The kernels of a fused, captured step."""
    step, _, captured = start(Shared, task)
    step_ms = statistics.median(milliseconds(step, range(STEPS, STEPS + TIMED), task.device))
    kinds = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=kinds, acc_events=True) as watched:
        for number in range(PROFILED):
            step(STEPS + TIMED + number)
        torch.cuda.synchronize()
    size, model = task.size, step.model
    dense = sum(p.numel() for p in model.parameters() if p is not model.entity)
    at = shape(size.signature, size.batch, step.columns, 2 * size.relations, dense)
    times = kernel_times(watched.events())
    return {
        "step_ms": round(step_ms, 4),
        "captured": captured,
        "kernels": rows(times, PROFILED, step_ms, at, most),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--signature", default=WN18RR.signature)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("gpu_roofline.py: no CUDA device; there is nothing to measure here")
    device, most = torch.device("cuda"), ceilings()
    spaces = [args.signature, *map(str, Signature.parse(args.signature))]
    tasks = [Task(WN18RR._replace(signature=s), device) for s in dict.fromkeys(spaces)]
    record = {
        "question": __doc__.splitlines()[0],
        "size": tasks[0].size._asdict(),
        "ceilings": asdict(most),
        "profiles": {task.size.signature: profiled(task, most) for task in tasks},
        **about(device, PROFILED),
    }
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
