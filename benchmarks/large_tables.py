"""How large a table of entities can be trained, on the device and from host memory, and how quickly?

Random facts over millions of entities of few numbers. The same steps of dense Adam are made on a table on the
device and on one in host memory, the latter with little device memory allowed; how long a step takes is
followed over the number of entities and of facts; and tables are made larger until they no longer fit. Every
measurement has a process of its own and is written as it comes; what the file has already is not measured
again, so a run that was cut short goes on where it was; ``--minutes`` cuts it short.

    python benchmarks/large_tables.py --out results/large_tables.json
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from common import spread

from golde.benchmark.provenance import provenance
from golde.config import Config
from golde.data.known import KnownFacts
from golde.errors import GoldeError
from golde.evaluation.ranking import both_sides, rank_queries
from golde.models import build, place
from golde.training.host_update import HostUpdate
from golde.training.sampling import Sampler
from golde.training.update import Update

SIGNATURE, RELATIONS = "P8x1 Q9x1", 100
BATCH, NEGATIVES, RATE, SEED = 4096, 4096, 0.001, 0
WARM_UP, STEPS, REPEATS = 20, 100, 5
RANKED = 128
MILLION = 1_000_000
CAP = 16.0
"""GiB of device memory that training from host memory may take."""

SETTINGS = {
    "signature": SIGNATURE,
    "relations": RELATIONS,
    "batch": BATCH,
    "negatives": NEGATIVES,
    "optimiser": "adam",
    "seed": SEED,
    "steps": STEPS,
    "repeats": REPEATS,
    "ranked": RANKED,
}


class Case(NamedTuple):
    """What is measured."""

    table: str  # on the device, or in host memory
    entities: int
    facts: int
    cap_gib: float | None  # of device memory

    @property
    def name(self) -> str:
        cap = "" if self.cap_gib is None else f", at most {self.cap_gib:g} GiB"
        return f"{self.table}, {self.entities:,} entities, {self.facts:,} facts{cap}"


def cases(scale: float) -> Iterator[Case]:
    """By entities, by facts, and as large as goes; ``scale`` makes all of them smaller."""

    def case(table: str, entities: int, facts: int, cap: float | None) -> Case:
        return Case(table, *(max(2, round(n * MILLION * scale)) for n in (entities, facts)), cap)

    for entities in (10, 50, 100):
        yield case("device", entities, 10, None)
        yield case("host", entities, 10, CAP)
    for facts in (1, 30):
        yield case("device", 10, facts, None)
        yield case("host", 10, facts, CAP)
    for entities in (75, 100):
        yield case("device", entities, 10, CAP)
    yield case("device", 600, 10, None)
    yield case("host", 500, 10, CAP)


def random_facts(case: Case) -> torch.Tensor:
    """Facts (n, 3) drawn uniformly."""
    draw = torch.Generator().manual_seed(SEED)
    columns = [
        torch.randint(bound, (case.facts,), generator=draw)
        for bound in (case.entities, RELATIONS, case.entities)
    ]
    return torch.stack(columns, 1)


def measure(case: Case, device: torch.device) -> dict[str, Any]:
    """Start, steps, settling and ranking of one case; or why it could not be."""
    if case.cap_gib is not None and device.type == "cuda":
        there = torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(case.cap_gib * 2**30 / there)
    try:
        return _measured(case, device)
    except torch.OutOfMemoryError:
        return {"failed": "out of device memory"}
    except (GoldeError, RuntimeError) as error:
        return {"failed": str(error).splitlines()[0][:200]}


def _measured(case: Case, device: torch.device) -> dict[str, Any]:
    clock = Clock(device)
    host = case.table == "host"
    config = Config().with_values(
        model={"signature": SIGNATURE, "margin": 6.0},
        training={"entity_table": case.table, "batch_size": BATCH, "negatives": NEGATIVES},
    )
    facts = random_facts(case)
    sampler = Sampler(
        facts,
        case.entities,
        RELATIONS,
        batch_size=BATCH,
        negatives=NEGATIVES,
        subsampling=False,
        seed=SEED,
        device=device,
    )
    facts_s = clock.lap()
    model = build(config.model, case.entities, RELATIONS, seed=SEED)
    model = place(model, device, torch.float32, host=host)
    make = HostUpdate if host else Update
    update = make(model, sampler, config.training, capture=device.type == "cuda")
    table_s = clock.lap()
    update.rehearse()
    for step in range(WARM_UP):
        outcome = update(step, RATE)
    times = []
    for repeat in range(REPEATS):
        clock.lap()
        for step in range(WARM_UP + repeat * STEPS, WARM_UP + (repeat + 1) * STEPS):
            outcome = update(step, RATE)
        times.append(clock.lap() / STEPS)
    loss = outcome.loss.item()
    clock.lap()
    update.settle()
    settle_s = clock.lap()
    known = KnownFacts(facts[:RANKED], case.entities, RELATIONS)
    queries = both_sides(facts[:RANKED].to(device), RELATIONS)
    rank_queries(model.scorer(), *queries, known, entities=case.entities)
    return {
        "step_ms": spread(1000 * each for each in times),
        "triples_per_second": spread(sampler.batch_size / each for each in times),
        "loss": loss,
        "facts_s": round(facts_s, 2),
        "table_s": round(table_s, 2),
        "settle_s": round(settle_s, 3),
        "rank_s": round(clock.lap(), 3),
        "table_gib": round(3 * model.entity.nbytes / 2**30, 2),
        "device_gib": round(_peak(device), 2),
    }


class Clock:
    """Seconds between laps, of what the device has finished."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.start = device, time.perf_counter()

    def lap(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        before, self.start = self.start, time.perf_counter()
        return self.start - before


def _peak(device: torch.device) -> float:
    return torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else 0.0


def in_child(case: Case, device: str) -> dict[str, Any]:
    """Measure in a new process: memory that is given back there is given back."""
    words = [sys.executable, __file__, "--case", json.dumps(case), "--device", device]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        return {"failed": f"the process ended with {done.returncode}"}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def about(device: str) -> dict[str, Any]:
    """Where a figure comes from."""
    found = provenance(["torch", "triton"])
    if device == "cuda":
        found["machine"]["gpu"] = torch.cuda.get_device_name()
        found["machine"]["gpu_gib"] = round(
            torch.cuda.get_device_properties(0).total_memory / 2**30, 1
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--scale", type=float, default=1.0, help="of all sizes")
    parser.add_argument("--minutes", type=float, help="begin nothing after so many")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case is not None:
        case = Case(*json.loads(options.case))
        print(json.dumps(measure(case, torch.device(options.device))))
        return
    if options.out is None:
        parser.error("--out is missing")
    began, results = time.monotonic(), []
    if options.out.is_file():
        results = json.loads(options.out.read_text("utf-8"))["results"]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    done = {one["name"] for one in results}
    for case in cases(options.scale):
        if case.name in done:
            continue
        if options.minutes is not None and time.monotonic() - began > 60 * options.minutes:
            print("time is up; run it again to go on", flush=True)
            return
        found = in_child(case, options.device)
        print(f"{case.name}: {json.dumps(found)}", flush=True)
        done.add(case.name)
        results.append(
            {"name": case.name, **case._asdict(), **found, "source": about(options.device)}
        )
        record = {"question": __doc__.splitlines()[0], "settings": SETTINGS, "results": results}
        options.out.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
