"""Whole evaluations: what is reported, and that it does not depend on what it should not."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from golde.data.graph import KnowledgeGraph
from golde.evaluation.evaluate import Evaluation, evaluate
from golde.evaluation.metrics import summarise
from golde.evaluation.ranking import EvaluationError, NonFiniteScoreError

Facts = list[tuple[str, str, str]]
FIGURES = {"count", "mr", "mrr", "hits@1", "hits@3", "hits@10", "amri"}


def random_facts(entities: int = 30, relations: int = 4, seed: int = 0) -> tuple[Facts, Facts]:
    draw = random.Random(seed)
    names, kinds = [f"e{i}" for i in range(entities)], [f"r{i}" for i in range(relations)]
    share = {kind: 0.02 * (1 + i) for i, kind in enumerate(kinds)}  # rare ones are nearly 1-1
    facts = [(h, r, t) for h in names for r in kinds for t in names if draw.random() < share[r]]
    draw.shuffle(facts)
    return facts[:-40], facts[-40:]


TRAIN, TEST = random_facts()
GRAPH = KnowledgeGraph.from_triples(TRAIN, test=TEST, name="random")


def uneven(entity: Tensor, direction: Tensor, start: int, stop: int) -> Tensor:
    """Some scores without ties."""
    return torch.sin(7.0 * entity[:, None] + 3.0 * direction[:, None] + torch.arange(start, stop))


def constant(entity: Tensor, direction: Tensor, start: int, stop: int) -> Tensor:
    return torch.full((len(entity), stop - start), 0.3)


def test_the_report_has_the_documented_shape() -> None:
    reports: list[tuple[int, int]] = []
    report = json.loads(
        json.dumps(
            evaluate(
                uneven, GRAPH, bootstrap=100, progress=lambda *at: reports.append(at)
            ).as_dict(),
            allow_nan=False,
        )
    )
    assert set(report) == {"protocol", "metrics", "relations", "categories", "baselines"}
    for side in ("both", "head", "tail"):
        block = report["metrics"][side]
        assert set(block) == FIGURES | {"intervals"}
        assert block["intervals"]["mrr"][0] < block["intervals"]["mrr"][1]
        for name, (low, high) in block["intervals"].items():
            assert low <= block[name] <= high
        assert set(report["baselines"]["rules"][side]) == FIGURES
        assert set(report["baselines"]["popularity"][side]) == FIGURES
    assert set(report["relations"]) == set(GRAPH.relations.names)
    assert {"1-1", "N-N"} <= set(report["categories"])
    for group in ("relations", "categories"):
        blocks = report[group].values()
        assert sum(block["count"] for block in blocks) == report["metrics"]["both"]["count"] == 80
        assert all(set(block) == FIGURES | {"head", "tail"} for block in blocks)
    assert reports[-1] == (240, 240)


def test_figures_of_a_side_and_of_a_relation_come_from_their_ranks() -> None:
    found = evaluate(uneven, GRAPH, baselines=False, bootstrap=0)
    relations, ranks = len(GRAPH.relations), found.ranks
    heads = ranks[ranks.direction >= relations]
    assert found.metrics["head"] == pytest.approx(summarise(heads.realistic, heads.candidates))
    last = ranks[ranks.direction % relations == relations - 1]
    block = found.relations[GRAPH.relations[relations - 1]]
    assert block["mr"] == pytest.approx(float(last.realistic.mean()))
    own = heads[heads.direction == 2 * relations - 1]
    assert block["head"] == pytest.approx(summarise(own.realistic, own.candidates))


def test_a_constant_scorer_earns_nothing() -> None:
    found = evaluate(constant, GRAPH, hits=(1, 5), baselines=False, bootstrap=0)
    assert torch.equal(found.ranks.realistic, (found.ranks.candidates + 1) / 2)
    for block in found.metrics.values():
        assert block["amri"] == 0
        assert block["hits@5"] == 0
    assert found.optimistic is not None
    assert found.pessimistic is not None
    assert found.optimistic["both"]["mrr"] == 1
    assert found.pessimistic["both"]["mr"] == pytest.approx(
        float(found.ranks.candidates.double().mean())
    )
    assert {"optimistic", "pessimistic"} <= set(found.as_dict())


@pytest.mark.parametrize("self_filter", [False, True])
def test_relabelled_entities_give_the_same_figures(self_filter: bool) -> None:
    def by_name(graph: KnowledgeGraph) -> Evaluation:
        # Scores attached to names, with ties, whatever the ids.
        number = torch.tensor([int(name[1:]) for name in graph.entities.names])
        kind = torch.tensor([int(name[1:]) for name in graph.relations.names])
        kind = torch.cat([kind, kind + len(kind)])

        def score(entity: Tensor, direction: Tensor, start: int, stop: int) -> Tensor:
            code = 5 * number[entity] + 3 * kind[direction]
            return ((code[:, None] + number[start:stop] ** 2) % 11).float()

        return evaluate(score, graph, self_filter=self_filter, bootstrap=0)

    shuffled = TRAIN[:]
    random.Random(1).shuffle(shuffled)
    other = KnowledgeGraph.from_triples(shuffled, test=TEST)
    assert other.entities.names != GRAPH.entities.names
    one, two = by_name(GRAPH), by_name(other)
    for name in ("metrics", "optimistic", "pessimistic", "baselines"):
        mine, theirs = getattr(one, name), getattr(two, name)
        assert json.dumps(mine, sort_keys=True) == json.dumps(theirs, sort_keys=True)
    assert one.relations == two.relations
    assert one.categories == two.categories


def test_intervals_repeat_with_their_seed() -> None:
    def found(seed: int) -> object:
        return evaluate(uneven, GRAPH, baselines=False, bootstrap=50, seed=seed).metrics

    assert found(1) == found(1)
    assert found(1) != found(2)


def test_the_card_says_how_the_figures_came_about() -> None:
    graph = KnowledgeGraph.from_triples(
        [("a", "r", "b"), ("b", "r", "c")], test=[("a", "r", "c"), ("new", "r", "a")], name="tiny"
    )
    protocol = evaluate(uneven, graph, self_filter=True, baselines=False, bootstrap=0).protocol
    assert protocol.as_dict() == {
        "graph": "tiny",
        "split": "test",
        "triples": 2,
        "split_triples": 2,
        "candidates": 4,
        "unseen": 1,
        "self_filter": True,
        "resamples": 0,
        "seed": 0,
        "ties": "realistic",
        "filter": ["train", "valid", "test"],
        "sides": ["head", "tail"],
    }
    card = "\n".join(protocol.card())
    assert "self-filter ON" in card
    assert "1 triple with an entity absent from train" in card
    assert "intervals" not in card
    large = replace(
        protocol,
        graph="yago3-10-quarter",
        split="valid",
        triples=2000,
        split_triples=50_000,
        resamples=1000,
    )
    for one in (large, replace(large, self_filter=False, unseen=1234, candidates=123_182)):
        assert max(map(len, one.card())) <= 80


def test_a_sample_says_that_it_is_one() -> None:
    graph = KnowledgeGraph.from_triples(TRAIN, test=[*TEST, ("new", "r0", "e1")], name="random")
    whole = evaluate(uneven, graph, baselines=False, bootstrap=0)
    part = evaluate(uneven, graph, triples=graph.test[10:25], baselines=False, bootstrap=0)
    assert part.mrr == pytest.approx(
        torch.cat([ranks[10:25] for ranks in whole.ranks.realistic.chunk(2)])
        .reciprocal()
        .mean()
        .item()
    )
    assert part.metrics["both"]["count"] == 30
    assert (whole.protocol.triples, whole.protocol.split_triples) == (41, 41)
    assert (part.protocol.triples, part.protocol.split_triples) == (15, 41)
    assert (whole.protocol.unseen, part.protocol.unseen) == (1, 0)
    assert (whole.protocol.key, part.protocol.key) == ("test", "test+sample")
    assert "ranked      41 test triples" in whole.protocol.card()[0]
    assert "ranked      15 of 41 test triples" in part.protocol.card()[0]


def test_a_score_that_is_not_finite_is_an_error_in_the_words_of_the_graph() -> None:
    graph = KnowledgeGraph.from_triples(
        [("Rome", "capital of", "Italy")], test=[("Paris", "capital of", "France")]
    )

    def score(entity: Tensor, direction: Tensor, start: int, stop: int) -> Tensor:
        scores = constant(entity, direction, start, stop)
        scores[direction == 1] = float("nan")
        return scores

    with pytest.raises(NonFiniteScoreError, match=r"\(\?, capital of, France\) is nan"):
        evaluate(score, graph)


def test_an_empty_split_is_an_error() -> None:
    with pytest.raises(
        EvaluationError, match=r"random: the valid split is empty.*--split test\), or"
    ):
        evaluate(uneven, GRAPH, "valid")
