"""Which blocks, warps, stages and precision make the fused pairwise distance quickest on this GPU?

Every configuration is compiled (in several processes), compared with plain float64, and only then
timed: forward and backward apart, without the packing of their inputs, with CUDA events, as the
median of repeated runs. One that fails to compile, does not fit or is not exact is listed without
a time. What was measured is written after every part, so a run cut short leaves its results.

    python benchmarks/pairwise_kernels.py --out results/pairwise_kernels.json
    python benchmarks/pairwise_kernels.py --shapes 1000x3000 1024x3072 --signature "P6x28 Q23x28"
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from golde.benchmark.provenance import provenance
from golde.geometry import GEOMETRIES, Grouping, Signature
from golde.kernels import Core, Finish, pairwise_reference
from golde.kernels.triton import Blocks, configuration

KERNELS = ("forward", "backward")
BLOCKS = [  # rows, columns, warps; the likeliest first
    (64, 32, 4),
    (64, 64, 4),
    (128, 32, 8),
    (64, 64, 8),
    (128, 64, 8),
    (64, 16, 4),
    (32, 64, 4),
    (32, 32, 4),
    (128, 32, 4),
    (128, 128, 8),
    (32, 32, 2),
    (16, 64, 4),
]
STAGES = {"tf32x3": (2, 3, 1), "ieee": (2,), "tf32": (2,)}
RELATIONS = 22
EPS = torch.finfo(torch.float32).eps


class Job(NamedTuple):
    """One kernel on one group of components at one shape, in one configuration."""

    group: str
    B: int
    N: int
    kernel: str
    precision: str
    blocks: Blocks


class Sides(NamedTuple):
    query: Core
    candidate: Core
    finish: Finish
    grad: Tensor  # (B, N)

    @property
    def inputs(self) -> list[Tensor]:
        q, c = self.query, self.candidate
        return [q.vector, c.vector, *q.scalars, *c.scalars]


@cache
def sides(group: str, B: int, N: int, device: str) -> Sides:
    """Cores as the model makes them, memory order included, at tangent norms about one."""
    (term,) = Signature.parse(group).terms
    generator = torch.Generator().manual_seed(7)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    module = GEOMETRIES[term.letter](term.dimension, term.count, RELATIONS)
    K = module.numbers
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(0.3 * normal(*parameter.shape))
        module.to(device)
        head, tail = (
            (normal(n, term.count, K) / math.sqrt(K)).to(device).contiguous() for n in (B, N)
        )
        relation = (torch.arange(B) % RELATIONS).to(device)
        maps = module.maps(torch.arange(RELATIONS, device=device))
        query = module.query(head, maps, Grouping(relation, RELATIONS, K))
        candidate = module.candidate(tail)
    # Scalars as the public function hands them on.
    query, candidate = (
        Core(core.vector, tuple(s.contiguous() for s in core.scalars))
        for core in (query, candidate)
    )
    return Sides(query, candidate, module.finish, normal(B, N).to(device))


def call(job: Job, device: str) -> Callable[[], list[Tensor]]:
    """The kernel's launch, ready to be repeated."""
    from golde.kernels.triton.distance import launch_backward, launch_forward, launch_pack

    data = sides(job.group, job.B, job.N, device)
    multiple = max(job.blocks.rows, job.blocks.columns)
    query, candidate = (
        launch_pack(core.vector, core.scalars, multiple, job.precision)
        for core in (data.query, data.candidate)
    )
    settings = {"precision": job.precision, "blocks": job.blocks}
    if job.kernel == "forward":
        out = torch.empty(job.B, job.N, device=device)

        def forward() -> list[Tensor]:
            launch_forward(query, candidate, 1, 1.0, out, accumulate=False, **settings)
            return [out]

        return forward
    rows_q, rows_c = query.vectors.shape[1], candidate.vectors.shape[1]
    grad = torch.nn.functional.pad(data.grad, (0, rows_c - job.N, 0, rows_q - job.B))
    C = data.query.vector.shape[2]

    def backward() -> list[Tensor]:
        found = launch_backward(query, candidate, 1, 1.0, grad, core=C, **settings)
        gradients = [found.to_q[:, : job.B, :C], found.to_c[:, : job.N, :C]]
        if found.to_query.numel():
            gradients += [*found.to_query[:, :, : job.B].unbind(1), found.to_candidate[:, : job.N]]
        return gradients

    return backward


def plain(data: Sides, dtype: torch.dtype, nudge: float = 0.0) -> dict[str, list[Tensor]]:
    """What each kernel should find, from the plain form in float64 or float32."""
    generator = torch.Generator().manual_seed(8)
    inputs = []
    for t in data.inputs:
        change = 1 + nudge * (2 * torch.rand(t.shape, generator=generator, dtype=torch.float64) - 1)
        inputs.append((t.double() * change.to(t.device)).to(dtype).requires_grad_())
    q, c, *scalars = inputs
    split = len(data.query.scalars)
    query, candidate = Core(q, tuple(scalars[:split])), Core(c, tuple(scalars[split:]))
    table = pairwise_reference(query, candidate, data.finish, 1)
    found = torch.autograd.grad(table, inputs, data.grad.to(dtype))
    return {"forward": [table.detach()], "backward": list(found)}


