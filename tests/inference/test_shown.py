"""Probabilities of answers as they are shown, fitted to scores whose true probabilities are known."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor

from golde.data.graph import KnowledgeGraph
from golde.data.vocabulary import Vocabulary
from golde.evaluation.calibration import Array, Platt, sigmoid
from golde.evaluation.reliability import reliability
from golde.inference.calibrate import calibrate
from golde.inference.shown import Answers, asked_facts, shown_answers
from golde.models import Model

ENTITIES, SLOPE, OFFSET = 300, 2.0, -5.0
"""Every pair has a score of N(0, 1) and is a fact with probability σ(SLOPE·score + OFFSET)."""


class Planted:
    """What calibrating asks of a model, with scores from a table; one relation."""

    device = torch.device("cpu")
    margin = 6.0
    entity = torch.empty(0)

    def __init__(self, scores: Tensor, reciprocal: bool = False) -> None:
        self.scores = scores  # (2, E, E): direction, entity, answer
        self.two_ways = reciprocal

    def scorer(self) -> Any:
        return lambda entity, direction, start, stop: self.scores[direction, entity, start:stop]

    def score_pairs(self, entity: Tensor, direction: Tensor, answer: Tensor) -> Tensor:
        return self.scores[direction, entity, answer]


def planted(seed: int = 0, backward: Tensor | None = None) -> tuple[Model, KnowledgeGraph]:
    """Facts drawn by their scores, and dealt out to the three splits at random."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(ENTITIES, ENTITIES, generator=generator)
    chance = torch.sigmoid(SLOPE * scores + OFFSET)
    head, tail = (torch.rand(scores.shape, generator=generator) < chance).nonzero().unbind(1)
    facts = torch.stack([head, torch.zeros_like(head), tail], 1)
    split = torch.randint(3, (len(facts),), generator=generator)
    names = Vocabulary([f"e{i}" for i in range(ENTITIES)], "entity")
    parts = (facts[split == i] for i in range(3))
    graph = KnowledgeGraph(names, Vocabulary(["r"], "relation"), *parts)
    other = scores.T if backward is None else backward
    model = Planted(torch.stack([scores, other]), reciprocal=backward is not None)
    return cast(Model, model), graph


def without_facts(graph: KnowledgeGraph) -> Tensor:
    """Scores (E, E) of tails and heads that put every validation fact last."""
    scores = torch.randn(ENTITIES, ENTITIES, generator=torch.Generator().manual_seed(9))
    head, _, tail = graph.valid.unbind(1)
    scores[head, tail] = -9.0
    return scores


def truth(scores: Array) -> Array:
    """Of what is in no other split a third as many are validation facts: the odds fall by log 3."""
    return sigmoid(SLOPE * scores + OFFSET - np.log(3))


def test_answers_are_the_best_that_train_and_test_do_not_hold() -> None:
    model, graph = planted()
    found = shown_answers(model, graph, graph.valid, 7)
    assert len(found.score) == 7 * len(
        torch.stack([found.entity, found.direction]).unique(dim=1)[0]
    )
    table = cast(Planted, model).scores
    elsewhere = {(h, t) for h, _, t in torch.cat([graph.train, graph.test]).tolist()}
    valid = {(h, t) for h, _, t in graph.valid.tolist()}
    asked = {(h, 0) for h, _ in valid} | {(t, 1) for _, t in valid}
    shown: dict[tuple[int, int], list[int]] = {}
    for entity, direction, answer, score, right in zip(*(c.tolist() for c in found), strict=True):
        fact = (answer, entity) if direction else (entity, answer)
        assert fact not in elsewhere
        assert right == (fact in valid)
        assert score == pytest.approx(float(table[direction, entity, answer]))
        shown.setdefault((entity, direction), []).append(answer)
    assert set(shown) == asked
    for (entity, direction), answers in list(shown.items())[:20]:
        order = table[direction, entity].argsort(descending=True).tolist()
        facts = [(a, entity) if direction else (entity, a) for a in order]
        assert answers == [a for a, f in zip(order, facts, strict=True) if f not in elsewhere][:7]


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_planted_probabilities_of_shown_answers_are_recovered(method: str) -> None:
    """Near misses included; as single claims with even chances the same answers look nearly certain."""
    model, graph = planted()
    fitted, judged = calibrate(model, graph, method=method)
    fresh, other = planted(seed=1)
    found = shown_answers(fresh, other, other.valid, 10)
    scores, right = found.score.numpy(), found.right.numpy()
    relation = np.zeros(len(scores), dtype=np.int64)
    said = fitted.probabilities(scores, relation)
    assert np.abs(said - truth(scores)).mean() < 0.03
    assert reliability(said, right, np.ones(len(said))).ece < 0.03
    assert judged.after.ece < 0.03
    claims, _ = calibrate(model, graph, method=method, prior=0.5)
    assert reliability(claims.probabilities(scores, relation), right, np.ones(len(said))).ece > 0.3


