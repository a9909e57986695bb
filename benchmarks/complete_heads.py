"""Which heads should be asked when the facts are sought that a graph lacks?

    python benchmarks/complete_heads.py world umls codex-s --data-dir FOLDER --out results/complete_heads.json

A run is trained on each set. `golde complete` then lists what is most plausible beside the training facts
alone, with its heads by several rules, and the validation facts among the best are counted.
The rule that finds the largest share of what the best rule of each set finds, on the mean of the sets, is the
one chosen, among those with s up to one half: with more, a relation that half of its kind lack could never be
filled, and a split at random lacks less. Beside the two plain rules it is then judged once more: training
and validation facts known, test facts counted. The order is by score; `shown_answers.py` has that by
probability.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from torch import Tensor

import golde
from golde import Config, KnowledgeGraph
from golde.benchmark.provenance import provenance
from golde.inference.complete import complete
from golde.inference.heads import Heads
from golde.models import Model
from golde.runs.atomic import write_json
from golde.runs.environment import environment

DATASETS = ("world", "umls", "codex-s")
BEST = (100, 300, 1000, 3000)
CHOSEN_BY = 1000
SHARES = (0.3, 0.5, 0.7, 0.9)
LARGEST_SHARE = 0.5
SEVERAL = (1.0, 1.5, 2.0, 3.0)
PLAIN = ("known", "all")


def kind(share: float, several: float) -> str:
    """A rule by name; with 1 tail a head or more no relation is functional at a threshold of 1."""
    return f"kind, s = {share:g}, t = {several:g}"


def rules() -> dict[str, dict[str, Any]]:
    """What `Heads` is given under each name."""
    found: dict[str, dict[str, Any]] = {name: {"rule": name} for name in PLAIN}
    for share in SHARES:
        found |= {kind(share, t): {"share": share, "several": t} for t in SEVERAL}
    return found


def count(
    model: Model, graph: KnowledgeGraph, sought: Tensor, given: dict[str, Any]
) -> dict[str, Any]:
    """How many of the facts sought are among the best that the graph does not hold."""
    began = time.monotonic()
    heads = Heads(graph, **given)
    found = complete(model, graph, max(BEST), heads=heads)
    seconds = time.monotonic() - began
    entities, relations = graph.entities, graph.relations
    wanted = {(entities[h], relations[r], entities[t]) for h, r, t in sought.tolist()}
    hits = [prediction.fact in wanted for prediction in found.facts]
    return {
        "queries": found.queries,
        "seconds": round(seconds, 2),
        "found": {str(k): sum(hits[:k]) for k in BEST},
    }


def choose(validation: dict[str, dict[str, Any]]) -> str:
    """The rule with the largest mean, over sets, of its share of what the best rule finds."""

    def found(name: str, rule: str) -> int:
        hits: int = validation[name][rule]["found"][str(CHOSEN_BY)]
        return hits

    most = {name: max(found(name, rule) for rule in rules()) for name in validation}
    return max(
        (rule for rule, given in rules().items() if given.get("share", 1.0) <= LARGEST_SHARE),
        key=lambda rule: fmean(found(name, rule) / most[name] for name in validation),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(DATASETS))
    parser.add_argument("--data-dir")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], help="a setting, as in golde train")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    trained, results, validation = {}, {}, {}
    for name in options.names:
        graph = golde.load_graph(name, data_dir=options.data_dir)
        config = Config.load(overrides=[f"training.seed={options.seed}", *options.set])
        with tempfile.TemporaryDirectory() as folder:
            run = golde.train(graph, Path(folder, "run"), config, device="cpu")
            mrr = run.evaluate("valid", baselines=False, bootstrap=0, store=False).mrr
        trained[name] = run
        graph = run.graph
        only_train = replace(graph, valid=graph.valid[:0], test=graph.test[:0])
        validation[name] = {}
        for rule, given in rules().items():
            validation[name][rule] = count(run.model, only_train, graph.valid, given)
            print(f"{name}, {rule}: {validation[name][rule]}", flush=True)
        results[name] = {
            "entities": len(graph.entities),
            "relations": len(graph.relations),
            "facts": {split: len(graph.split(split)) for split in ("train", "valid", "test")},
            "validation_mrr": mrr,
            "validation": validation[name],
            "settings": run.config.model_dump(exclude_none=True),
        }
    chosen = choose(validation)
    for name, run in trained.items():
        graph = replace(run.graph, test=run.graph.test[:0])
        results[name]["test"] = {
            rule: count(run.model, graph, run.graph.test, rules()[rule])
            for rule in (*PLAIN, chosen)
        }
        print(f"{name}, test: {results[name]['test']}", flush=True)
    report = {
        **provenance(["torch", "numpy"]),
        "environment": environment("cpu"),
        "seed": options.seed,
        "chosen_by": CHOSEN_BY,
        "chosen": chosen,
        "results": results,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write_json(options.out, report)
    print(f"chosen: {chosen}")


if __name__ == "__main__":
    main()