class Judge:
    """The rule of the design: at most twice the error of plain float32, in max-norm, and the floor.

    The floor is what one rounding of the inputs does to the result in float64.
    """

    def __init__(self, data: Sides) -> None:
        self.exact = plain(data, torch.float64)
        near, narrow = plain(data, torch.float64, EPS), plain(data, torch.float32)
        self.limits: dict[str, list[float]] = {}
        self.plain: dict[str, float] = {}
        for kernel, exact in self.exact.items():
            errors = [distance(t, e) for t, e in zip(narrow[kernel], exact, strict=True)]
            self.plain[kernel] = max(errors)
            self.limits[kernel] = [
                2 * error + distance(beside, e) + 4 * EPS * float(e.abs().max())
                for error, beside, e in zip(errors, near[kernel], exact, strict=True)
            ]

    def __call__(self, kernel: str, found: list[Tensor]) -> tuple[bool, float]:
        """Whether the result is exact enough, and the largest error relative to its limit."""
        ratios = [
            distance(t, e) / limit
            for t, e, limit in zip(found, self.exact[kernel], self.limits[kernel], strict=True)
        ]
        worst = max(ratios)
        return math.isfinite(worst) and worst <= 1, worst


def distance(found: Tensor, exact: Tensor) -> float:
    error = (found - exact).abs()
    return float(error.max()) if bool(error.isfinite().all()) else math.inf


def median_ms(run: Callable[[], object], repeats: int, device: str) -> float:
    """The median time of one call, after warm-up."""
    for _ in range(5):
        run()
    if device == "cpu":  # for trying the script out in Triton's interpreter
        begin = time.perf_counter()
        run()
        return 1e3 * (time.perf_counter() - begin)
    torch.cuda.synchronize()
    events = [
        [torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(max(20, repeats))
    ]
    for start, stop in events:
        start.record()
        run()
        stop.record()
    torch.cuda.synchronize()
    return statistics.median(start.elapsed_time(stop) for start, stop in events)


def compiles(job: Job) -> str | None:
    """Run a job once, in a process of its own: None, or what went wrong."""
    try:
        call(job, "cuda")()
        torch.cuda.synchronize()
    except Exception as error:
        return reason(error)
    return None


def reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip()[:200]}"


def compile_all(jobs: list[Job], processes: int, seconds: float) -> dict[Job, str]:
    """Fill Triton's cache in parallel; what failed, died or was not reached, by job."""
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"))
    futures: dict[Future[str | None], Job] = {pool.submit(compiles, job): job for job in jobs}
    wait(futures, timeout=seconds)
    failed = {}
    for future, job in futures.items():
        if not future.done():
            failed[job] = "not compiled in time"
        elif future.exception() is not None:
            failed[job] = f"compiling: {reason(future.exception() or Exception())}"
        elif (result := future.result()) is not None:
            failed[job] = result
    workers = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        worker.terminate()
    return failed


def all_jobs(groups: list[str], shapes: list[tuple[int, int]], precisions: list[str]) -> list[Job]:
    """Every configuration; the likeliest first, in case time runs out."""
    choices = [
        (precision, Blocks(*blocks, stages))
        for precision in precisions
        for stages in STAGES[precision]
        for blocks in (BLOCKS if stages == 2 and precision != "tf32" else BLOCKS[:5])
    ]
    return [
        Job(group, B, N, kernel, precision, blocks)
        for precision, blocks in choices
        for B, N in shapes
        for group in groups
        for kernel in KERNELS
    ]


def measure(job: Job, judge: Judge, repeats: int, device: str) -> dict[str, Any]:
    """A row of the result: a time, or why there is none."""
    try:
        run = call(job, device)
        exact, ratio = judge(job.kernel, run())
        if not exact:
            return {"failed": f"inexact: {ratio:.3g} times the error allowed"}
        return {"ms": median_ms(run, repeats, device), "error": ratio}
    except Exception as error:
        return {"failed": reason(error)}


