"""Does training at the size of YAGO3-10 stay stable, how quick is it, and how much memory does it take?

The two configurations of YAGO3-10 are trained on a part of its training facts with all of its entities, those
that no fact of the part mentions included; then their evidence is gathered, timed on its own. FOLDER has
train, valid and test, and in ``entities.txt`` (also ``.xz``) every entity, one name a line. Fewer facts are
another graph: accuracy on them says whether training gets anywhere, and is no figure of YAGO3-10. The test
split is not looked at.

    python benchmarks/yago_part.py FOLDER --steps 12000 --out results/yago_part.json

The file is written after each training; one that it has with the same settings is left out.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import torch
from common import spread
from trainings import NEVER, Training, Trainings, attempted, measure, where

from golde.config import Config
from golde.data.files import opened
from golde.data.graph import KnowledgeGraph
from golde.data.loading import load_graph
from golde.data.vocabulary import Vocabulary
from golde.errors import GoldeError
from golde.inference.run import Run
from golde.runs import RunFolder
from golde.training.defaults import resolve
from golde.training.loop import pick_device

CONFIGS = Path(__file__).parents[1] / "configs"
NAMES = ("yago3-10", "yago3-10-k32")
KEY = ("configuration", "graph", "seed", "steps")
"""What tells one training from another."""

STRETCHES = 10
"""Into how many parts of the steps the losses are summed up, and how often validation is ranked."""


def part_with_all_entities(folder: Path) -> KnowledgeGraph:
    """The graph of a folder, and after its entities those that are only listed."""
    graph = load_graph(folder)
    there = set(graph.entities.names)
    more = [name for name in _listed(folder) if name not in there]
    return replace(graph, entities=Vocabulary((*graph.entities.names, *more), "entity"))


def _listed(folder: Path) -> list[str]:
    plain = folder / "entities.txt"
    packed = plain.with_name("entities.txt.xz")
    with opened(packed if packed.is_file() else plain) as file:
        return [name for name in file.read().decode("utf-8").split("\n") if name]


def settings(name: str, graph: KnowledgeGraph, steps: int, seed: int) -> Config:
    """Those of a configuration, for so many steps, validation ranked as often as losses are summed up."""
    training = {
        "steps": steps,
        "seed": seed,
        "validate_every": max(1, steps // STRETCHES),
        "patience": STRETCHES,  # to the end, whatever validation says
        "checkpoint_seconds": NEVER,
    }
    config = Config.load(CONFIGS / f"{name}.toml")
    return resolve(config.with_values(training=training, evidence={"hops": 0}), graph)


def trained(graph: KnowledgeGraph, config: Config, device: str, hops: int) -> Training:
    """Train, and find out how it went; then gather evidence of so many facts in a row."""
    place = pick_device(device)
    _forget_memory(place)
    return measure(graph, config, device, look=lambda run: _looked_at(run, place, hops))


def _forget_memory(place: torch.device) -> None:
    if place.type == "cuda":
        torch.cuda.reset_peak_memory_stats(place)


def _most_memory(place: torch.device) -> float | None:
    """GiB since it was last forgotten."""
    if place.type != "cuda":
        return None
    return round(torch.cuda.max_memory_allocated(place) / 2**30, 2)


def _looked_at(folder: RunFolder, place: torch.device, hops: int) -> Training:
    lines = [json.loads(line) for line in folder.log.read_text("utf-8").splitlines()]
    memory = _most_memory(place)
    rates = [line["queries_per_second"] for line in lines[1:] or lines]  # the first compiles
    run = Run(folder, place)
    began = time.perf_counter()
    run.evaluate("valid", baselines=False, bootstrap=0, store=False)
    ranked = time.perf_counter()
    _forget_memory(place)
    found = run.gather_evidence(hops, store=False)
    gathered = time.perf_counter()
    beside = run.evaluate("valid", baselines=False, bootstrap=0, store=False)
    return {
        "losses": _stretches([line["loss"] for line in lines]),
        "curve": folder.about()["validation"],
        "queries_per_second": spread(rates)["median"],
        "device_gib": memory,
        "rank_s": round(ranked - began, 2),
        "evidence": found.as_dict()
        | {
            "seconds": round(gathered - ranked, 1),
            "rank_s": round(time.perf_counter() - gathered, 2),
            "device_gib": _most_memory(place),
            "mrr": beside.mrr,
        },
    }


def _stretches(losses: list[float]) -> list[dict[str, float]]:
    """The mean and the largest loss of each stretch."""
    ends = [len(losses) * i // STRETCHES for i in range(STRETCHES + 1)]
    parts = [losses[start:end] for start, end in pairwise(ends) if start < end]
    return [
        {"mean": round(sum(part) / len(part), 5), "largest": round(max(part), 5)} for part in parts
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--configs", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--steps", type=int, default=12_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    try:
        pick_device(options.device)  # that there is none is no failed training
        graph = part_with_all_entities(options.folder)
        trainings = Trainings(options.out, __doc__.splitlines()[0], KEY)
        for name in options.configs:
            config = settings(name, graph, options.steps, options.seed)
            key = name, graph.name, options.seed, options.steps
            if trainings.has(config, *key):
                continue
            hops = Config.load(CONFIGS / f"{name}.toml").evidence.hops
            one = attempted(trained, graph, config, options.device, hops)
            sizes = {"entities": len(graph.entities), "facts": len(graph.train)}
            trainings.add(dict(zip(KEY, key, strict=True)) | sizes | one | where(options.device))
            print(f"{name}: {one.get('failed') or _in_words(one)}", flush=True)
    except GoldeError as error:
        raise SystemExit(f"yago_part.py: {error}") from None


def _in_words(one: Training) -> str:
    return (
        f"{one['seconds']} s, {one['queries_per_second']:,.0f} queries/s, {one['device_gib']} GiB, "
        f"validation MRR {one['validation']['mrr']:.4f}; with evidence {one['evidence']['mrr']:.4f} after "
        f"{one['evidence']['seconds']} s"
    )


if __name__ == "__main__":
    main()
