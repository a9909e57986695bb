"""The two baselines on graphs small enough to read."""

from __future__ import annotations

import pytest
import torch

from golde.data.graph import KnowledgeGraph
from golde.evaluation.baselines import Popularity, Rules
from golde.evaluation.ranking import Scorer

GRAPH = KnowledgeGraph.from_triples(
    train=[
        # borders is symmetric but for one fact
        ("a", "borders", "b"),
        ("b", "borders", "a"),
        ("a", "borders", "c"),
        ("c", "borders", "a"),
        ("d", "borders", "a"),
        # has_part mirrors part_of but for one fact, and the other way round
        ("a", "part_of", "e"),
        ("e", "has_part", "a"),
        ("b", "part_of", "e"),
        ("e", "has_part", "b"),
        ("c", "part_of", "e"),
        ("f", "has_part", "d"),
        # a loop is no evidence of symmetry
        ("a", "likes", "a"),
        ("b", "likes", "b"),
        ("c", "likes", "f"),
    ],
    name="small",
)


def answers(score: Scorer, entity: str, relation: str, *, heads: bool = False) -> dict[str, float]:
    direction = GRAPH.relations.id(relation) + (len(GRAPH.relations) if heads else 0)
    query = torch.tensor([GRAPH.entities.id(entity)]), torch.tensor([direction])
    scores = score(*query, 0, len(GRAPH.entities))[0].tolist()
    return dict(zip(GRAPH.entities.names, scores, strict=True))


def scaled(counts: dict[str, float]) -> dict[str, float]:
    return {name: count / (2 * len(GRAPH.train) + 1) for name, count in counts.items()}


def best(scores: dict[str, float]) -> list[str]:
    return [name for name in sorted(scores, key=scores.__getitem__, reverse=True) if scores[name]]


def test_popularity_counts_answers_of_the_direction_whatever_the_entity() -> None:
    popularity = Popularity(GRAPH)
    expected = {"a": 3.0, "b": 1.0, "c": 1.0, "d": 0.0, "e": 0.0, "f": 0.0}
    assert answers(popularity, "f", "borders") == pytest.approx(scaled(expected))
    expected = {"a": 1.0, "b": 1.0, "c": 1.0, "d": 0.0, "e": 0.0, "f": 0.0}
    assert answers(popularity, "e", "part_of", heads=True) == pytest.approx(scaled(expected))


def test_rules_are_found_with_their_confidence() -> None:
    names = GRAPH.relations
    found = {(names[body], names[head]): share for body, head, share in Rules(GRAPH).found}
    assert found == pytest.approx(
        {
            ("borders", "borders"): 4 / 5,
            ("part_of", "has_part"): 2 / 3,
            ("has_part", "part_of"): 2 / 3,
        }
    )


def test_a_fired_rule_comes_before_popularity_which_breaks_ties() -> None:
    rules = Rules(GRAPH)
    # a ← d is known, so a borders d; then come b and c, whose mirror facts fire too but more popular
    assert best(answers(rules, "a", "borders")) == ["b", "c", "d", "a"]
    # d is part of f because f has part d, although everything else is part of e
    assert best(answers(rules, "d", "part_of")) == ["f", "e"]
    assert best(answers(rules, "e", "has_part")) == ["a", "b", "c", "d"]
    assert best(answers(rules, "d", "has_part", heads=True)) == ["e", "f"]
    assert best(answers(rules, "c", "has_part", heads=True)) == ["e", "f"]


def test_a_more_confident_rule_outranks_a_weaker_one_however_popular() -> None:
    strong = [("r", i) for i in range(8)]
    train = [(f"{r}{i}", r, f"{r}{i}'") for r, i in strong]
    train += [(f"{r}{i}'", "goal", f"{r}{i}") for r, i in strong]
    weak = [(f"w{i}", "w", f"w{i}'") for i in range(8)]
    train += weak + [(tail, "goal", head) for head, _, tail in weak[:4]]
    train += [("good", "r", "asked"), ("popular", "w", "asked")]
    train += [(f"x{i}", "goal", "popular") for i in range(20)]
    graph = KnowledgeGraph.from_triples(train)
    query = torch.tensor([graph.entities.id("asked")]), torch.tensor([graph.relations.id("goal")])
    scores = Rules(graph)(*query, 0, len(graph.entities))[0]
    assert graph.entities[int(scores.argmax())] == "good"
    assert graph.entities[int(scores.topk(2).indices[1])] == "popular"


@pytest.mark.parametrize("baseline", [Popularity, Rules])
def test_a_span_of_candidates_scores_like_the_whole(
    baseline: type[Popularity] | type[Rules],
) -> None:
    score = baseline(GRAPH)
    entities, directions = len(GRAPH.entities), 2 * len(GRAPH.relations)
    entity, direction = torch.cartesian_prod(
        torch.arange(entities), torch.arange(directions)
    ).unbind(1)
    whole = score(entity, direction, 0, entities)
    parts = [
        score(entity, direction, 0, 1),
        score(entity, direction, 1, 4),
        score(entity, direction, 4, entities),
    ]
    assert torch.equal(whole, torch.cat(parts, dim=1))
    assert whole.any()