def measure_all(
    jobs: list[Job], failed: dict[Job, str], repeats: int, device: str, deadline: float
) -> Iterator[tuple[list[dict[str, Any]], dict[str, Any]]]:
    """Part by part (one group at one shape): its rows, and the plain form's figures."""
    parts: dict[tuple[str, int, int], list[Job]] = {}
    for job in jobs:
        parts.setdefault(job[:3], []).append(job)
    for (group, B, N), part in parts.items():
        about: dict[str, Any] = {"group": group, "B": B, "N": N}
        try:
            data = sides(group, B, N, device)
            judge = Judge(data)
            about |= {"plain_error": judge.plain} | plain_times(data, device)
        except Exception as error:  # without a reference nothing can be reported
            yield [row(job, {"failed": reason(error)}) for job in part], about
            continue
        rows = []
        for job in part:
            if job in failed:
                found: dict[str, Any] = {"failed": failed[job]}
            elif time.monotonic() > deadline:
                found = {"failed": "no time left"}
            else:
                found = measure(job, judge, repeats, device)
            rows.append(row(job, found))
        yield rows, about
        sides.cache_clear()
        del data, judge


def row(job: Job, found: dict[str, Any]) -> dict[str, Any]:
    return {**job._asdict(), "blocks": job.blocks._asdict(), **found}


def plain_times(data: Sides, device: str) -> dict[str, float]:
    """The plain form in float32 as PyTorch runs it, for comparison."""

    def both() -> None:
        inputs = [t.detach().requires_grad_() for t in data.inputs]
        q, c, *scalars = inputs
        split = len(data.query.scalars)
        sides = Core(q, tuple(scalars[:split])), Core(c, tuple(scalars[split:]))
        table = pairwise_reference(*sides, data.finish, 1)
        torch.autograd.grad(table, inputs, data.grad)

    def forward() -> None:
        pairwise_reference(data.query, data.candidate, data.finish, 1)

    with torch.no_grad():
        ms = median_ms(forward, 20, device)
    return {"plain_forward_ms": ms, "plain_forward_backward_ms": median_ms(both, 20, device)}


def table(rows: list[dict[str, Any]], about: dict[str, Any]) -> Iterator[str]:
    """Lines to read: each kernel's configurations, the quickest first, then what failed."""
    yield f"\n{about['group']}  {about['B']} x {about['N']}"
    if "plain_error" in about:
        yield (
            f"  plain float32: forward {about['plain_forward_ms']:.3f} ms, "
            f"with backward {about['plain_forward_backward_ms']:.3f} ms"
        )
    for kernel in KERNELS:
        own = [row for row in rows if row["kernel"] == kernel]
        timed = sorted((row for row in own if "ms" in row), key=lambda row: row["ms"])
        yield f"  {kernel}: ms, error / allowed, precision, (rows, columns, warps, stages)"
        for row in timed:
            shape = tuple(row["blocks"].values())
            yield f"    {row['ms']:8.4f}  {row['error']:6.3f}  {row['precision']:7s} {shape}"
        for row in own:
            if "failed" in row:
                shape = tuple(row["blocks"].values())
                yield f"      failed  {row['precision']:7s} {shape}: {row['failed'][:100]}"


def best(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The quickest configuration of each kernel, group, shape and precision."""
    quickest: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        key = tuple(row[name] for name in ("group", "B", "N", "precision", "kernel"))
        if "ms" in row and ("ms" not in quickest.get(key, {}) or row["ms"] < quickest[key]["ms"]):
            quickest[key] = row
    return list(quickest.values())


def shape(text: str) -> tuple[int, int]:
    B, _, N = text.partition("x")
    return int(B), int(N)


def main() -> None:
    begin = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", type=shape, nargs="+", default=[(1000, 3000)], metavar="BxN")
    parser.add_argument("--signature", default="P10x36 Q13x36")
    parser.add_argument("--precisions", nargs="+", default=list(STAGES), choices=list(STAGES))
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=170, help="of everything, about")
    parser.add_argument("--processes", type=int, default=min(12, os.cpu_count() or 1))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("pairwise_kernels.py: no CUDA device; there is nothing to measure here")
    groups = [str(term) for term in Signature.parse(options.signature).terms]
    jobs = all_jobs(groups, options.shapes, options.precisions)
    failed = compile_all(jobs, options.processes, 0.7 * options.seconds)
    print(f"{len(jobs)} configurations compiled in {time.monotonic() - begin:.0f} s", flush=True)
    report: dict[str, Any] = provenance(["torch", "triton"])
    report["machine"]["gpu"] = torch.cuda.get_device_name()
    report |= {
        "default": configuration(21, geodesic=False)._asdict(),
        "parts": [],
        "rows": [],
        "best": [],
    }
    for rows, about in measure_all(jobs, failed, options.repeats, "cuda", begin + options.seconds):
        print("\n".join(table(rows, about)), flush=True)
        report["rows"] += rows
        report["parts"].append(about)
        report["best"] = best(report["rows"])
        if options.out:
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(report, indent=1) + "\n")
    print("\nbest: ms, configuration")
    for row in report["best"]:
        place = f"{row['group']} {row['B']}x{row['N']} {row['precision']:7s} {row['kernel']:10s}"
        print(f"  {place} {row['ms']:8.4f}  {tuple(row['blocks'].values())}")
    print(f"{time.monotonic() - begin:.0f} s in all")


if __name__ == "__main__":
    main()
