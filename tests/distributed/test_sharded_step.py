"""Any number of processes makes the same steps: the same losses, the same parameters."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from golde.config import Config
from golde.data.graph import KnowledgeGraph
from golde.distributed.facts import FactShare
from golde.distributed.sampling import ShardSampler
from golde.distributed.update import ShardedUpdate, sharded_loss
from golde.distributed.world import World
from golde.models import build
from golde.training.sampling import Draw
from golde.training.step import step_loss
from threads import part_of, together
from tiny import quick, ring

STEPS = 5


def sampler_of(graph: KnowledgeGraph, config: Config, world: World) -> ShardSampler:
    settings, sizes = config.training, (len(graph.entities), len(graph.relations))
    assert settings.batch_size is not None
    assert settings.negatives is not None
    return ShardSampler(
        FactShare.of(part_of(graph.train, world), *sizes, world),
        *sizes,
        world,
        batch_size=settings.batch_size,
        negatives=settings.negatives,
        answers=settings.answers_as_negatives,
        subsampling=settings.subsampling,
        seed=5,
        device=torch.device("cpu"),
    )


def steps(
    config: Config, world: World, graph: KnowledgeGraph | None = None
) -> tuple[list[float], list[float], dict[str, Tensor], int]:
    """Losses, norms and parameters of a few steps, and how many bytes were sent in them."""
    graph = ring() if graph is None else graph
    sizes = len(graph.entities), len(graph.relations)
    model = build(config.model, *sizes, seed=3, rows=world.share(sizes[0])).double()
    update = ShardedUpdate(model, sampler_of(graph, config, world), config.training, world)
    sent = world.sent
    outcomes = [update(step, 0.05) for step in range(STEPS)]
    update.settle()
    named = {name: p.detach() for name, p in model.named_parameters()}
    return (
        [outcome.loss.item() for outcome in outcomes],
        [outcome.gradient_norm.item() for outcome in outcomes],
        named,
        world.sent - sent,
    )


def whole(found: list[tuple[Any, ...]]) -> dict[str, Tensor]:
    """The parameters of all processes; those that each has whole must be the same, to the bit."""
    parts = [named for _, _, named, _ in found]
    result = {}
    for name, first in parts[0].items():
        if name in ("entity", "query_bias", "answer_bias"):
            result[name] = torch.cat([part[name] for part in parts])
        else:
            assert all(torch.equal(part[name], first) for part in parts)
            result[name] = first
    return result


SETTINGS: dict[str, Config] = {
    "usual": quick(),
    "bias": quick({"bias": True}),
    "inverse maps and bias": quick({"bias": True, "reciprocal": False}),
    "loop bias": quick({"loop_bias": True}, answers_as_negatives=True),
    "loop bias, inverse maps and bias": quick(
        {"bias": True, "loop_bias": True, "reciprocal": False}, loss="cross-entropy", negatives=0
    ),
    "all entities": quick(negatives=0),
    "answers too": quick(answers_as_negatives=True),
    "fewer negatives than processes": quick(negatives=1, query_as_negative=False),
    "cross-entropy": quick({"bias": True}, loss="cross-entropy"),
    "cross-entropy, one negative": quick(
        loss="cross-entropy", negatives=1, query_as_negative=False
    ),
    "pull": quick(regulariser="norm", regulariser_weight=0.1),
    "cubes": quick(regulariser="n3", regulariser_weight=0.1),
    "lazy": quick(optimiser="lazy-adam"),
    "clipped": quick(gradient_clip=0.01),
    "no weights": quick(subsampling=False),
    "complex": Config().with_values(
        model={"kind": "complex", "numbers": 8},
        training={"batch_size": 10, "negatives": 6, "regulariser": "n3", "regulariser_weight": 0.1},
    ),
    "transe": Config().with_values(
        model={"kind": "transe", "numbers": 8, "bias": True},
        training={"batch_size": 10, "negatives": 6},
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_any_number_of_processes_makes_the_same_steps(name: str) -> None:
    """Twenty entities are not divided evenly by three, and not all own a candidate in every step."""
    config = SETTINGS[name].with_values(training={"precision": "float64"})
    alone = together(1, lambda world: steps(config, world))
    expected = whole(alone)
    for size in (2, 3, 4):
        found = together(size, lambda world: steps(config, world))
        for losses, norms, *_ in found:
            assert losses == pytest.approx(alone[0][0], rel=1e-9)
            assert norms == pytest.approx(alone[0][1], rel=1e-9)
            assert losses == found[0][0]
        torch.testing.assert_close(whole(found), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_loss_is_that_of_a_step_without_others(name: str) -> None:
    config, graph = SETTINGS[name], ring()
    sizes = len(graph.entities), len(graph.relations)

    def first(world: World) -> tuple[Tensor, dict[str, Tensor]]:
        model = build(config.model, *sizes, seed=3, rows=world.share(sizes[0])).double()
        draw = sampler_of(graph, config, world).seek(4).draw()
        rows = model.entity.detach()[draw.rows]
        return sharded_loss(model, rows, draw, config.training, world), draw._asdict()

    (_, drawn), *_ = together(1, first)
    batch, candidates = drawn["batch"], drawn["candidates"]
    everyone = torch.cat((batch.entity, batch.answer, candidates.entity))
    whole_model = build(config.model, *sizes, seed=3).double()
    whole_draw = Draw(batch, candidates, drawn["own_masked"], everyone)
    expected = step_loss(
        whole_model, whole_model.entity.detach()[everyone], whole_draw, config.training
    )
    for found, _ in together(3, first):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def star(entities: int, relations: int) -> KnowledgeGraph:
    return KnowledgeGraph.from_triples(
        [(f"e{i}", f"r{i % relations}", f"e{i * 7 % entities}") for i in range(entities)]
    )


def test_traffic_depends_on_the_batch_alone() -> None:
    """Not on how many candidates, entities or relations there are."""

    def sent(entities: int, relations: int, **training: Any) -> int:
        graph, config = star(entities, relations), quick(**training)
        found = together(2, lambda world: steps(config, world, graph))
        assert found[0][3] == found[1][3]
        return found[0][3]

    usual = sent(30, 3)
    assert sent(30, 3, negatives=20) == sent(200, 3) == sent(200, 40) == usual
    assert 1.5 * usual < sent(30, 3, batch_size=20) < 2 * usual  # the norm is sent once a step


def test_every_fact_is_asked_once_in_an_epoch() -> None:
    """In another order in the next, whatever the number of processes."""
    graph, config = ring(), quick(batch_size=8)

    def batches(world: World) -> list[tuple[int, ...]]:
        sampler = sampler_of(graph, config, world)
        drawn = [sampler.seek(step).draw().batch for step in range(2 * 8)]
        return [tuple(fact) for b in drawn for fact in torch.stack(b[:3], 1).tolist()]

    (asked, *same) = together(3, batches)
    assert all(others == asked for others in same)
    assert together(1, batches)[0] == asked
    first, second = asked[:64], asked[64:]
    assert sorted(first) == sorted(second) == sorted(set(first))
    assert first != second
