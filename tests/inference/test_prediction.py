"""Predictions against brute force over the model's scores, ties, known facts and every wrong wish."""

from __future__ import annotations

import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_graph import known_split

from golde.errors import GoldeError
from golde.inference import Prediction, Query, Run
from golde.inference.search import merge, top_k

QUERIES = [
    Query("p0", "next"),
    Query("p5", "twin"),
    Query(relation="next", tail="p3"),
    Query(relation="knows", tail="q3"),
    Query("q0", None, "q3"),
    Query("p0", None, "p1"),
    Query("q1", "knows"),
]


def brute_force(run: Run, query: Query) -> list[Prediction]:
    """Every possible answer with its score and split, sorted in plain Python."""
    graph, model = run.graph, run.model
    entities, relations = graph.entities, graph.relations
    with torch.no_grad():
        if query.relation is None:
            facts = [(query.head, name, query.tail) for name in relations]
            scores = [
                model.score_triples(
                    torch.tensor([[entities.id(h), relations.id(r), entities.id(t)]])
                )
                for h, r, t in facts
            ]
        else:
            given = query.tail if query.head is None else query.head
            direction = relations.id(query.relation) + (query.head is None) * len(relations)
            scores = [
                model.score_pairs(*torch.tensor([[entities.id(given)], [direction], [answer]]))
                for answer in range(len(entities))
            ]
            facts = [query.answered(name) for name in entities]
    found = [
        Prediction(*fact, score.item(), known_split(fact))
        for fact, score in zip(facts, scores, strict=True)
    ]
    return sorted(found, key=lambda prediction: -prediction.score)  # stable: the lower id first


def assert_same(found: list[Prediction], expected: list[Prediction]) -> None:
    assert [(p.fact, p.known) for p in found] == [(p.fact, p.known) for p in expected]
    assert [p.score for p in found] == pytest.approx([p.score for p in expected], rel=1e-4)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("which", ["run", "paper_run"])
def test_answers_are_those_of_brute_force(which: str, request: pytest.FixtureRequest) -> None:
    """All answers, the query's own entity among them, and the first few; in one go and one by one."""
    run: Run = request.getfixturevalue(which)
    for top in (4, 1000):
        together = run.predict_many(QUERIES, top=top)
        for query, found in zip(QUERIES, together, strict=True):
            assert_same(found, brute_force(run, query)[:top])
            assert_same(run.predict(query.head, query.relation, query.tail, top=top), found)


@pytest.mark.usefixtures("at_once")
def test_known_facts_are_marked_kept_or_dropped(run: Run) -> None:
    for query in QUERIES:
        everything = brute_force(run, query)
        words = (query.head, query.relation, query.tail)
        kept = run.predict(*words, top=99, known="keep")
        assert [p.fact for p in kept] == [p.fact for p in everything]
        assert {p.known for p in kept} == {None}
        dropped = run.predict(*words, top=3, known="drop")
        assert_same(dropped, [p for p in everything if p.known is None][:3])


def test_a_fact_of_several_splits_is_marked_with_the_first(run: Run) -> None:
    splits = {p.tail: p.known for p in run.predict("p0", "next", top=99)}
    assert splits["p1"] == "train"  # in test too
    assert {p.head: p.known for p in run.predict(None, "twin", "q5", top=99)}["p5"] == "valid"


@pytest.mark.usefixtures("at_once")
def test_only_candidates_are_answers(run: Run) -> None:
    names = ["q6", "p1", "q0", "p1"]
    expected = [p for p in brute_force(run, Query("p0", "next")) if p.tail in names]
    assert_same(run.predict("p0", "next", candidates=names), expected)
    assert run.predict("p0", "next", candidates=["p1"], known="drop") == []
    (only,) = run.predict("q0", None, "q3", candidates=["twin"])
    assert only.relation == "twin"
    with pytest.raises(GoldeError, match="unknown relation 'p1'"):
        run.predict("q0", None, "q3", candidates=["p1"])


def test_head_queries_of_the_paper_give_forward_scores(paper_run: Run, run: Run) -> None:
    for which, same in ((paper_run, True), (run, False)):
        found = which.predict(None, "twin", "q2", top=99)
        forward = which.score([p.fact for p in found])
        assert ([p.score for p in found] == pytest.approx(forward, rel=1e-6)) is same


