"""Completion against brute force: every head that is asked with every tail."""

from __future__ import annotations

from typing import Any

import pytest
from tiny_graph import TEST, TRAIN, VALID, known_split

from golde.errors import GoldeError
from golde.inference import Prediction, Run
from golde.inference.heads import RULES, Heads


def brute_force(run: Run, relations: tuple[str, ...], heads: str = "kind") -> list[Prediction]:
    asked = Heads(run.graph, heads)
    facts = [
        (head, relation, tail)
        for relation in relations
        for head in run.graph.entities[:]
        if run.graph.entities.id(head) in asked.of(run.graph.relations.id(relation))
        for tail in run.graph.entities
        if known_split((head, relation, tail)) is None and (head != tail or relation == "knows")
    ]
    scores = run.score(facts)
    found = [Prediction(*fact, score) for fact, score in zip(facts, scores, strict=True)]
    return sorted(found, key=lambda prediction: -prediction.score)


def assert_same(found: list[Prediction], expected: list[Prediction]) -> None:
    assert [p.fact for p in found] == [p.fact for p in expected]
    assert [p.score for p in found] == pytest.approx([p.score for p in expected], rel=1e-4)
    assert {p.known for p in found} == {None}


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("heads", RULES)
@pytest.mark.parametrize("top", [1, 9, 10_000])
def test_the_best_of_the_whole_graph(run: Run, top: int, heads: str) -> None:
    everything = brute_force(run, run.graph.relations.names, heads)
    assert ("q3", "knows", "q3") in [p.fact for p in everything]  # a loop where loops exist
    assert_same(run.complete(top, heads=heads), everything[:top])


@pytest.mark.usefixtures("at_once")
def test_the_best_of_each_relation(run: Run) -> None:
    names = ("next", "twin", "knows")
    expected = [p for name in names for p in brute_force(run, (name,), "known")[:4]]

    def found(**wishes: Any) -> list[Prediction]:
        return run.complete(4, heads="known", **wishes)

    assert_same(found(per_relation=True), expected)
    chosen = ["knows", "next", "knows"]
    assert_same(found(per_relation=True, relations=chosen), expected[:4] + expected[8:])
    assert_same(found(relations=["twin"]), expected[4:8])


@pytest.mark.usefixtures("at_once")
def test_equal_scores_come_in_order_of_relation_head_and_tail(tied: Run) -> None:
    expected = brute_force(tied, tied.graph.relations.names, "known")[:30]
    assert_same(tied.complete(30, heads="known"), expected)


def test_progress_counts_queries(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("golde.inference.search.SCORES_AT_ONCE", 28)
    seen: list[tuple[int, int]] = []
    run.complete(3, heads="known", progress=lambda done, total: seen.append((done, total)))
    queries = len({fact[:2] for fact in [*TRAIN, *VALID, *TEST]})
    assert seen[-1] == (queries, queries)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


def test_no_relations_have_nothing_missing(run: Run) -> None:
    assert run.complete(5, relations=[]) == []


def test_wrong_wishes_are_named(run: Run) -> None:
    with pytest.raises(GoldeError, match="unknown relation 'twins'; did you mean 'twin'"):
        run.complete(3, relations=["twins"])
    with pytest.raises(GoldeError, match="top is 0"):
        run.complete(0)
    with pytest.raises(GoldeError, match="top is None; give a number"):
        run.complete(None)
    with pytest.raises(GoldeError, match="heads is 'some'; it must be one of kind, known, all"):
        run.complete(3, heads="some")
    with pytest.raises(GoldeError, match="by is 'name'; it must be one of probability, score"):
        run.complete(3, by="name")
    with pytest.raises(GoldeError, match="is not calibrated"):
        run.complete(3, by="probability")
