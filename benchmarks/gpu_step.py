"""How long does a training step take on a GPU, form by form, and how does it grow?

Forms of one and the same step, at the size the paper uses on WN18RR, on a random graph of that size:

- gathered: every query with 200 negatives of its own, gathered row by row, as most code does it;
- plain: shared negatives, products and distances in PyTorch operations;
- plain compiled: the same with the distance, and what leads up to it, through ``torch.compile``;
- fused: the distance, the masks and the loss as kernels, the step captured as one graph;
- fused compiled: the same, and what leads up to the distance compiled too.

Then the fused form at other sizes: all entities as candidates, a table as large as YAGO3-10's, and one
dimension at a time. Times are medians of device events after warm-up, with quartiles. Every form's loss
and gradient norm are first compared with the plain form's; one that differs is listed without a time.

    python benchmarks/gpu_step.py --out results/gpu_step.json
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import torch
from common import provenance

from golde.config import Config
from golde.data.synthetic import random_graph
from golde.evaluation.evaluate import rank_triples
from golde.kernels import pairwise_reference
from golde.models import GoldE
from golde.training.sampling import Sampler
from golde.training.update import Outcome, Update

GATHERED_NEGATIVES = 200
TOLERANCE = 1e-4  # of loss and gradient norm, relative to the plain form
WARM_UP = 8


class Size(NamedTuple):
    """A graph, a model and a batch; no negatives means all entities."""

    entities: int = 40_943
    relations: int = 11
    facts: int = 86_835
    signature: str = "P10x36 Q13x36"
    batch: int = 1000
    negatives: int = 3000


class Step:
    """Everything a step needs, on the GPU."""

    def __init__(self, size: Size, *, fused: bool, capture: bool) -> None:
        self.size = size
        self.graph = random_graph(size.entities, size.relations, size.facts)
        config = Config.load(overrides=[f"model.signature={size.signature}", "model.margin=6.0"])
        self.device = torch.device("cuda")
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated()
        self.model = GoldE(config.model, size.entities, size.relations).to(self.device)
        self.model.fused = fused
        parameters = torch.cuda.memory_allocated() - before
        self.sampler = Sampler(
            self.graph.train,
            size.entities,
            size.relations,
            batch_size=size.batch,
            negatives=size.negatives,
            subsampling=True,
            seed=0,
            device=self.device,
        )
        self.update = Update(self.model, self.sampler, config.training, capture=capture)
        self.lasting = before + 3 * parameters  # with the two moments of Adam
        torch.cuda.reset_peak_memory_stats()

    def __call__(self, step: int) -> Outcome:
        return self.update(step, 1e-3)


class Gathered(Step):
    """The textbook form: negatives of its own for every query."""

    def __call__(self, step: int) -> Outcome:
        model, optimiser = self.model, self.update.optimiser
        batch = self.sampler.seek(step).batch()
        shape = (len(batch.entity), GATHERED_NEGATIVES)
        negatives = torch.randint(self.size.entities, shape, device=self.device)
        optimiser.zero_grad()
        repeated = [
            column.repeat_interleave(GATHERED_NEGATIVES)
            for column in (batch.entity, batch.direction)
        ]
        negative = model.score_pairs(*repeated, negatives.flatten()).view(shape)
        positive = model.score_pairs(batch.entity, batch.direction, batch.answer)
        weight = torch.softmax(negative.detach(), 1)
        logsigmoid = torch.nn.functional.logsigmoid
        wrong = (weight * logsigmoid(-model.margin - negative)).sum(1)
        loss = -(batch.weight * (logsigmoid(model.margin + positive) + wrong)).sum() / 2
        loss.backward()
        optimiser.step()
        return Outcome(loss.detach(), loss.detach())


@contextmanager
def kernels(form: str) -> Iterator[None]:
    """Under ``plain`` nothing is fused; under ``compiled`` the plain distance is compiled."""
    module: Any = import_module("golde.kernels.pairwise")
    os.environ["GOLDE_KERNELS"] = "fused" if form == "fused" else "plain"
    if form == "compiled":
        module.pairwise_reference = torch.compile(pairwise_reference, dynamic=False)
    try:
        yield
    finally:
        module.pairwise_reference = pairwise_reference
        del os.environ["GOLDE_KERNELS"]


def measured(step: Step, repeats: int) -> dict[str, Any]:
    """Times and memory of a step that is known to be right."""
    begin = time.perf_counter()
    for number in range(WARM_UP):
        step(number)
    torch.cuda.synchronize()
    ready = time.perf_counter() - begin
    events = []
    for number in range(repeats):
        pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        pair[0].record()
        step(WARM_UP + number)
        pair[1].record()
        events.append(pair)
    torch.cuda.synchronize()
    times = [start.elapsed_time(stop) for start, stop in events]
    low, median, high = statistics.quantiles(times, n=4)
    size = step.size
    columns = GATHERED_NEGATIVES if isinstance(step, Gathered) else size.negatives or size.entities
    return {
        "ms": round(median, 4),
        "quartiles_ms": [round(low, 4), round(high, 4)],
        "pairs_per_second": round(size.batch * columns / (median * 1e-3)),
        "memory_beyond_state_mb": round((torch.cuda.max_memory_allocated() - step.lasting) / 2**20),
        "ready_s": round(ready, 1),
    }


def first_outcome(step: Step) -> tuple[float, float]:
    loss, norm = step(0)
    return float(loss), float(norm)


def forms(size: Size, repeats: int) -> dict[str, Any]:
    """Every form side by side, in one run."""
    makers: dict[str, tuple[str, Callable[[], Step]]] = {
        "gathered": ("plain", lambda: Gathered(size, fused=False, capture=False)),
        "plain": ("plain", lambda: Step(size, fused=False, capture=False)),
        "plain compiled": ("compiled", lambda: Step(size, fused=True, capture=False)),
        "fused": ("fused", lambda: Step(size, fused=False, capture=True)),
        "fused compiled": ("fused", lambda: Step(size, fused=True, capture=True)),
    }
    with kernels("plain"):
        expected = first_outcome(Step(size, fused=False, capture=False))
    found: dict[str, Any] = {}
    for name, (form, make) in makers.items():
        with kernels(form):
            if name != "gathered":  # its negatives are others
                outcome = first_outcome(make())
                errors = [abs(a - b) / abs(b) for a, b in zip(outcome, expected, strict=True)]
                if max(errors) > TOLERANCE:
                    found[name] = {"failed": f"loss and gradient norm are off by {errors}"}
                    continue
            found[name] = measured(make(), repeats)
        announce(name, found[name])
    return found


def fused_at(size: Size, repeats: int, name: str) -> dict[str, Any]:
    """The fused form, eager where it leads up to the distance, at another size."""
    found = {"size": size._asdict(), **measured(Step(size, fused=False, capture=True), repeats)}
    announce(name, found)
    return found


def evaluation(size: Size, repeats: int) -> dict[str, Any]:
    """Filtered ranks of both sides of 3,134 facts, as many as WN18RR's test split has."""
    step = Step(size, fused=False, capture=False)
    facts = step.graph.train[:3134]
    times = []
    for _ in range(repeats + 1):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        rank_triples(step.model.scorer(), step.graph, facts, device=step.device)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    found = {"seconds": round(statistics.median(times[1:]), 4), "queries": 2 * len(facts)}
    announce("evaluation", found)
    return found


