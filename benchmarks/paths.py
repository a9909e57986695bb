"""How good are answers several hops away, by composed maps and by beam?

    python benchmarks/paths.py umls world --data-dir FOLDER --out results/paths.json

Results of other sets that the file has are kept.

A query is an entity and two or three hops in either direction, sampled so that its answer takes an edge
of the test split: no path of training facts leads there. The other hops are any facts. A hop never undoes
the one before it. The answer is ranked among all entities but the other ends that facts of any split
lead to (realistic rank on ties). Rivals: how often each entity answers the last hop in train, and chance.

Probabilities are those of the paths that such queries have most often, fitted on validation facts, and judged
on ends that take a test fact, against ends of the right kind that no facts lead to. Rivals: one half whatever
the score, and the product of the calibrated probabilities of the hops of a beam's best path.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import replaced
from torch import Tensor

import golde
from golde import Config, KnowledgeGraph
from golde.benchmark.provenance import provenance
from golde.evaluation.baselines import Popularity
from golde.evaluation.calibration import Array, Labels, balanced
from golde.evaluation.metrics import summarise
from golde.evaluation.reliability import reliability
from golde.inference.path_probability import held_out_paths, path_curve, wrong_ends
from golde.inference.paths import beam_scores, composed_scores, reached
from golde.models import Model
from golde.runs.atomic import write_json
from golde.runs.environment import environment

DATASETS = ("umls", "codex-s", "world")
QUERIES_AT_ONCE = 16
ENDS = 50
"""Ends of a path by test facts that probabilities are judged on at the most."""
WIDTH = 16
"""Of the beam whose probabilities are judged."""


def sample(graph: KnowledgeGraph, hops: int, count: int, seed: int) -> Tensor:
    """Queries as rows of (start, direction of each hop, answer), (n, hops + 2)."""
    relations, generator = len(graph.relations), torch.Generator().manual_seed(seed)

    def draw(below: int) -> int:
        return int(torch.randint(below, (), generator=generator))

    facts = torch.cat((graph.train, graph.valid, graph.test))
    head, relation, tail = facts.unbind(1)
    asked = torch.stack(
        (
            torch.cat((head, tail)),
            torch.cat((relation, relation + relations)),
            torch.cat((tail, head)),
        )
    ).T  # (2n, 3)
    asked = asked[asked[:, 0].argsort(stable=True)]
    start = torch.searchsorted(asked[:, 0].contiguous(), torch.arange(len(graph.entities) + 1))

    def back(direction: int) -> int:
        return (direction + relations) % (2 * relations)

    def step(entity: int, undoing: int) -> tuple[int, int] | None:
        """A random fact about an entity, other than one in the direction ``undoing``."""
        first, last = int(start[entity]), int(start[entity + 1])
        for _ in range(10 if last > first else 0):
            _, direction, answer = asked[first + draw(last - first)].tolist()
            if direction != undoing:
                return direction, answer
        return None

    found: list[list[int]] = []
    for _ in range(50 * count):
        if len(found) == count:
            break
        h, r, t = graph.test[draw(len(graph.test))].tolist()
        near, path, far = (h, [r], t) if draw(2) else (t, [r + relations], h)
        before = draw(hops)
        while len(path) < hops:
            first = before > 0
            more = step(near, path[0]) if first else step(far, back(path[-1]))
            if more is None:
                break
            direction, other = more
            if first:
                near, path, before = other, [back(direction), *path], before - 1
            else:
                far, path = other, [*path, direction]
        if len(path) == hops and far not in reached(graph, near, path, "train"):
            found.append([near, *path, far])
    return torch.tensor(found)


def ranked(score: Callable[[Tensor], Tensor], graph: KnowledgeGraph, queries: Tensor) -> Any:
    """Filtered figures of the answers under ``score(queries) -> (B, E)``."""
    ranks, candidates = [], []
    for part in queries.split(QUERIES_AT_ONCE):
        scores = score(part).double()
        for row, query in zip(scores, part.tolist(), strict=True):
            start, *path, answer = query
            true = row[answer].clone()
            others = reached(graph, start, path)
            row[others] = -torch.inf
            ranks.append(1 + (row > true).sum() + (row == true).sum() / 2.0)
            candidates.append(len(row) - len(others) + 1)
    return summarise(torch.stack(ranks), torch.tensor(candidates)) | {
        "chance_mrr": sum(_harmonic(n) / n for n in candidates) / len(candidates)
    }


def _harmonic(n: int) -> float:
    return sum(1 / rank for rank in range(1, n + 1))


@torch.no_grad()
def measure(
    graph: KnowledgeGraph, model: Model, hops: int, count: int, beams: list[int], seed: int
) -> dict[str, Any]:
    """Every way to answer on the same queries."""
    queries = sample(graph, hops, count, seed)
    popularity = Popularity(graph)
    ways: dict[str, Callable[[Tensor], Tensor]] = {
        "composed maps": lambda q: composed_scores(model, q[:, 0], q[:, 1:-1]),
        **{
            f"beam of {width}": (
                lambda q, width=width: beam_scores(model, q[:, 0], q[:, 1:-1], width)[0]
            )
            for width in beams
        },
        "frequency in the last hop": lambda q: popularity(
            q[:, 0], q[:, -2], 0, len(graph.entities)
        ),
    }
    found = {}
    for name, way in ways.items():
        began = time.monotonic()
        figures = ranked(way, graph, queries)
        found[name] = {"seconds": round(time.monotonic() - began, 2), "figures": figures}
    return {"queries": len(queries), "results": found}


@torch.no_grad()
def chances(run: golde.Run, queries: Tensor, paths: int, seed: int) -> dict[str, Any]:
    """How reliable probabilities of the most common paths of some queries are, by every way."""
    graph, model, calibration = run.graph, run.model, run.calibrated()
    generator = torch.Generator().manual_seed(seed)
    said: dict[str, list[Array]] = {}
    labels: list[Labels] = []
    for path, _ in Counter(map(tuple, queries[:, 1:-1].tolist())).most_common(paths):
        right, _ = held_out_paths(graph, path, ENDS, generator, "test")
        wrong, whose = wrong_ends(graph, path, right[:, 0], generator)
        composed = path_curve(model, graph, path, None, calibration.method)
        if composed is None or not len(wrong):
            continue
        by_beam = path_curve(model, graph, path, WIDTH, calibration.method)
        assert by_beam is not None  # the same ends
        asked = right[:, 0], torch.tensor([path]).expand(len(right), -1)
        row = torch.cat((torch.arange(len(right)), whose))
        end = torch.cat((right[:, 1], wrong))
        scores, via = beam_scores(model, *asked, WIDTH)
        ways = {
            "composed maps": composed(_at(composed_scores(model, *asked), row, end)),
            f"beam of {WIDTH}": by_beam(_at(scores, row, end)),
            "product of hops": _product(run, asked[0][row], path, via[row, end], end),
            "one half": np.full(len(end), 0.5),
        }
        for way, probability in ways.items():
            said.setdefault(way, []).append(probability)
        labels.append(np.arange(len(end)) < len(right))
    if not labels:
        return {"asked": paths, "paths": 0}
    all_labels = np.concatenate(labels)
    weights = balanced(all_labels, np.repeat(np.arange(len(labels)), list(map(len, labels))))
    return {
        "asked": paths,
        "paths": len(labels),
        "right_ends": int(all_labels.sum()),
        "wrong_ends": int((~all_labels).sum()),
        "results": {
            way: reliability(np.concatenate(parts), all_labels, weights).as_dict()
            for way, parts in said.items()
        },
    }


def _at(scores: Tensor, row: Tensor, end: Tensor) -> Array:
    found: Array = scores[row, end].double().numpy()
    return found


def _product(
    run: golde.Run, start: Tensor, path: tuple[int, ...], via: Tensor, end: Tensor
) -> Array:
    """The product of the calibrated probabilities of the hops from start by way of others to the end."""
    relations, found = len(run.graph.relations), np.ones(len(start))
    places = (start, *via.unbind(1), end)
    for direction, here, there in zip(path, places[:-1], places[1:], strict=True):
        scores = run.model.score_pairs(here, torch.full_like(here, direction), there)
        relation = np.full(len(found), direction % relations)
        found *= run.calibrated().probabilities(
            scores.double().numpy(), relation, backward=direction >= relations
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(DATASETS))
    parser.add_argument("--data-dir")
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--beams", type=int, nargs="*", default=[1, 4, 16, 64])
    parser.add_argument("--paths", type=int, default=20, help="that probabilities are fitted to")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], help="a setting, as in golde train")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    results = []
    for name in options.names:
        graph = golde.load_graph(name, data_dir=options.data_dir)
        config = Config.load(overrides=[f"training.seed={options.seed}", *options.set])
        with tempfile.TemporaryDirectory() as folder:
            run = golde.train(graph, Path(folder, "run"), config, device="cpu")
            one_hop = run.evaluate("test", baselines=False, bootstrap=0, store=False).mrr
            run.calibrate(prior=0.5, store=False)
        graph, model = run.graph, run.model
        where = provenance(["torch", "numpy"]) | {"environment": environment("cpu")}
        for hops in (2, 3):
            found = measure(graph, model, hops, options.queries, options.beams, options.seed)
            common = sample(graph, hops, 4 * options.queries, options.seed + 1)
            found["probabilities"] = chances(run, common, options.paths, options.seed)
            results.append(
                {
                    "set": name,
                    "hops": hops,
                    "one_hop_test_mrr": one_hop,
                    "seed": options.seed,
                    **found,
                    "settings": run.config.model_dump(exclude_none=True),
                    **where,
                }
            )
            for way, one in found["results"].items():
                figures = one["figures"]
                shown = f"MRR {figures['mrr']:.3f}, H@10 {figures['hits@10']:.3f}"
                print(f"{name}, {hops} hops, {way}: {shown} ({one['seconds']} s)", flush=True)
            for way, one in found["probabilities"].get("results", {}).items():
                shown = f"ECE {one['ece']:.3f}, Brier {one['brier']:.3f}"
                print(f"{name}, {hops} hops, probabilities by {way}: {shown}", flush=True)
        report = {
            "question": __doc__.splitlines()[0],
            "protocol": "answers need a test edge; filtered by ends that any facts lead to; realistic ties",
            "results": replaced(options.out, results, "set", "hops"),
        }
        options.out.parent.mkdir(parents=True, exist_ok=True)
        write_json(options.out, report)


if __name__ == "__main__":
    main()
