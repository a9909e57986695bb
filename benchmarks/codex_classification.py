r"""How well do probabilities tell CoDEx-S's facts from its hard negatives?

    python benchmarks/codex_classification.py --data-dir FOLDER --out results/codex_classification.json \
        --plot docs/assets/reliability.png

A run with no option set, minutes on a CPU, is calibrated on its validation facts, with even chances as half
of the claims are true: against typed negatives drawn from the graph, and against the hard negatives that come
with the validation split. Each calibration then judges the test facts and the hard test negatives, none of
which it has seen. `relation alone` looks at no score: it takes a claim for true where its relation has more
validation facts than validation negatives.

FOLDER/codex-s holds {train,valid,test,valid_negatives,test_negatives}.tsv.xz.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import golde
from golde.benchmark.provenance import provenance
from golde.evaluation.calibration import METHODS
from golde.evaluation.classification import classification
from golde.evaluation.reliability import Reliability
from golde.inference.batch import read_triples
from golde.inference.calibration import Judged
from golde.report.reliability import draw_reliability

Facts = list[tuple[str, str, str]]

BUDGET = "default settings, one seed, minutes on a CPU; nothing was tuned for this task"


def relation_alone(facts: Facts, negatives: Facts, true: Facts, false: Facts) -> dict[str, float]:
    """What the relation of a claim gives away, by the validation facts and negatives."""
    more: Counter[str] = Counter(relation for _, relation, _ in facts)
    more.subtract(relation for _, relation, _ in negatives)
    taken = np.array([more[relation] > 0 for _, relation, _ in [*true, *false]])
    return classification(taken, np.arange(len(taken)) < len(true)).as_dict()


def measure(data_dir: Path, seed: int) -> dict[str, Any]:
    """Train, calibrate in every way, and classify."""
    graph = golde.load_graph("codex-s", data_dir=data_dir)
    config = golde.Config.load(overrides=[f"training.seed={seed}"])
    folder = data_dir / "codex-s"
    with tempfile.TemporaryDirectory() as place:
        began = time.monotonic()
        run = golde.train(graph, Path(place, "run"), config, device="cpu")
        seconds = time.monotonic() - began
        about = run.folder.about()
        valid, true, hard, false = (
            read_triples(folder / f"{name}.tsv.xz", run.graph)
            for name in ("valid", "test", "valid_negatives", "test_negatives")
        )
        calibrations = []
        for kind, negatives in (("typed", None), ("hard", hard)):
            for method in METHODS:
                judged = run.calibrate(method=method, negatives=negatives, prior=0.5)
                found = run.classify(true, false)
                calibrations.append(
                    {
                        "negatives": kind,
                        "method": method,
                        "fitted": dict(run.calibrated().negatives),
                        "judged": judged.as_dict(),
                        "test": {name: one.as_dict() for name, one in found.items()},
                    }
                )
        settings = run.config.model_dump(exclude_none=True)
    return {
        "budget": BUDGET,
        "seed": seed,
        "seconds": round(seconds, 1),
        "validation_mrr": max(v["mrr"] for v in about["validation"]),
        "test_claims": {"true": len(true), "false": len(false)},
        "relation_alone": relation_alone(valid, hard, true, false),
        "calibrations": calibrations,
        "settings": settings,
    }


def draw(result: dict[str, Any], path: Path) -> None:
    """The reliability of the first calibration: typed negatives, Platt."""
    judged = result["calibrations"][0]["judged"]
    before, after = (Reliability.from_dict(judged[when]) for when in ("before", "after"))
    draw_reliability(path, Judged(before, after, {}), title="codex-s: platt")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    result = measure(options.data_dir, options.seed)
    for one in result["calibrations"]:
        told = one["test"]["probability"]
        name = f"{one['negatives']} negatives, {one['method']}"
        print(f"{name}: accuracy {told['accuracy']:.3f}, F1 {told['f1']:.3f}", flush=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    report = {**provenance(["torch", "numpy"]), **result}
    options.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    if options.plot is not None:
        draw(report, options.plot)


if __name__ == "__main__":
    main()