def test_the_planted_curve_is_that_of_the_fit() -> None:
    fitted, _ = calibrate(*planted())
    curve = fitted.forward.own[0]
    assert isinstance(curve, Platt)
    assert curve.slope == pytest.approx(SLOPE, rel=0.15)
    assert fitted.prior is None
    assert fitted.negatives["kind"] == "answers"


def test_thresholds_part_facts_from_negatives_whatever_curves_are_fitted_to() -> None:
    model, graph = planted()
    answers, claims = (calibrate(model, graph, prior=prior)[0].forward for prior in (None, 0.5))
    assert answers.thresholds == claims.thresholds
    assert answers.overall_threshold == claims.overall_threshold
    assert answers.own != claims.own


def test_a_direction_that_shows_no_fact_gives_none_a_chance() -> None:
    backward = without_facts(planted()[1]).T
    model, graph = planted(backward=backward)
    found = shown_answers(model, graph, graph.valid, 10)
    assert not found.right[found.direction == 1].any()
    fitted, _ = calibrate(model, graph)
    best, relation = backward.max().double().reshape(1).numpy(), np.zeros(1, dtype=np.int64)
    assert fitted.probabilities(best, relation, backward=True) < 0.01
    assert fitted.probabilities(best, relation) > 0.3


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_a_run_that_finds_nothing_says_so(method: str) -> None:
    _, graph = planted()
    scores = without_facts(graph)
    model = cast(Model, Planted(torch.stack([scores, scores.T])))
    fitted, judged = calibrate(model, graph, method=method)
    said = fitted.probabilities(scores.double().flatten().numpy(), np.zeros(scores.numel(), int))
    assert said.max() < 0.01
    assert judged.after.ece < 0.01
    assert judged.relations == {}


def test_a_large_graph_is_asked_for_some_of_its_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    _, graph = planted()
    assert torch.equal(asked_facts(graph), graph.valid)
    monkeypatch.setattr("golde.inference.shown.MOST_SCORES", 2 * ENTITIES * 40)
    monkeypatch.setattr("golde.inference.shown.FEWEST_ASKED", 30)
    some, again, other = (asked_facts(graph, seed) for seed in (0, 0, 1))
    assert len(some) == 40
    assert torch.equal(some, again)
    assert not torch.equal(some, other)
    monkeypatch.setattr("golde.inference.shown.FEWEST_ASKED", 50)
    assert len(asked_facts(graph)) == 50


def test_answers_do_not_depend_on_how_many_are_asked_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, graph = planted()
    seen: list[tuple[int, int]] = []

    def found() -> Answers:
        return shown_answers(
            model, graph, graph.valid, 5, lambda done, all_: seen.append((done, all_))
        )

    whole = found()
    monkeypatch.setattr("golde.inference.search.SCORES_AT_ONCE", 30 * ENTITIES)
    assert all(torch.equal(a, b) for a, b in zip(whole, found(), strict=True))
    assert len(seen) > 2
    assert seen[-1][0] == seen[-1][1]
