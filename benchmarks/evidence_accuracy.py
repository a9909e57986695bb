"""What is evidence of facts in a row worth, on runs with no other option set?

    python benchmarks/evidence_accuracy.py --data-dir FOLDER --out results/evidence_accuracy.json

Each set is trained by what `golde train NAME --out RUN` does. Then `golde evidence RUN --hops N` is done for
one to three hops, as long as an entity has few enough walks. Each is ranked on validation; what is best
there, and the embedding alone, once on test (filtered, both sides, realistic rank on ties).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import golde
from golde.benchmark.provenance import provenance
from golde.evidence import Walks

DATASETS = ("umls", "codex-s", "world")
MOST_WALKS = 30_000
"""Of the entity of a fact on average; with more of them, so many hops are left out."""


def measure(name: str, data_dir: str | None, seed: int) -> dict[str, Any]:
    """Train with the defaults, gather evidence of each length, rank."""
    graph = golde.load_graph(name, data_dir=data_dir)
    config = golde.Config.load(overrides=[f"training.seed={seed}"])
    with tempfile.TemporaryDirectory() as folder:
        run = golde.train(graph, Path(folder, "run"), config, device="cpu")
        found: dict[str, Any] = {
            "seed": seed,
            "signature": run.config.model.signature,
            "alone": {"validation": _ranked(run, "valid"), "test": _ranked(run, "test")},
            "hops": {},
        }
        kept = {}
        for hops in (1, 2, 3):
            walks = Walks(graph.train, len(graph.entities), len(graph.relations), hops).a_query
            if walks > MOST_WALKS:
                break
            began = time.monotonic()
            gathered = run.gather_evidence(hops, store=False)
            kept[hops] = gathered.evidence
            found["hops"][hops] = {
                "seconds": round(time.monotonic() - began, 1),
                "walks": walks,
                "scale": gathered.evidence.scale,
                "validation": _ranked(run, "valid"),
            }
        best = max(kept, key=lambda hops: found["hops"][hops]["validation"]["mrr"])
        run.model.evidence = kept[best]
        return found | {"best": best, "test": _ranked(run, "test")}


def _ranked(run: golde.Run, split: str) -> dict[str, float]:
    found = run.evaluate(split, baselines=False, bootstrap=0, store=False)
    return {name: found.metrics["both"][name] for name in ("mrr", "hits@1", "hits@10", "mr")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(DATASETS))
    parser.add_argument("--data-dir")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in options.names}
    for name in options.names:
        for seed in options.seeds:
            one = measure(name, options.data_dir, seed)
            results[name].append(one)
            before, after = one["alone"]["test"]["mrr"], one["test"]["mrr"]
            print(
                f"{name}, seed {seed}: test MRR {before:.4f}, {after:.4f} with evidence", flush=True
            )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    report = {**provenance(["torch", "numpy"]), "results": results}
    options.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
