r"""How far can the probabilities of the answers that are shown be trusted?

    python benchmarks/shown_answers.py world umls codex-s --data-dir FOLDER --out results/shown_answers.json \
        --set training.steps=1000 --set 'model.signature="P8x8 Q9x8"'

A run is trained on each set and calibrated on its validation facts: on single claims with even chances, facts
against typed negatives (`golde calibrate --prior 0.5`), and on the answers that are shown to their questions
(`golde calibrate`). Test facts are neither right nor wrong there. Once more they are wrong, as if nobody knew
them: then the graph lacks as much as validation has. Each then judges what it was not fitted to:

- answers: the best 10 to the questions of test facts that train and validation do not hold, right if they are
  test facts, each counting the same;
- claims: the test facts against typed negatives, every relation balanced;
- missing: the best facts of `golde complete` that train and validation do not hold, and how many of them are
  test facts, beside those found by score;
- hard: where FOLDER/SET has test_negatives.tsv.xz, as CoDEx-S does, test facts against those, yes or no.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import golde
from golde import Config, KnowledgeGraph
from golde.benchmark.provenance import provenance
from golde.evaluation.calibration import METHODS, Array, Labels, balanced, sigmoid
from golde.evaluation.classification import classification
from golde.evaluation.negatives import typed_negatives
from golde.evaluation.reliability import reliability
from golde.inference.batch import read_triples
from golde.inference.calibrate import EVEN_CHANCES, calibrate
from golde.inference.calibration import Calibration
from golde.inference.complete import complete
from golde.inference.predict import score_triples
from golde.inference.shown import Answers, shown_answers
from golde.models import Model
from golde.runs.atomic import write_json
from golde.runs.environment import environment

DATASETS = ("world", "umls", "codex-s")
SHOWN = 10
BEST = (100, 1000)
LIKELY = 0.9
FITTED_TO = {"claims": EVEN_CHANCES, "answers": None, "answers, test facts wrong": None}
"""The prior of each way to calibrate."""


def judged(probability: Array, labels: Labels, weights: Array) -> dict[str, Any]:
    """Figures of probabilities, what they say in the mean, and how much of what they call likely is true."""
    likely = probability >= LIKELY
    return {
        **reliability(probability, labels, weights).as_dict(),
        "said": float(np.average(probability, weights=weights)),
        "true": float(np.average(labels, weights=weights)),
        "likely": int(likely.sum()),
        "likely_true": int((likely & labels).sum()),
    }


def of_answers(calibration: Calibration, found: Answers) -> Array:
    """The probability of every answer, by the curve of the direction in which it was asked."""
    count = len(calibration.relations)
    direction, scores = found.direction.numpy(), found.score.numpy()
    probability = np.empty_like(scores)
    for backward in (False, True):
        at = (direction >= count) == backward
        probability[at] = calibration.probabilities(
            scores[at], direction[at] % count, backward=backward
        )
    return probability


def missing(
    model: Model, graph: KnowledgeGraph, sought: torch.Tensor, calibration: Calibration | None
) -> dict[str, Any]:
    """Facts sought among the best that the graph does not hold, and how many were said to be there."""
    found = complete(model, graph, max(BEST), calibration=calibration).facts
    entities, relations = graph.entities, graph.relations
    wanted = {(entities[h], relations[r], entities[t]) for h, r, t in sought.tolist()}
    hits = [one.fact in wanted for one in found]
    counts: dict[str, Any] = {"found": {str(k): sum(hits[:k]) for k in BEST}}
    if calibration is not None:
        said = [one.probability or 0.0 for one in found]
        counts["said"] = {str(k): sum(said[:k]) for k in BEST}
    return counts


def told_apart(
    model: Model, graph: KnowledgeGraph, negatives: torch.Tensor, calibration: Calibration
) -> dict[str, Any]:
    """Test facts from false claims (m, 3), by a probability of one half and by the thresholds."""
    claims = torch.cat([graph.test, negatives])
    labels, relation = np.arange(len(claims)) < len(graph.test), claims[:, 1].numpy()
    scores = score_triples(model, claims).double().numpy()
    taken = {
        "probability": calibration.probabilities(scores, relation) >= 0.5,
        "threshold": scores > calibration.forward.threshold(relation),
    }
    return {way: classification(yes, labels).as_dict() for way, yes in taken.items()}


def hard_negatives(data_dir: Path | None, name: str, graph: KnowledgeGraph) -> torch.Tensor | None:
    """False facts that come with the test split of a set, (m, 3), where there are any."""
    path = None if data_dir is None else data_dir / name / "test_negatives.tsv.xz"
    if path is None or not path.is_file():
        return None
    entities, relations = graph.entities, graph.relations
    facts = read_triples(path, graph)
    return torch.tensor([(entities.id(h), relations.id(r), entities.id(t)) for h, r, t in facts])


def measure(
    model: Model, graph: KnowledgeGraph, seed: int, hard: torch.Tensor | None = None
) -> dict[str, Any]:
    """Every calibration by both methods, on answers, claims, missing facts and hard negatives."""
    swapped = replace(graph, valid=graph.test, test=graph.valid)
    answers = shown_answers(model, swapped, graph.test, SHOWN)
    right, alike = answers.right.numpy(), np.ones(len(answers.right))
    negatives, _ = typed_negatives(graph, graph.test, SHOWN, seed)
    claims = torch.cat([graph.test, negatives])
    labels, relation = np.arange(len(claims)) < len(graph.test), claims[:, 1].numpy()
    weights = balanced(labels, relation)
    scores = score_triples(model, claims).double().numpy()
    unfitted = [sigmoid(one + model.margin) for one in (answers.score.numpy(), scores)]
    only_known = replace(graph, test=graph.test[:0])
    results = []
    for method in METHODS:
        for name, prior in FITTED_TO.items():
            known = only_known if "wrong" in name else graph
            fitted, _ = calibrate(model, known, method=method, prior=prior, seed=seed)
            results.append(
                {
                    "fitted_to": name,
                    "method": method,
                    "answers": judged(of_answers(fitted, answers), right, alike),
                    "claims": judged(fitted.probabilities(scores, relation), labels, weights),
                    "missing": missing(model, only_known, graph.test, fitted),
                    "hard": None if hard is None else told_apart(model, graph, hard, fitted),
                }
            )
    return {
        "answers": {"count": len(right), "right": int(right.sum())},
        "claims": {"facts": len(graph.test), "negatives": len(negatives)},
        "unfitted": {
            "answers": judged(unfitted[0], right, alike),
            "claims": judged(unfitted[1], labels, weights),
        },
        "missing_by_score": missing(model, only_known, graph.test, None),
        "calibrations": results,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(DATASETS))
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], help="a setting, as in golde train")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    results = {}
    for name in options.names:
        graph = golde.load_graph(name, data_dir=options.data_dir)
        config = Config.load(overrides=[f"training.seed={options.seed}", *options.set])
        with tempfile.TemporaryDirectory() as folder:
            run = golde.train(graph, Path(folder, "run"), config, device="cpu")
            mrr = run.evaluate("valid", baselines=False, bootstrap=0, store=False).mrr
        results[name] = {
            "facts": {split: len(run.graph.split(split)) for split in ("train", "valid", "test")},
            "validation_mrr": mrr,
            **measure(
                run.model,
                run.graph,
                options.seed,
                hard_negatives(options.data_dir, name, run.graph),
            ),
            "settings": run.config.model_dump(exclude_none=True),
        }
        for one in results[name]["calibrations"]:
            ece = ", ".join(f"{what} {one[what]['ece']:.3f}" for what in ("answers", "claims"))
            print(
                f"{name}, {one['method']}, fitted to {one['fitted_to']}: ECE of {ece}", flush=True
            )
    report = {
        **provenance(["torch", "numpy"]),
        "environment": environment("cpu"),
        "seed": options.seed,
        "shown": SHOWN,
        "likely": LIKELY,
        "results": results,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write_json(options.out, report)


if __name__ == "__main__":
    main()
