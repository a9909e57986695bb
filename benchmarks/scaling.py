"""How does a step grow with processes, what do they tell each other, and what would more of them do?

Exchanges of several sizes between two processes give a latency and a bandwidth. Steps of one and of two
processes, each with one thread, are timed with the same work in all (strong) and with the same work each
(weak). The prediction for GPUs takes the step that one GPU was measured at (``results/gpu_growth.json``), the
exchanges of a step, counted, and links that are assumed.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

from golde.benchmark.communication import Exchange, Kind, Link, fit_line, fit_link
from golde.benchmark.provenance import provenance
from golde.config import Config
from golde.distributed.facts import FactShare
from golde.distributed.launch import joined
from golde.distributed.sampling import ShardSampler
from golde.distributed.update import ShardedUpdate
from golde.distributed.world import Processes, World
from golde.models import build
from golde.report.step_plots import growth
from golde.runs.atomic import write_json
from golde.training.defaults import resolve_sizes

SIZES = [2**power for power in range(6, 25, 2)]
"""Bytes of the exchanges that are timed."""

USUAL = {"signature": "P8x8 Q9x8", "batch": 512, "relations": 50}
STRONG = [
    {**USUAL, "entities": 20_000, "negatives": negatives, "facts": 100_000}
    for negatives in (512, 2048)
]
WEAK = {**USUAL, "entities": 10_000, "negatives": 512, "facts": 50_000}
"""Of each process; entities, negatives and facts grow with their number."""

WARMUP, STEPS = 2, 8

PUBLISHED = {
    "signature": "P10x36 Q13x36",
    "batch": 1000,
    "relations": 11,
    "entities": 40_943,
    "negatives": 16,  # bytes do not depend on them
    "facts": 86_835,
}
"""The step that the GPU was measured at."""

MACHINE = 8
"""GPUs of a machine."""

ASSUMED = {
    "within": Link(latency=10e-6, bandwidth=300e9),  # NVLink
    "between": Link(latency=20e-6, bandwidth=40e9),  # 400 Gb/s a machine
}


class Measured(Processes):
    """Processes that keep what they exchanged, and how long it took."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[tuple[Exchange, float]] = []

    def _timed(self, kind: Kind, tensor: Tensor, began: float) -> None:
        self.kept.append((Exchange(kind, tensor.nbytes), time.perf_counter() - began))

    def _add_up(self, tensor: Tensor) -> Tensor:
        began = time.perf_counter()
        found = super()._add_up(tensor)
        self._timed("add_up", tensor, began)
        return found

    def _collect(self, tensor: Tensor) -> Tensor:
        began = time.perf_counter()
        found = super()._collect(tensor)
        self._timed("collect", tensor, began)
        return found


