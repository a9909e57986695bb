"""Explanations of facts: what is shown is in the graph, adds up, and names the planted reason."""

from __future__ import annotations

import json
import math

import pytest
import torch
from learned import planted

from golde.analysis.explain import Explanation, explain
from golde.config import ModelConfig
from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError
from golde.models import GoldE, build

GRAPH = KnowledgeGraph.from_triples(
    [("a", "r", "b"), ("b", "r", "a"), ("c", "r", "c"), ("b", "s", "c")],
    test=[("a", "s", "d")],
)


def held_out(relation: str) -> Explanation:
    """The first held-out fact of a relation, explained."""
    run = planted()
    wanted = run.graph.relations.id(relation)
    facts = torch.cat((run.graph.test, run.graph.valid)).tolist()
    h, r, t = next(fact for fact in facts if fact[1] == wanted)
    names = run.graph.entities[h], run.graph.relations[r], run.graph.entities[t]
    return explain(run.model, run.graph, *names)


@pytest.mark.parametrize(
    ("relation", "kind", "body"),
    [
        ("beside 0", "symmetric", ["beside 0"]),
        ("out 1", "inverse", ["back 1"]),
        ("before 1", "implication", ["ahead of 1"]),
        ("both 0", "composition", ["first 0", "second 0"]),
    ],
)
def test_a_held_out_fact_is_explained_by_the_planted_rule(
    relation: str, kind: str, body: list[str]
) -> None:
    found = held_out(relation)
    head, _, tail = found.fact
    (rule,) = [rule for rule in found.rules if rule.holds]
    assert rule.kind == kind
    assert [fact[1] for fact in rule.because] == body
    start, end = (tail, head) if kind in ("symmetric", "inverse") else (head, tail)
    assert (rule.because[0][0], rule.because[-1][2]) == (start, end)
    assert found.known in ("test", "valid")
    assert found.tail_rank == 1


def test_components_and_geometries_add_up_to_the_score() -> None:
    found = held_out("beside 1")
    assert [one.space for one in found.geometries] == ["P4x2 elliptic", "Q5x2 hyperbolic"]
    assert {one.space for one in found.components} == {"P4 #1", "P4 #2", "Q5 #1", "Q5 #2"}
    for parts in (found.geometries, found.components):
        assert sum(one.distance for one in parts) == pytest.approx(-found.score, rel=1e-4)
    favours = [one.favour for one in found.components]
    assert favours == sorted(favours, reverse=True)
    assert min(favours) > 0  # a fact that ranks first is nearer than the middle everywhere


def test_facts_shown_are_training_facts_and_never_the_one_explained() -> None:
    run = planted()
    h, r, t = run.graph.train[0].tolist()
    entities, relations = run.graph.entities, run.graph.relations
    fact = entities[h], relations[r], entities[t]
    found = explain(run.model, run.graph, *fact, top=3)
    train = {(entities[a], relations[b], entities[c]) for a, b, c in run.graph.train.tolist()}
    assert found.known == "train"
    for near in (found.supporting, found.about_head, found.about_tail):
        assert {one.fact for one in near} <= train - {fact}
        distances = [one.distance for one in near]
        assert distances == sorted(distances)
    assert len(found.supporting) == 3
    assert {one.fact[1] for one in found.supporting} == {fact[1]}
    assert all(fact[0] in one.fact for one in found.about_head)
    count = sum(fact[2] in (a, c) for a, _, c in train)
    assert found.about_tail_count == count


@pytest.mark.parametrize("relation", ["beside 0", "out 1", "both 0"])
def test_no_training_fact_is_listed_twice(relation: str) -> None:
    found = held_out(relation)
    listed = [
        one.fact for near in (found.supporting, found.about_head, found.about_tail) for one in near
    ]
    assert len(listed) == len(set(listed)) > 5


def test_the_nearest_supporting_fact_is_about_the_nearest_entities() -> None:
    """Entities on a line: of the facts of r, the one whose head and tail move least in sum."""
    names = "abcdef"
    graph = KnowledgeGraph.from_triples(
        [("a", "r", "f"), ("b", "r", "e"), ("c", "r", "d"), *((n, "is", n) for n in names)]
    )
    model = GoldE(ModelConfig(signature="E2"), len(names), 2)
    with torch.no_grad():
        for name in names:
            model.entity[graph.entities.id(name)] = torch.tensor([float(ord(name)), 0.0])
    found = explain(model, graph, "a", "r", "d")
    assert [(one.fact[0], one.distance) for one in found.supporting] == [
        ("a", 2.0),
        ("b", 2.0),
        ("c", 2.0),
    ]
    found = explain(model, graph, "a", "r", "e")
    assert [one.distance for one in found.supporting] == [1.0, 1.0, 3.0]


@pytest.mark.parametrize("kind", ["golde", "transe", "distmult", "complex"])
@pytest.mark.parametrize(
    "fact", [("a", "s", "d"), ("c", "r", "c"), ("a", "r", "a"), ("d", "r", "d")]
)
def test_every_fact_of_every_kind_of_model_has_an_explanation(
    kind: str, fact: tuple[str, str, str]
) -> None:
    """Loops, biases, entities and relations with hardly a fact: it adds up all the same."""
    sizes = {"signature": "P2 Q3"} if kind == "golde" else {"numbers": 4}
    config = ModelConfig(kind=kind, bias=True, loop_bias=True, **sizes)
    model = build(config, len(GRAPH.entities), len(GRAPH.relations))
    for bias in (model.query_bias, model.loop_bias):
        torch.nn.init.normal_(bias, generator=torch.Generator().manual_seed(0))
    found = explain(model, GRAPH, *fact)
    assert bool(found.geometries) == (kind in ("golde", "transe"))
    assert sum(one.distance for one in found.geometries) == pytest.approx(
        -found.score if found.geometries else 0, rel=1e-4
    )
    assert "NaN" not in json.dumps(found.as_dict())


def test_a_diverged_model_is_named() -> None:
    model = GoldE(ModelConfig(signature="E2"), len(GRAPH.entities), len(GRAPH.relations))
    with torch.no_grad():
        model.entity.fill_(math.nan)
    with pytest.raises(GoldeError, match=r"score of \(a, r, b\) is nan; the model has diverged"):
        explain(model, GRAPH, "a", "r", "b")