@pytest.mark.usefixtures("at_once")
def test_of_equal_scores_the_lower_id_comes_first(tied: Run) -> None:
    assert [p.tail for p in tied.predict("q0", "twin", top=5)] == list(tied.graph.entities[:5])
    dropped = tied.predict("p0", "next", top=3, known="drop")  # p1, the second entity, is known
    assert [p.tail for p in dropped] == ["p0", *tied.graph.entities[2:4]]
    assert [p.relation for p in tied.predict("p0", None, "q0", top=2)] == ["next", "twin"]


@given(st.lists(st.lists(st.integers(0, 3), min_size=6, max_size=6), min_size=1), st.integers(1, 8))
def test_top_k_takes_the_first_of_equal_scores(rows: list[list[int]], k: int) -> None:
    scores = torch.tensor(rows, dtype=torch.float32)
    expected = [sorted(range(6), key=lambda i, row=row: -row[i])[:k] for row in rows]
    values, columns = top_k(scores, k)
    assert columns.tolist() == expected
    left, right = top_k(scores[:, :2], k), top_k(scores[:, 2:], k)
    merged = merge(left, (right[0], right[1] + 2), k)
    assert merged[1].tolist() == expected
    assert torch.equal(merged[0], values)
    assert torch.equal(values, scores.gather(1, columns))


def test_scores_of_facts_by_name(run: Run) -> None:
    facts = [("p0", "next", "p1"), ("q3", "knows", "p0"), ("p0", "next", "p1")]
    entities, relations = run.graph.entities, run.graph.relations
    ids = torch.tensor([[entities.id(h), relations.id(r), entities.id(t)] for h, r, t in facts])
    with torch.no_grad():
        assert run.score(facts) == pytest.approx(run.model.score_triples(ids).tolist())
    assert run.score([]) == []
    assert run.predict_many([]) == []


@pytest.mark.parametrize(
    ("words", "wishes", "message"),
    [
        ({"head": "p0"}, {}, "the query (p0, ?, ?) leaves 2 names out; leave out exactly one"),
        ({"head": "p0", "relation": "next", "tail": "p1"}, {}, "(p0, next, p1) leaves nothing to"),
        ({"head": "p00", "relation": "next"}, {}, "unknown entity 'p00'; did you mean 'p0'"),
        ({"relation": "nexte", "tail": "p0"}, {}, "unknown relation 'nexte'; did you mean 'next'?"),
        ({"head": "p0", "relation": "next"}, {"candidates": ["p11"]}, "unknown entity 'p11'"),
        ({"head": "p0", "relation": "next"}, {"candidates": []}, "list of candidates is empty"),
        ({"head": "p0", "relation": "next"}, {"known": "hide"}, "known is 'hide'; it must be one"),
        ({"head": "p0", "relation": "next"}, {"top": 0}, "top is 0; ask for at least 1"),
    ],
)
def test_wrong_wishes_are_named(
    run: Run, words: dict[str, str], wishes: dict[str, object], message: str
) -> None:
    with pytest.raises(GoldeError, match=re.escape(message)):
        run.predict(**words, **wishes)  # type: ignore[arg-type]


def test_wrong_facts_are_named(run: Run) -> None:
    with pytest.raises(GoldeError, match=re.escape("triples[1] is ('p0', 'next'); a fact is")):
        run.score([("p0", "next", "p1"), ("p0", "next")])  # type: ignore[list-item]
    with pytest.raises(GoldeError, match="unknown entity 'r1'"):
        run.score([("p0", "next", "r1")])


def test_a_model_without_numbers_gives_no_answers(diverged: Run) -> None:
    message = r"the score of \(p0, next, p0\) is nan; the model has diverged"
    with pytest.raises(GoldeError, match=message):
        diverged.predict("p0", "next")
    with pytest.raises(GoldeError, match=message):
        diverged.predict("p0", None, "p0")
    with pytest.raises(GoldeError, match=message):
        diverged.complete(5, heads="known")