def measure_exchanges(world: Measured, repeats: int) -> dict[str, list[dict[str, float]]]:
    """Median seconds of an exchange of each size, all processes having met just before."""
    found: dict[str, list[dict[str, float]]] = {"add_up": [], "collect": []}
    for size in SIZES:
        tensor = torch.zeros(size // 4)
        for kind, exchange in (("add_up", world.add_up), ("collect", world.collect)):
            times = []
            for _ in range(repeats):
                world.collect(torch.zeros(1))
                began = time.perf_counter()
                exchange(tensor)
                times.append(time.perf_counter() - began)
            found[kind].append({"bytes": size, "seconds": median(times)})
    return found


def measure_steps(world: Measured, size: dict[str, Any]) -> dict[str, Any]:
    """Median milliseconds of a step and of its exchanges, and what it exchanges."""
    update = make_update(world, size)
    whole, busy, told = [], [], []
    for step in range(WARMUP + STEPS):
        world.collect(torch.zeros(1))
        world.kept.clear()
        began, worked = time.perf_counter(), time.process_time()
        update(step, 1e-3)
        whole.append(time.perf_counter() - began)
        busy.append(time.process_time() - worked)
        told.append(sum(seconds for _, seconds in world.kept))
    exchanges = [exchange for exchange, _ in world.kept]
    return {
        "ms": 1e3 * median(whole[WARMUP:]),
        "processor_ms": 1e3 * median(busy[WARMUP:]),
        "exchange_ms": 1e3 * median(told[WARMUP:]),
        "exchanges": [exchange._asdict() for exchange in exchanges],
    }


def make_update(world: World, size: dict[str, Any]) -> ShardedUpdate:
    """Steps of a model of some size on random facts."""
    config = Config().with_values(
        model={"signature": size["signature"]},
        training={"batch_size": size["batch"], "negatives": size["negatives"]},
    )
    config = resolve_sizes(config, size["facts"], size["entities"])
    entities, relations = size["entities"], size["relations"]
    draw = torch.Generator().manual_seed(world.rank)
    rows = len(world.share(size["facts"]))
    ends = torch.randint(entities, (rows, 2), generator=draw)
    relation = torch.randint(relations, (rows,), generator=draw)
    triples = torch.stack((ends[:, 0], relation, ends[:, 1]), dim=1)
    settings = config.training
    assert settings.batch_size is not None
    assert settings.negatives is not None
    sampler = ShardSampler(
        FactShare.of(triples, entities, relations, world),
        entities,
        relations,
        world,
        batch_size=settings.batch_size,
        negatives=settings.negatives,
        subsampling=settings.subsampling,
        seed=0,
        device=torch.device("cpu"),
    )
    model = build(config.model, entities, relations, seed=0, rows=world.share(entities))
    return ShardedUpdate(model, sampler, settings, world)


def together(processes: int, work: str, **what: Any) -> Any:
    """What the first of some new processes found."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    meet = {"WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    started = [
        subprocess.Popen(
            [sys.executable, __file__, "--work", work, json.dumps(what)],
            env={**os.environ, "OMP_NUM_THREADS": "1", **meet, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(processes)
    ]
    said = [process.communicate()[0] for process in started]
    if any(process.returncode for process in started):
        raise SystemExit("a process failed")
    return json.loads(said[0])


def work(name: str, what: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    with joined("cpu", 600, lambda words: print(words, file=sys.stderr)):
        world = Measured()
        found: Any
        if name == "exchanges":
            found = measure_exchanges(world, **what)
        elif name == "steps":
            found = measure_steps(world, **what)
        else:
            update = make_update(world, **what)
            world.kept.clear()
            update(0, 1e-3)
            found = [exchange._asdict() for exchange, _ in world.kept]
        if world.rank == 0:
            print(json.dumps(found))


def scaled(repeats: int) -> dict[str, list[dict[str, Any]]]:
    """Steps of one process and of two, taking turns."""
    jobs: list[tuple[str, int, dict[str, Any]]] = []
    for size in STRONG:
        jobs += [("strong", processes, size) for processes in (1, 2)]
    for processes in (1, 2):
        grown = {key: processes * WEAK[key] for key in ("entities", "negatives", "facts")}
        jobs.append(("weak", processes, {**WEAK, **grown}))
    rounds: dict[int, list[dict[str, Any]]] = {i: [] for i in range(len(jobs))}
    for _ in range(repeats):
        for i, (kind, processes, size) in enumerate(jobs):
            one = together(processes, "steps", size=size)
            print(f"{kind:>7} {processes} × {size['negatives']}: {one['ms']:.1f} ms", flush=True)
            rounds[i].append(one)
    found: dict[str, list[dict[str, Any]]] = {"strong": [], "weak": []}
    for i, (kind, processes, size) in enumerate(jobs):
        found[kind].append(
            {
                "processes": processes,
                "size": size,
                "ms": median(one["ms"] for one in rounds[i]),
                "range_ms": [
                    min(one["ms"] for one in rounds[i]),
                    max(one["ms"] for one in rounds[i]),
                ],
                "processor_ms": median(one["processor_ms"] for one in rounds[i]),
                "exchange_ms": median(one["exchange_ms"] for one in rounds[i]),
                "exchanges": rounds[i][0]["exchanges"],
            }
        )
    return found


def predicted(exchanges: list[Exchange], gpu: dict[str, Any]) -> dict[str, Any]:
    """A step of many GPUs: what one does whatever its candidates, its candidates, and the exchanges."""
    points = [(size, one["ms"]) for size, one in growth(gpu, "negatives")]
    fixed, slope = fit_line(points)

    def step(gpus: int, negatives: float) -> dict[str, Any]:
        near = ASSUMED["within"].step_seconds(exchanges, min(gpus, MACHINE))
        far = ASSUMED["between"].step_seconds(exchanges, -(-gpus // MACHINE))
        told = 1e3 * (near + far)
        ms = fixed + slope * negatives + told
        return {"gpus": gpus, "negatives": negatives * gpus, "ms": ms, "exchange_ms": told}

    kinds = {
        "strong": [step(gpus, 12_000 / gpus) for gpus in (1, 8, 64)],
        "weak": [step(gpus, 3_000) for gpus in (1, 8, 64)],
    }
    for rows in kinds.values():
        for one in rows:
            one["pairs_per_second"] = 1e3 * PUBLISHED["batch"] * one["negatives"] / one["ms"]
            one["efficiency"] = one["pairs_per_second"] / (
                one["gpus"] * rows[0]["pairs_per_second"]
            )
    return {
        "measured_on": {"gpu": gpu["machine"]["gpu"], "commit": gpu["commit"]},
        "step_ms": {"fixed": fixed, "each_1000_negatives": 1e3 * slope},
        "links": {name: link._asdict() for name, link in ASSUMED.items()},
        "gpus_a_machine": MACHINE,
        "exchanges": [exchange._asdict() for exchange in exchanges],
        **kinds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--gpu", type=Path, default=Path("results/gpu_growth.json"))
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work is not None:
        work(options.work[0], json.loads(options.work[1]))
        return
    if options.out is None:
        parser.error("--out is missing")
    load = os.getloadavg()[0]
    gpu = json.loads(options.gpu.read_text(encoding="utf-8"))
    rounds = [together(2, "exchanges", repeats=20) for _ in range(options.repeats)]
    measured = {
        kind: [
            {"bytes": size, "seconds": median(one[kind][i]["seconds"] for one in rounds)}
            for i, size in enumerate(SIZES)
        ]
        for kind in ("add_up", "collect")
    }
    links = {
        kind: fit_link([(point["bytes"], point["seconds"]) for point in points])
        for kind, points in measured.items()
    }
    exchanges = [Exchange(**one) for one in together(1, "count", size=PUBLISHED)]
    write_json(
        options.out,
        {
            **provenance(["torch", "numpy"]),
            "settings": {
                "repeats": options.repeats,
                "steps": STEPS,
                "threads_a_process": 1,
                "backend": "gloo",
                "load_before": load,
            },
            "exchanges": measured,
            "links": {kind: link._asdict() for kind, link in links.items()},
            **scaled(options.repeats),
            "prediction": predicted(exchanges, gpu),
        },
    )


if __name__ == "__main__":
    main()
