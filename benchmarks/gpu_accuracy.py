"""What do fused kernels, the precision of products and the published reading of β do to accuracy and time?

The same training in several variants, at the published sizes, for a fixed number of steps, each step
captured as one graph:

- plain-float32: the step in PyTorch operations, products in float32;
- plain-tf32: the same with products in TF32;
- fused: fused kernels, products in three TF32 parts (tf32x3), as users get them;
- fused-tf32: the same with products in one TF32 part, which no user gets, since it is not exact;
- published-beta: plain-float32 with β as a scale in place of a curvature (``levers.py``).

Each run keeps its last parameters, whose MRR is that of the whole validation split (filtered, both sides,
realistic rank on ties), ranked in the same variant. The test split is not looked at. A step's time is the
median over log intervals, and ``score_error`` how far the trained model's scores are from those in float64.

    python benchmarks/gpu_accuracy.py --steps 20000 --seeds 0 1 2 --out results/gpu_accuracy.json

The file is written after every training; ``--resume`` leaves out those that it has.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import levers
import torch
import trainings
from torch import Tensor
from trainings import Trainings, attempted, to_the_end, where

from golde.config import Config
from golde.data.graph import KnowledgeGraph
from golde.data.loading import load_graph
from golde.kernels.triton import has_triton
from golde.kernels.triton.batch import fused_batch
from golde.kernels.triton.distance import fused_pairwise
from golde.models import GoldE
from golde.report.variations import UNCHANGED
from golde.runs import RunFolder
from golde.training.loop import Report

SETS: dict[str, dict[str, dict[str, Any]]] = {
    "wn18rr": {
        "model": {"signature": "P10x36 Q13x36", "margin": 6.0, "weights": {"P": 0.5}},
        "training": {
            "batch_size": 1000,
            "negatives": 3000,
            "temperature": 1.1,
            "learning_rate": 3e-3,
        },
    },
    "fb15k-237": {
        "model": {"signature": "P6x28 Q23x28", "margin": 10.0, "weights": {"P": 0.5}},
        "training": {
            "batch_size": 1500,
            "negatives": 3000,
            "temperature": 0.7,
            "learning_rate": 1e-3,
        },
    },
}
"""What the paper trains each set with."""

INTERVALS = 20
"""Log intervals at the least, of which the median is a step's time."""

QUERIES = 256
"""Validation queries whose scores are compared with those in float64."""

FUSED = (fused_batch, fused_pairwise)
"""Where scores come from kernels that multiply; ranks are counted in ``tf32x3`` whatever these are told."""

KEY = ("set", "variant", "seed", "steps")
"""What tells one training from another."""


class Variant(NamedTuple):
    """How a step is computed."""

    kernels: str
    products: str = "highest"  # PyTorch's own
    fused_products: str = "tf32x3"
    lever: str = UNCHANGED


VARIANTS = {
    "plain-float32": Variant("plain"),
    "plain-tf32": Variant("plain", products="high"),
    "fused": Variant("fused"),
    "fused-tf32": Variant("fused", fused_products="tf32"),
    "published-beta": Variant("plain", lever="published-beta"),
}


@contextmanager
def in_force(variant: Variant) -> Iterator[None]:
    """The variant's kernels and precisions inside; then all as before, and nothing compiled is left."""
    before = torch.get_float32_matmul_precision()
    kernels = {"GOLDE_KERNELS": variant.kernels}
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, kernels))
        stack.enter_context(levers.in_force(levers.LEVERS[variant.lever]))
        for function in FUSED:  # a default of each, since it is no user's option
            products = {"precision": variant.fused_products}
            stack.enter_context(patch.dict(function.__kwdefaults__, products))
        torch.set_float32_matmul_precision(variant.products)
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before)
            torch.compiler.reset()
            gc.collect()
            torch.cuda.empty_cache()


def settings(name: str, graph: KnowledgeGraph, seed: int, steps: int) -> Config:
    """The published ones, without anything that would end a run early or interrupt it."""
    published = SETS[name]
    config = Config().with_values(
        model=published["model"],
        training=published["training"]
        | {"steps": steps, "log_every": max(1, min(100, steps // INTERVALS))},
    )
    return to_the_end(config, graph, seed)


def score_error(model: GoldE, facts: Tensor) -> float:
    """``‖s − s₆₄‖ / ‖s₆₄‖`` over the scores of all entities for the tails of some facts, as in a step."""
    head, relation, tail = facts.unbind(1)
    everyone = torch.arange(model.entities, device=facts.device)

    def scores() -> Tensor:
        rows = model.entity[torch.cat((head, tail, everyone))]
        return model.score_batch(rows, head, relation, tail, everyone, own=False)[2].double()

    with torch.no_grad():
        found = scores()
        model.double()
        exact = scores()
    return float((found - exact).norm() / exact.norm())


def measure(graph: KnowledgeGraph, config: Config, device: str) -> dict[str, Any]:
    """Train, and rank the validation split."""
    batch = config.training.batch_size or 0
    times: list[float] = []

    def watch(report: Report) -> None:
        times.append(1e3 * batch / report.queries_per_second)

    def look(run: RunFolder) -> dict[str, Any]:
        error = score_error(run.load_model(device), graph.valid[:QUERIES].to(device))
        compiled = run.about()["environment"]["compiled"]
        return {"score_error": float(f"{error:.3g}"), "compiled": compiled}

    found = trainings.measure(graph, config, device, watch=watch, look=look)
    low, median, high = statistics.quantiles(times, n=4)
    return found | {
        "step_ms": round(median, 4),
        "quartiles_ms": [round(low, 4), round(high, 4)],
    }


def study(
    sets: Sequence[str],
    variants: Sequence[str],
    seeds: Sequence[int],
    steps: int,
    out: Path,
    *,
    device: str = "cuda",
    resume: bool = False,
) -> None:
    """Every variant of every set, seed after seed, so that a study cut short compares like with like."""
    done = Trainings(out, __doc__.splitlines()[0], KEY, resume=resume)
    graphs = {name: load_graph(name) for name in sets}
    for seed, name, variant in product(seeds, sets, variants):
        key = name, variant, seed, steps
        if done.get(*key):
            continue
        with in_force(VARIANTS[variant]):
            config = settings(name, graphs[name], seed, steps)
            found = attempted(measure, graphs[name], config, device)
        one = dict(zip(KEY, key, strict=True)) | found | where(device)
        done.add(one)
        print(line(one), flush=True)


def line(one: dict[str, Any]) -> str:
    what = f"{one['set']} {one['variant']} seed {one['seed']}, {one['steps']} steps: "
    if "failed" in one:
        return what + one["failed"]
    return what + (
        f"validation MRR {one['validation']['mrr']:.4f}, {one['step_ms']:.3f} ms a step, "
        f"{one['seconds']} s in all"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    if not torch.cuda.is_available() or not has_triton():
        raise SystemExit("gpu_accuracy.py: needs a GPU with Triton, and no GOLDE_KERNELS=plain")
    if options.out.exists() and not options.resume:
        raise SystemExit(f"{options.out}: is there already; add --resume, or choose another --out")
    study(
        options.sets,
        options.variants,
        options.seeds,
        options.steps,
        options.out,
        resume=options.resume,
    )


if __name__ == "__main__":
    main()
