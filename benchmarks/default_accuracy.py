"""How good is a run with no option set, and how long does it take?

    python benchmarks/default_accuracy.py --data-dir FOLDER --out results/default_accuracy.json

Each set is trained by what `golde train NAME --out RUN` does, with every setting chosen from the
graph and the parameters chosen on validation, and its test split is then ranked once (filtered, both
sides, realistic rank on ties).
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

DATASETS = ("umls", "codex-s", "world")


def measure(name: str, data_dir: str | None, seed: int) -> dict[str, Any]:
    """Train with the defaults and evaluate on test."""
    graph = golde.load_graph(name, data_dir=data_dir)
    config = golde.Config.load(overrides=[f"training.seed={seed}"])
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        run = golde.train(graph, Path(folder, "run"), config, device="cpu")
        seconds = time.monotonic() - began
        found = run.evaluate("test").as_dict()
        about = run.folder.about()
        settings = run.config.model_dump(exclude_none=True)
    return {
        "seed": seed,
        "seconds": round(seconds, 1),
        "threads": about["environment"]["threads"],
        "validation_mrr": max((v["mrr"] for v in about["validation"]), default=None),
        "protocol": found["protocol"],
        "test": found["metrics"],
        "baselines": found["baselines"],
        "settings": settings,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(DATASETS))
    parser.add_argument("--data-dir")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    results = {}
    for name in options.names:
        results[name] = measure(name, options.data_dir, options.seed)
        both = results[name]["test"]["both"]
        print(f"{name}: test MRR {both['mrr']:.4f} in {results[name]['seconds']} s", flush=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    report = {**provenance(["torch", "numpy"]), "results": results}
    options.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
