"""Rules: those that were planted are found, by both judges, and no others."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from learned import planted

from golde.analysis import rules
from golde.analysis.components import component_terms
from golde.analysis.links import Links
from golde.analysis.rules import Rule, candidates, find_rules, involution_errors, judge, map_errors
from golde.config import ModelConfig
from golde.data import synthetic
from golde.data.graph import KnowledgeGraph
from golde.models import GoldE, build
from oracles import (
    block_one,
    boost_matrix,
    geodesic,
    random_isometry,
    randomised,
    seeded,
    set_rows,
    tangent_map,
)

PLANTED = {
    *(f"x beside {i} y ⇒ y beside {i} x" for i in range(2)),
    *(f"x before {i} y ⇒ x ahead of {i} y" for i in range(2)),
    *(f"x ahead of {i} y ⇒ x before {i} y" for i in range(2)),
    *(f"x out {i} y ⇒ y back {i} x" for i in range(3)),
    *(f"x back {i} y ⇒ y out {i} x" for i in range(3)),
    *(f"x first {i} y, y second {i} z ⇒ x both {i} z" for i in range(2)),
}


def test_the_planted_rules_are_found_and_no_others() -> None:
    run = planted()
    found = find_rules(run.model, Links(run.graph))
    assert {one.rule.words(run.graph.relations) for one in found} == PLANTED
    assert all(one.confidence >= 0.7 for one in found)
    assert all(one.error is not None and one.error < 0.4 for one in found)
    assert [one.confidence for one in found] == sorted((o.confidence for o in found), reverse=True)


def test_the_maps_alone_tell_planted_rules_from_others() -> None:
    """Every pair of relations as inverses, and every relation as its own: no fact is asked."""
    run = planted()
    names, links = run.graph.relations, Links(run.graph)
    pairs = product(range(len(names)), repeat=2)
    every = [Rule("symmetric" if a == b else "inverse", (a,), b) for a, b in pairs]
    for one in judge(run.model, links, every):
        assert one.error is not None
        if one.rule.words(names) in PLANTED:
            assert one.error < 0.4
        else:
            assert one.error > 0.5, one.rule.words(names)


def test_maps_that_have_learned_nothing_refuse_what_the_facts_say() -> None:
    run = planted()
    links = Links(run.graph)
    fresh = GoldE(run.config.model, len(run.graph.entities), len(run.graph.relations), seed=3)
    suggested = judge(fresh, links, candidates(links))
    assert max(one.confidence for one in suggested) > 0.9
    assert not [one for one in suggested if one.holds]


def test_rules_of_one_head_relation_are_those_among_all() -> None:
    run = planted()
    links, names = Links(run.graph), run.graph.relations
    heads = [names.id("both 1"), names.id("out 2")]
    assert set(candidates(links, heads)) == {r for r in candidates(links) if r.head in heads}


@pytest.mark.parametrize("kind", ["transe", "distmult", "complex"])
def test_baselines_are_judged_by_facts_and_by_distances_if_they_have_them(kind: str) -> None:
    graph = synthetic.symmetric(copies=5)
    config = ModelConfig(kind=kind, numbers=8)
    model = build(config, len(graph.entities), len(graph.relations))
    if kind == "transe":
        torch.nn.init.zeros_(model.relation)  # the one translation that is its own inverse
    found = find_rules(model, Links(graph))
    assert {one.rule.kind for one in found} == {"symmetric"}
    assert all(one.error == (0.0 if kind == "transe" else None) for one in found)


def test_confidence_counts_pairs_and_leaves_loops_out() -> None:
    facts = [("a", "r", "b"), ("b", "r", "a"), ("a", "r", "c"), ("c", "r", "c")]
    facts += [("a", "s", "b"), ("c", "s", "b"), ("b", "t", "d"), ("a", "u", "d"), ("c", "u", "c")]
    graph = KnowledgeGraph.from_triples(facts)
    r, s, t, u = graph.relations.ids("rstu").tolist()
    asked = [
        Rule("symmetric", (r,), r),
        Rule("implication", (r,), s),
        Rule("composition", (s, t), u),
        Rule("composition", (t, t), u),
    ]
    model = GoldE(ModelConfig(signature="E2"), len(graph.entities), 4)
    found = {one.rule: one for one in judge(model, Links(graph), asked)}
    counts = [(found[rule].support, found[rule].instances) for rule in asked]
    assert counts == [(2, 3), (1, 3), (1, 2), (0, 0)]
    assert found[asked[3]].error is None
    assert found[asked[3]].confidence == 0
    assert [found[rule].holds for rule in asked[2:]] == [False, False]  # one fact is no rule


def test_gaps_count_against_confidence_and_not_against_pca_confidence() -> None:
    """Eight walks film → studio → country: five films have the country, two have none, one another."""
    films = [f"film {i}" for i in range(8)]
    facts = [(film, "made by", "studio") for film in films]
    facts += [("studio", "based in", "here"), ("studio", "makes", "film 0")]
    facts += [(film, "from", "here") for film in films[:5]] + [("film 7", "from", "elsewhere")]
    graph = KnowledgeGraph.from_triples(facts)
    made, based, makes, where = graph.relations.ids(
        ["made by", "based in", "makes", "from"]
    ).tolist()
    composition = Rule("composition", (made, based), where)
    # Mirrored, so that the films without a gap are told by the entity the head starts from: the studio.
    inverse = Rule("inverse", (made,), makes)
    model = GoldE(ModelConfig(signature="E2"), len(graph.entities), 4)
    found = {one.rule: one for one in judge(model, Links(graph), [composition, inverse])}
    assert found[composition].confidence == 5 / 8
    assert found[composition].pca_confidence == 5 / 6
    assert found[inverse].pca_confidence == found[inverse].confidence == 1 / 8
    nothing = judge(model, Links(graph), [Rule("composition", (based, based), where)])
    assert nothing[0].pca_confidence == 0


def test_many_instances_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    run = planted()
    links, names = Links(run.graph), run.graph.relations
    monkeypatch.setattr(rules, "INSTANCES", 8)
    walk = names.ids(["first 0", "second 0"]).tolist()
    asked = [
        Rule("symmetric", (names.id("beside 0"),), names.id("beside 0")),
        Rule("composition", (walk[0], walk[1]), names.id("both 0")),
    ]
    for one in judge(run.model, links, asked):
        assert one.drawn
        assert 0 < one.instances <= 8
        assert one.confidence > 0.3


def test_the_error_is_that_of_the_whole_map_with_each_curvature_its_own() -> None:
    """A composition over three relations with three β, against matrices between exp and log."""
    model = randomised(GoldE(ModelConfig(signature="Q4", reciprocal=False), 6, 3), seed=1)
    maps = model.geometries[0].maps(None)
    assert len(set(maps.beta.flatten().tolist())) == 3
    entity, strangers = torch.arange(6), torch.randint(6, (6,), generator=seeded(5))

    def move(relation: int, row: torch.Tensor) -> torch.Tensor:
        G = block_one(maps.Q[relation, 0]) @ boost_matrix(maps.b[relation, 0])
        return tangent_map(G, row, maps.beta[relation, 0])

    beta = maps.beta[2, 0]
    missed = sum(geodesic(move(2, e), move(1, move(0, e)), beta) for e in model.entity)
    far = sum(
        geodesic(move(2, model.entity[h]), model.entity[t], beta)
        for h, t in zip(entity, strangers, strict=True)
    )
    (error,) = map_errors(model, [Rule("composition", (0, 1), 2)], [(entity, strangers)])
    assert error == pytest.approx(float((missed / far).detach()), rel=1e-4)


@pytest.mark.parametrize("signature", ["E4x2", "P4x2", "Q5x2"])
def test_an_involution_has_no_error_and_others_have(signature: str) -> None:
    """Commuting reflections and no boost in relation 0, anything in relation 1."""
    graph = synthetic.symmetric(copies=3)
    config = ModelConfig(signature=signature, reciprocal=False)
    model = randomised(GoldE(config, len(graph.entities), 2), seed=2)
    group = model.groups[0]
    for component in range(2):
        w = torch.ones(4, dtype=torch.float64)
        if group.letter == "P":
            w = group.maps(torch.tensor([0])).p[0, component].detach()
        rows = random_isometry(w, seed=component, flips=torch.ones_like(w)).T
        set_rows(group.rotation, 0, component, torch.stack((rows[0], rows[1], rows[2], rows[2])))
    if group.letter == "Q":
        with torch.no_grad():
            group.b[0] = 0
    exact, other = involution_errors(model, Links(graph), [0, 1])
    assert exact < 1e-4
    assert other > 0.2


@pytest.mark.parametrize("norm", [1, 2])
def test_components_add_up_to_the_score(norm: int) -> None:
    config = ModelConfig(signature="E2 P3x2 Q4x3", norm=norm, weights={"P": 0.5, "Q": 2.0})
    model = randomised(GoldE(config, 7, 2), seed=0)
    entity, direction, answer = torch.arange(7), torch.arange(7) % 4, torch.arange(7).flip(0)
    terms = component_terms(model, model.entity[entity], direction, model.entity[answer])
    assert terms.shape == (7, 6)
    expected = -model.score_pairs(entity, direction, answer).detach()
    torch.testing.assert_close(terms.sum(1), expected)
    against_all = component_terms(model, model.entity[3:4], direction[3:4], model.entity)
    torch.testing.assert_close(against_all[answer[3]], terms[3])
