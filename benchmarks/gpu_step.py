"""How long does a training step take on a GPU, form by form and at several sizes?

Forms of one and the same step at the size the paper uses on WN18RR, on a random graph of that size, as
``golde bench`` has them; then the fused form at other sizes: all entities as candidates, a table as large
as YAGO3-10's, and tables of millions of entities, where an optimiser that visits every row of the table
would be most of the step. A form that does not agree with the plain one
is listed without a time, and the exit code is 1. What was measured is written after every part, so a
run cut short leaves its results.

    python benchmarks/gpu_step.py --out results/gpu_step.json

How a step grows with one dimension at a time is for the command line:

    golde bench --sweep batch --sweep negatives --sweep components --sweep dimension --sweep entities \\
      --out results/gpu_growth.json
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch

from golde.benchmark.compare import bench, bench_fastest
from golde.benchmark.size import WN18RR, Size
from golde.benchmark.task import Task
from golde.evaluation.evaluate import rank_triples

YAGO3_10 = Size(123_182, 37, 1_079_040, "P8x50 Q13x50", 3000, 3000)
LAZY = ("training.optimiser=lazy-adam",)
MILLIONS = (1, 2, 5)
RANKED = 3134
"""Facts, as many as WN18RR's test split has."""


def millions(count: int) -> Size:
    """As many million entities of 128 numbers, each in four facts."""
    return Size(count * 1_000_000, 100, count * 2_000_000, "P8x8 Q9x8", 4096, 8192)


def evaluation(task: Task, repeats: int) -> dict[str, Any]:
    """Filtered ranks of both sides of ``RANKED`` facts."""
    model, facts, times = task.model(), task.graph.train[:RANKED], []
    for _ in range(repeats + 1):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        rank_triples(model.scorer(), task.graph, facts, device=task.device)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return {"seconds": round(statistics.median(times[1:]), 4), "queries": 2 * len(facts)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=60)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("gpu_step.py: no CUDA device; there is nothing to measure here")
    device = torch.device("cuda")
    usual = Task(WN18RR, device)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    record: dict[str, Any] = {"question": __doc__.splitlines()[0]}
    record |= bench(usual, repeats=args.repeats)
    record["evaluation"] = evaluation(usual, 5)
    tasks = {
        "all entities": Task(WN18RR._replace(batch=500, negatives=0), device),
        "YAGO3-10": Task(YAGO3_10, device),
        "YAGO3-10, lazy Adam": Task(YAGO3_10, device, LAZY),
    }
    for count in MILLIONS:
        tasks[f"{count} M entities, lazy Adam"] = Task(millions(count), device, LAZY)
    for number, (name, task) in enumerate(tasks.items()):
        write(args.out, record)
        announce(number, len(tasks))
        record["sizes"][name] = bench_fastest(task, args.repeats)
    write(args.out, record)
    rows = record["forms"] | record["sizes"]
    wrong = {name: one["failed"] for name, one in rows.items() if "failed" in one}
    if wrong:
        raise SystemExit(f"gpu_step.py: no time for {json.dumps(wrong, indent=2)}")


def write(path: Path, record: dict[str, Any]) -> None:
    path.write_text(json.dumps(record, indent=2) + "\n")


def announce(done: int, total: int) -> None:
    print(f"{done} of {total}", flush=True)


if __name__ == "__main__":
    main()
