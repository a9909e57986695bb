"""How long does it take to add entities to a run on a million facts?

    python benchmarks/extend_million.py --out results/extend_million.json

The graph is random, and so is the model: one step of training makes it a run, since times do not depend on
what was learned. Each new entity has ten facts with random known entities. The time of `golde extend` is
that of all it does, from opening the run to the last file written; apart from it the closed-form start
and the local steps alone. CPU time is given too, as machines are shared; of two hops of `golde predict
--path` on the same run it is the only one.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import golde
from golde import Config
from golde.benchmark.provenance import provenance
from golde.data.synthetic import random_graph
from golde.runs.atomic import write_json
from golde.runs.environment import environment

FACTS_EACH = 10


def write_facts(path: Path, entities: int, relations: int, new: int) -> None:
    """Ten facts for every new entity, half of them as head."""
    rng = np.random.default_rng(1)
    lines = []
    for i in range(new):
        for j in range(FACTS_EACH):
            known, relation = f"e{rng.integers(entities)}", f"r{rng.integers(relations)}"
            ends = (f"new{i}", known) if j % 2 else (known, f"new{i}")
            lines.append(f"{ends[0]}\t{relation}\t{ends[1]}\n")
    path.write_text("".join(lines), encoding="utf-8")


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    graph = random_graph(options.entities, options.relations, options.facts, zipf=0.5, held_out=0.0)
    config = Config.load(overrides=["training.steps=1", "training.validate_every=0"])
    run = golde.train(graph, folder / "run", config, device="cpu")
    settings = run.config.model_dump(exclude_none=True)
    asked = {}
    for name, beam in (("composed maps", None), ("beam of 16", 16)):
        cpu = time.process_time()
        run.predict_path("r0,^r1", head="e0", beam=beam)
        asked[name] = round(time.process_time() - cpu, 2)
    del run
    results = []
    for new in options.new:
        facts = folder / f"{new}.tsv"
        write_facts(facts, options.entities, options.relations, new)
        for steps in (0, None):
            out = folder / f"{new}-{steps}"
            began, cpu = time.monotonic(), time.process_time()
            extended = golde.extend(folder / "run", facts, out, steps=steps, device="cpu")
            seconds, cpu = time.monotonic() - began, time.process_time() - cpu
            (record,) = extended.folder.about()["extensions"]
            results.append(
                {
                    "new_entities": new,
                    "new_facts": record["new_facts"],
                    "local_steps": record["steps"],
                    "seconds": round(seconds, 2),
                    "cpu_seconds": round(cpu, 2),
                    "start_and_steps_seconds": record["seconds"],
                }
            )
            print(results[-1], flush=True)
    return {
        "results": results,
        "two_hops_cpu_seconds": asked,
        "settings": settings,
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--facts", type=int, default=1_000_000)
    parser.add_argument("--entities", type=int, default=200_000)
    parser.add_argument("--relations", type=int, default=500)
    parser.add_argument("--new", type=int, nargs="*", default=[10, 100])
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    sizes = {key: getattr(options, key) for key in ("facts", "entities", "relations")}
    with tempfile.TemporaryDirectory() as folder:
        found = measure(options, Path(folder))
    report = {**provenance(["torch", "numpy"]), "environment": environment("cpu"), **sizes, **found}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write_json(options.out, report)


if __name__ == "__main__":
    main()
