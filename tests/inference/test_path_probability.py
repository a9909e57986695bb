"""Probabilities of paths: a planted curve comes back, and they hold on paths of test facts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from golde.api import train
from golde.config import Config
from golde.data.graph import SPLITS, KnowledgeGraph
from golde.data.synthetic import random_graph, symmetric
from golde.evaluation.calibration import balanced, with_prior
from golde.evaluation.reliability import reliability
from golde.inference import Run
from golde.inference.path_probability import NEGATIVES, held_out_paths, path_curve, wrong_ends
from golde.inference.paths import parse_path, reached


def plant(slope: float, offset: float, starts: int = 150, ends: int = 80) -> Any:
    """Ends that a path has by validation facts with chance σ(slope·score + offset), and the scores.

    The first hop is known of every start, and a bystander shows training each end of the second.
    """
    generator = torch.Generator().manual_seed(3)
    scores = torch.randn(starts, ends, generator=generator)
    truth = torch.rand(starts, ends, generator=generator) < (slope * scores + offset).sigmoid()
    known = [(f"s{i}", "first", f"m{i}") for i in range(starts)]
    known += [("bystander", "second", f"t{j}") for j in range(ends)]
    held_out = [(f"m{i}", "second", f"t{j}") for i, j in truth.nonzero().tolist()]
    graph = KnowledgeGraph.from_triples(known, held_out)
    table = torch.zeros(len(graph.entities), len(graph.entities))
    places = [
        graph.entities.ids([f"{kind}{i}" for i in range(n)])
        for kind, n in (("s", starts), ("t", ends))
    ]
    table[places[0].unsqueeze(1), places[1]] = scores
    return graph, table, float(truth.float().mean())


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_a_planted_curve_comes_back(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """Fitted with facts and negatives balanced, so that the planted rate is the prior that undoes it."""
    graph, table, rate = plant(slope=2.0, offset=-1.5)
    module = "golde.inference.path_probability"
    monkeypatch.setattr(f"{module}.MOST_PATHS", 1500)
    monkeypatch.setattr(f"{module}.composed_scores", lambda model, entity, _: table[entity])
    model: Any = SimpleNamespace(entity=table, entities=len(table), device=table.device)
    curve = path_curve(model, graph, parse_path("first,second", graph), None, method)
    assert curve is not None
    asked = np.linspace(-1.5, 1.5, 7)
    said, planted = with_prior(curve(asked), rate), 1 / (1 + np.exp(-(2 * asked - 1.5)))
    assert np.abs(said - planted).max() < 0.07


@pytest.mark.parametrize("split", ["valid", "test"])
@pytest.mark.parametrize("path", [[0, 1], [2, 0, 5], [4]])
def test_held_out_ends_need_a_fact_of_the_split(split: str, path: list[int]) -> None:
    graph = random_graph(80, 4, 400, held_out=0.4)
    generator = torch.Generator().manual_seed(0)
    pairs, facts = held_out_paths(graph, path, 30, generator, split)
    before = SPLITS[: SPLITS.index(split)]
    assert 10 < len({tuple(pair) for pair in pairs.tolist()}) == len(pairs) <= 30
    assert len(pairs) / len(path) <= facts <= len(pairs)
    for start, end in pairs.tolist():
        assert end in reached(graph, start, path, *before, split)
        assert end not in reached(graph, start, path, *before)
    wrong, whose = wrong_ends(graph, path, pairs[:, 0], generator)
    assert 0 < len(wrong) <= NEGATIVES * len(pairs)
    last = graph.train[graph.train[:, 1] == path[-1] % 4]
    kind = set(last[:, 0 if path[-1] >= 4 else 2].tolist())
    for end, row in zip(wrong.tolist(), whose.tolist(), strict=True):
        assert end in kind
        assert end not in reached(graph, int(pairs[row, 0]), path)


@pytest.fixture(scope="module")
def mirrors(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Cubes whose edges lead both ways, calibrated."""
    settings = {"steps": 500, "batch_size": 256, "log_every": 500, "validate_every": 500}
    config = Config().with_values(
        model={"signature": "E4x4", "reciprocal": False}, training=settings
    )
    out: Path = tmp_path_factory.mktemp("runs") / "mirrors"
    run = train(symmetric(copies=60, held_out=0.4), out, config, device="cpu")
    run.calibrate(store=False)
    return run


@pytest.mark.parametrize("beam", [None, 4])
def test_probabilities_hold_on_paths_of_test_facts(mirrors: Run, beam: int | None) -> None:
    """Nothing was fitted to them, and the odds of right and wrong ends are those that are said."""
    graph, path = mirrors.graph, "beside 0,beside 1"
    directions, generator = parse_path(path, graph), torch.Generator().manual_seed(1)
    right, _ = held_out_paths(graph, directions, 100, generator, "test")
    wrong, whose = wrong_ends(graph, directions, right[:, 0], generator)
    said = {}
    for start in right[:, 0].unique().tolist():
        found = mirrors.predict_path(
            path, head=graph.entities[start], beam=beam, top=len(graph.entities), known="keep"
        )
        chances = [one.probability or 0.0 for one in found]
        assert chances == sorted(chances, reverse=True)
        said |= {(start, graph.entities.id(one.answer)): one.probability for one in found}
    claims = torch.cat((right, torch.stack((right[whose, 0], wrong), 1)))
    labels = np.arange(len(claims)) < len(right)
    weights = balanced(labels, np.zeros(len(claims), dtype=np.int64))
    judged = reliability(np.array([said[a, b] for a, b in claims.tolist()]), labels, weights)
    assert judged.ece < 0.15
    assert judged.brier < 0.2  # 0.25 where one half is said of everything


def test_too_few_validation_facts_give_no_probability(mirrors: Run) -> None:
    graph = mirrors.graph
    few = KnowledgeGraph(graph.entities, graph.relations, graph.train, graph.valid[:9], graph.test)
    directions = parse_path("beside 0,beside 1", graph)
    assert path_curve(mirrors.model, few, directions, None, "platt") is None
    assert path_curve(mirrors.model, graph, directions, None, "platt") is not None
    lonely = KnowledgeGraph(
        graph.entities, graph.relations, graph.valid[:0], graph.valid, graph.test
    )
    assert (
        path_curve(mirrors.model, lonely, directions, None, "platt") is None
    )  # no end of the right kind


def test_a_path_that_is_not_calibrated_has_none(mirrors: Run) -> None:
    plain = Run(mirrors.folder)
    asked = {"head": plain.graph.entities[0], "top": 3}
    found = plain.predict_path("beside 0,beside 1", **asked)
    assert [one.probability for one in found] == [None] * 3
    told = mirrors.predict_path("beside 0,beside 1", **asked)
    assert [(one.answer, one.score) for one in told] == [(one.answer, one.score) for one in found]