def announce(name: str, found: dict[str, Any]) -> None:
    print(f"{name}: {json.dumps(found)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=60)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("gpu_step.py: no CUDA device; there is nothing to measure here")
    usual = Size()
    record = {"question": __doc__.splitlines()[0], "forms": forms(usual, args.repeats)}
    sizes = {
        "all entities": usual._replace(batch=500, negatives=0),
        "YAGO3-10": Size(123_182, 37, 1_079_040, "P8x50 Q13x50", 3000, 3000),
    }
    sizes |= {f"batch {n}": usual._replace(batch=n) for n in (250, 500, 2000, 4000)}
    sizes |= {f"negatives {n}": usual._replace(negatives=n) for n in (500, 1000, 6000, 12_000)}
    sizes |= {f"components {n}": usual._replace(signature=f"P10x{n} Q13x{n}") for n in (9, 18, 72)}
    sizes |= {
        f"dimension {n}": usual._replace(signature=f"P{n}x36 Q{n + 1}x36") for n in (4, 20, 40)
    }
    record["sizes"] = {
        name: fused_at(size, max(20, args.repeats // 3), name) for name, size in sizes.items()
    }
    record["evaluation"] = evaluation(usual, 5)
    record |= provenance(("torch", "triton"))
    record["machine"]["gpu"] = torch.cuda.get_device_name()
    record["settings"] = {"repeats": args.repeats, "warm_up": WARM_UP, "seed": 0}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
