"""How long does `golde advise` take on a million facts, and in how much memory?

Three synthetic graphs of about a million facts: drawn at random with some entities far more frequent than
others, a tree with a ring of siblings in each family, and rings. Every measurement has a process of its
own, on one thread; memory is the growth of its peak over what it held with the graph in place, read from
Linux. The graphs take turns; figures are medians over the rounds.

    python benchmarks/advise_million.py --out results/advise_million.json
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from common import spread

from golde.benchmark.provenance import provenance

SEED, NUMBERS = 0, 256
GRAPHS: dict[str, dict[str, Any]] = {
    "random_graph": {
        "entities": 200_000,
        "relations": 500,
        "triples": 1_012_000,
        "zipf": 0.6,
    },
    "tree": {"depth": 18, "branching": 2, "closure": False, "held_out": 0.05},
    "cycles": {"copies": 84_000, "lengths": (3, 4, 5), "held_out": 0.02},
}
"""Functions of golde.data.synthetic with what they are called with."""


def peak() -> float:
    """The most memory this process has held, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


def measure(name: str) -> dict[str, Any]:
    """Advise on one graph in this process."""
    from golde.analysis.advise import advise
    from golde.data import synthetic

    graph = getattr(synthetic, name)(**GRAPHS[name], seed=SEED)
    Path("/proc/self/clear_refs").write_text("5")  # the peak of making the graph is forgotten
    before, start, cpu = peak(), time.perf_counter(), time.process_time()
    found = advise(graph, NUMBERS, seed=SEED)
    return {
        "figures": {
            "wall_s": time.perf_counter() - start,
            "cpu_s": time.process_time() - cpu,
            "peak_growth_mb": peak() - before,
            "peak_mb": peak(),
        },
        "facts": len(graph.train),
        "entities": len(graph.entities),
        "relations": len(graph.relations),
        "signature": str(found.signature),
        "shares": found.shares,
    }


def in_child(name: str) -> dict[str, Any]:
    """The same in a new process, with nothing left in memory by another."""
    code = (
        "import json, sys, advise_million\nprint(json.dumps(advise_million.measure(sys.argv[1])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, name],
        cwd=Path(__file__).parent,  # where -c finds this module
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in GRAPHS}
    for _ in range(options.repeats):
        for name in GRAPHS:
            one = in_child(name)
            print(f"{name:>14}  {one['figures']}", flush=True)
            rounds[name].append(one)
    report = {
        **provenance(["torch", "numpy"]),
        "settings": {
            "graphs": GRAPHS,
            "numbers": NUMBERS,
            "seed": SEED,
            "repeats": options.repeats,
            "threads": 1,
        },
        "results": {
            name: {key: value for key, value in each[0].items() if key != "figures"}
            | {key: spread(one["figures"][key] for one in each) for key in each[0]["figures"]}
            for name, each in rounds.items()
        },
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
