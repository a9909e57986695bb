"""Any number of processes finds the same ranks, and the same error."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from golde.data.graph import KnowledgeGraph
from golde.data.known import KnownFacts
from golde.distributed.facts import FactShare
from golde.distributed.ranking import rank_sharded
from golde.distributed.world import World
from golde.evaluation.ranking import NonFiniteScoreError, Ranks, both_sides, rank_queries
from golde.models import Model, build
from threads import part_of, together
from tiny import quick, ring

CONFIGS: dict[str, dict[str, Any]] = {
    "usual": {},
    "bias": {"bias": True},
    "inverse maps and bias": {"bias": True, "reciprocal": False},
    "loop bias": {"loop_bias": True},
    "loop bias, inverse maps and bias": {"bias": True, "loop_bias": True, "reciprocal": False},
}


def model_of(graph: KnowledgeGraph, model: dict[str, Any], rows: range | None = None) -> Model:
    """With biases that matter, also where only some rows are there."""
    sizes = len(graph.entities), len(graph.relations)
    made = build(quick(model).model, *sizes, seed=3, rows=rows).double()
    if made.config.bias:
        start = 0 if rows is None else rows.start
        with torch.no_grad():
            for bias, pace in ((made.query_bias, 0.3), (made.answer_bias, 0.7)):
                bias.copy_(torch.sin(pace * (start + torch.arange(len(bias)))))
    if made.config.loop_bias:
        torch.nn.init.constant_(made.loop_bias, 0.9)
    return made


def sharded(graph: KnowledgeGraph, model: Model, world: World, **options: Any) -> Ranks:
    sizes = len(graph.entities), len(graph.relations)
    every = torch.cat((graph.train, graph.valid, graph.test))
    share = FactShare.of(part_of(every, world), *sizes, world)
    entity, direction, answer = share.facts
    return rank_sharded(
        model,
        *both_sides(graph.test, sizes[1]),
        KnownFacts.of_queries(entity, direction, answer, *sizes),
        world,
        entities=sizes[0],
        name=lambda *ids: ("a query", str(ids)),
        **options,
    )


@pytest.mark.parametrize("memory_mb", [64.0, 0.002], ids=["one block", "blocks"])
@pytest.mark.parametrize("self_filter", [False, True])
@pytest.mark.parametrize("name", CONFIGS)
def test_ranks_are_those_of_one_process(name: str, self_filter: bool, memory_mb: float) -> None:
    graph = ring()
    expected = rank_queries(
        model_of(graph, CONFIGS[name]).scorer(),
        *both_sides(graph.test, len(graph.relations)),
        graph.known(),
        entities=len(graph.entities),
        self_filter=self_filter,
    )
    assert expected.better.unique().numel() > 2
    for size in (1, 3, 4, 23):  # three are more than there are entities

        def ranks(world: World) -> Ranks:
            model = model_of(graph, CONFIGS[name], world.share(len(graph.entities)))
            options = {"self_filter": self_filter, "memory_mb": memory_mb}
            return sharded(graph, model, world, **options)

        for found in together(size, ranks):
            for field in ("entity", "direction", "answer", "better", "ties", "candidates"):
                assert torch.equal(getattr(found, field), getattr(expected, field)), field


def test_a_score_that_is_not_finite_stops_all() -> None:
    graph = ring()

    def ranks(world: World) -> str:
        model = model_of(graph, {}, world.share(len(graph.entities)))
        if world.rank == 1:
            with torch.no_grad():
                model.entity[1, 0] = torch.nan
        with pytest.raises(NonFiniteScoreError) as caught:
            sharded(graph, model, world)
        return str(caught.value)

    assert all("nan" in words for words in together(3, ranks))
