"""How good is a training of 45 seconds on a GPU, from the command to the parameters?

    python benchmarks/gpu_budget.py --out results/gpu_budget.json

`golde train wn18rr --config configs/wn18rr-45s.toml --out RUN` in a process of its own and with an empty
cache of compiled kernels, so that start-up, reading, compilation and validation are all in its time. The
test split is then ranked once by `golde evaluate RUN` (filtered, both sides, realistic rank on ties).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from golde.benchmark.provenance import provenance
from golde.runs.atomic import write_json
from golde.runs.folder import RunFolder

CONFIG = Path(__file__).parents[1] / "configs" / "wn18rr-45s.toml"
BUDGET = 45.0
"""Seconds."""


def golde(*arguments: str, cache: str) -> float:
    """Seconds that a command takes as a process of its own."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "golde", *arguments]
    subprocess.run(command, env={**os.environ, "TRITON_CACHE_DIR": cache}, check=True)
    return time.perf_counter() - began


def measure(graph: str, config: Path, seed: int, device: str) -> dict[str, Any]:
    """Train from a cold start, and rank the test split once."""
    with tempfile.TemporaryDirectory() as folder:
        run, cache = str(Path(folder, "run")), str(Path(folder, "cache"))
        given = ["--config", str(config), "--set", f"training.seed={seed}", "--device", device]
        seconds = golde("train", graph, "--out", run, *given, cache=cache)
        golde("evaluate", run, "--device", device, "--no-baselines", cache=cache)
        found = RunFolder(run)
        tested, about = found.metrics()["test"], found.about()
        return {
            "seed": seed,
            "seconds": round(seconds, 1),
            "validation": about["validation"],
            "test": tested["metrics"],
            "protocol": tested["protocol"],
            "settings": found.config().model_dump(exclude_none=True),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", default="wn18rr")
    parser.add_argument("--config", type=Path, default=CONFIG)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("gpu_budget.py: there is no GPU here; --device cpu tries it without")
    results = []
    for seed in options.seeds:
        results.append(measure(options.graph, options.config, seed, options.device))
        mrr, seconds = results[-1]["test"]["both"]["mrr"], results[-1]["seconds"]
        print(f"{options.graph}, seed {seed}: test MRR {mrr:.4f} in {seconds} s", flush=True)
    about = provenance(["torch", "triton"])
    if torch.cuda.is_available():
        about["machine"]["gpu"] = torch.cuda.get_device_name()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write_json(
        options.out, {**about, "graph": options.graph, "budget_s": BUDGET, "trainings": results}
    )


if __name__ == "__main__":
    main()
