"""How long do explanations, rules and the geometry of all relations take at a million facts?

The graph has 200,000 entities of 100 types and 1,000 relations from one type to another: 500 at random, 200
their inverses, 300 compositions of two, most facts of the latter two being there. Heads and tails are drawn
unevenly, so that there are hubs. The model has 128 numbers an entity and is not trained: how long it takes
does not depend on what was learned. Figures are CPU seconds on one thread, medians over the rounds, of
explanations over twenty facts.

    python benchmarks/explain_million.py --out results/explain_million.json
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import spread

from golde.analysis.explain import explain
from golde.analysis.links import Links
from golde.analysis.relation_geometry import relation_geometry
from golde.analysis.rules import LEAST_CONFIDENCE, Rule, candidates, judge
from golde.benchmark.provenance import provenance
from golde.config import ModelConfig
from golde.data.graph import KnowledgeGraph
from golde.data.vocabulary import Vocabulary
from golde.models import GoldE

ENTITIES, TYPES, EACH = 200_000, 100, 1_080  # facts of a relation, a few of them repeated
BASE, INVERSE, COMPOSED = 500, 200, 300
SIGNATURE, TOLD, EXPLAINED = "P8x8 Q9x8", 0.8, 20


def planted_graph(seed: int) -> tuple[KnowledgeGraph, set[Rule]]:
    """About a million facts, and the rules that most of them follow."""
    rng = np.random.default_rng(seed)
    size = ENTITIES // TYPES
    kinds = rng.integers(TYPES, size=(BASE, 2))

    def entities(kind: int) -> Any:
        """Squaring makes some of a type far more frequent than others."""
        return kind * size + (rng.random(EACH) ** 2 * size).astype(np.int64)

    def some(pairs: Any) -> Any:
        chosen = rng.permutation(np.unique(pairs, axis=0))
        return chosen[: max(1, int(TOLD * min(len(chosen), EACH / TOLD)))]

    base = [np.stack((entities(a), entities(b)), 1) for a, b in kinds]
    told, rules = [*base], set[Rule]()
    for i in range(INVERSE):
        rules.add(Rule("inverse", (i,), len(told)))
        told.append(some(base[i][:, ::-1]))
    follows = [(a, b) for a in range(BASE) for b in range(BASE) if kinds[a, 1] == kinds[b, 0]]
    for a, b in rng.permutation(follows)[:COMPOSED].tolist():
        after = base[b][np.argsort(base[b][:, 0], kind="stable")]
        start, stop = (
            np.searchsorted(after[:, 0], base[a][:, 1], side) for side in ("left", "right")
        )
        count = stop - start
        place = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        ends = after[np.repeat(start, count) + place, 1]
        rules.add(Rule("composition", (a, b), len(told)))
        told.append(some(np.stack((np.repeat(base[a][:, 0], count), ends), 1)))
    facts = [np.insert(pairs, 1, r, axis=1) for r, pairs in enumerate(told)]
    train = torch.from_numpy(np.unique(np.concatenate(facts), axis=0))
    graph = KnowledgeGraph(
        Vocabulary((f"entity {i}" for i in range(ENTITIES)), "entity"),
        Vocabulary((f"relation {i}" for i in range(len(told))), "relation"),
        train[torch.randperm(len(train), generator=torch.Generator().manual_seed(seed))],
        train[:0],
        train[:0],
    )
    return graph, rules


def timed(call: Any) -> tuple[float, Any]:
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def measure(graph: KnowledgeGraph, model: GoldE, rules: set[Rule]) -> dict[str, Any]:
    """One round."""
    index_s, links = timed(lambda: Links(graph))
    candidates_s, suggested = timed(lambda: candidates(links))
    judge_s, judged = timed(lambda: judge(model, links, suggested))
    geometry_s, _ = timed(lambda: relation_geometry(model, graph))
    names = graph.entities, graph.relations, graph.entities
    facts = [
        tuple(vocabulary[i] for vocabulary, i in zip(names, fact, strict=True))
        for fact in graph.train[:EXPLAINED].tolist()
    ]
    graph.known()  # read once by whoever asks anything of a run
    explain_s = [timed(lambda fact=fact: explain(model, graph, *fact))[0] for fact in facts]
    confident = {one.rule for one in judged if one.confidence >= LEAST_CONFIDENCE}
    return {
        "figures": {
            "index_s": index_s,
            "candidates_s": candidates_s,
            "judge_s": judge_s,
            "geometry_s": geometry_s,
            "explain_s": float(np.median(explain_s)),
            "slowest_explain_s": max(explain_s),
        },
        "candidates": len(suggested),
        "planted_rules": len(rules),
        "planted_found": len(rules & set(suggested)),
        "confident": len(confident),
        "confident_planted": len(rules & confident),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    graph, rules = planted_graph(seed=0)
    model = GoldE(ModelConfig(signature=SIGNATURE), len(graph.entities), len(graph.relations))
    rounds = []
    for _ in range(options.repeats):
        rounds.append(measure(graph, model, rules))
        print(rounds[-1], flush=True)
    report = {
        **provenance(["torch", "numpy"]),
        "settings": {
            "facts": len(graph.train),
            "entities": ENTITIES,
            "relations": len(graph.relations),
            "signature": SIGNATURE,
            "explained": EXPLAINED,
            "repeats": options.repeats,
            "threads": torch.get_num_threads(),
        },
        "results": {
            **{key: value for key, value in rounds[0].items() if key != "figures"},
            **{
                name: spread(one["figures"][name] for one in rounds)
                for name in rounds[0]["figures"]
            },
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        },
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
