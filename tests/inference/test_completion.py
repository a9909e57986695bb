"""Completion against brute force: every head of a relation with every tail."""

from __future__ import annotations

import pytest
from tiny_graph import TRAIN, known_split

from golde.errors import GoldeError
from golde.inference import Prediction, Run


def brute_force(run: Run, relations: tuple[str, ...]) -> list[Prediction]:
    facts = [
        (head, relation, tail)
        for relation in relations
        for head in run.graph.entities
        if any(fact[:2] == (head, relation) for fact in TRAIN)
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
@pytest.mark.parametrize("top", [1, 9, 10_000])
def test_the_best_of_the_whole_graph(run: Run, top: int) -> None:
    everything = brute_force(run, run.graph.relations.names)
    assert ("q3", "knows", "q3") in [p.fact for p in everything]  # a loop where loops exist
    assert_same(run.complete(top), everything[:top])


@pytest.mark.usefixtures("at_once")
def test_the_best_of_each_relation(run: Run) -> None:
    expected = [p for name in ("next", "twin", "knows") for p in brute_force(run, (name,))[:4]]
    assert_same(run.complete(4, per_relation=True), expected)
    chosen = ["knows", "next", "knows"]
    assert_same(run.complete(4, per_relation=True, relations=chosen), expected[:4] + expected[8:])
    assert_same(run.complete(4, relations=["twin"]), expected[4:8])


@pytest.mark.usefixtures("at_once")
def test_equal_scores_come_in_order_of_relation_head_and_tail(tied: Run) -> None:
    assert_same(tied.complete(30), brute_force(tied, tied.graph.relations.names)[:30])


def test_progress_counts_queries(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("golde.inference.search.SCORES_AT_ONCE", 28)
    seen: list[tuple[int, int]] = []
    run.complete(3, progress=lambda done, total: seen.append((done, total)))
    queries = len({fact[:2] for fact in TRAIN})
    assert seen[-1] == (queries, queries)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


def test_no_relations_have_nothing_missing(run: Run) -> None:
    assert run.complete(5, relations=[]) == []


def test_wrong_wishes_are_named(run: Run) -> None:
    with pytest.raises(GoldeError, match="unknown relation 'twins'; did you mean 'twin'"):
        run.complete(3, relations=["twins"])
    with pytest.raises(GoldeError, match="top is 0"):
        run.complete(0)
