"""The loss of one step, the learning rate and the penalties, against their formulas."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from golde.config import ModelConfig, TrainingConfig
from golde.models import GoldE
from golde.training.regularisers import add_pull, cubes, pull
from golde.training.sampling import Sampler
from golde.training.schedule import learning_rate
from golde.training.step import step_loss
from oracles import normal, seeded

ENTITIES, RELATIONS = 9, 2


def facts() -> Tensor:
    codes = torch.randperm(ENTITIES * RELATIONS * ENTITIES, generator=seeded(7))[:20]
    return torch.stack(torch.unravel_index(codes, (ENTITIES, RELATIONS, ENTITIES)), 1)


def model(*, loop_bias: bool = False) -> GoldE:
    config = ModelConfig(signature="P3x2 Q4x2", margin=3.0, init_scale=0.5, loop_bias=loop_bias)
    return GoldE(config, ENTITIES, RELATIONS, seed=1).double()


def sampler(negatives: int) -> Sampler:
    return Sampler(
        facts(),
        ENTITIES,
        RELATIONS,
        batch_size=16,
        negatives=negatives,
        subsampling=True,
        seed=2,
        device=torch.device("cpu"),
    )


def loss_of(golde: GoldE, drawn: Sampler, config: TrainingConfig) -> Tensor:
    draw = drawn.draw()
    return step_loss(golde, golde.entity[draw.entities], draw, config)


@pytest.mark.parametrize("own", [True, False], ids=["own", "shared"])
@pytest.mark.parametrize("negatives", [4, 0])
def test_a_step_scores_negatives_that_are_not_facts(negatives: int, own: bool) -> None:
    """By hand, from the table of all scores: a *set* of shared false answers, and the query itself."""
    golde, drawn = model(), sampler(negatives)
    config = TrainingConfig(temperature=0.5, query_as_negative=own, negatives=negatives)
    batch = drawn.seek(3).batch()
    table = golde.score(batch.entity, batch.direction)
    shared = set(drawn.seek(3).candidates(batch).entity.tolist())
    total = torch.zeros((), dtype=torch.float64)
    for row, (entity, direction, answer) in enumerate(
        zip(batch.entity.tolist(), batch.direction.tolist(), batch.answer.tolist(), strict=True)
    ):
        false = [*sorted(shared), entity] if own else sorted(shared)
        known = drawn.known.answers(torch.tensor([entity]), torch.tensor([direction]))[1].tolist()
        live = table[row, [name for name in false if name not in known]]
        p = torch.softmax(0.5 * live, 0).detach()
        right = logsigmoid(3 + table[row, answer])
        total = total - batch.weight[row] * (right + (p * logsigmoid(-3 - live)).sum()) / 2
    torch.testing.assert_close(loss_of(golde, drawn.seek(3), config), total, rtol=1e-6, atol=0)


def test_a_relation_learns_whether_it_leads_to_the_entity_itself() -> None:
    """Relation 0 never does, relation 1 always: going down the gradient tells them apart."""
    golde = model(loop_bias=True)
    turn = torch.arange(ENTITIES)
    ahead = torch.stack((turn, torch.zeros_like(turn), turn.roll(1)), 1)
    loops = torch.stack((turn, torch.ones_like(turn), turn), 1)
    drawn = Sampler(
        torch.cat((ahead, loops)),
        ENTITIES,
        RELATIONS,
        batch_size=4 * ENTITIES,
        negatives=4,
        subsampling=False,
        seed=2,
        device=torch.device("cpu"),
    )
    loss_of(golde, drawn, TrainingConfig()).backward()
    assert golde.loop_bias.grad is not None
    assert (golde.loop_bias.grad > 0).tolist() == [True, False, True, False]
    assert (golde.loop_bias.grad != 0).all()


def test_the_penalty_of_cubes_adds_its_weight_times_that_of_the_facts() -> None:
    golde, drawn = model(), sampler(4)
    plain, with_penalty = (
        loss_of(golde, drawn.seek(3), TrainingConfig(regulariser="n3", regulariser_weight=weight))
        for weight in (0.0, 0.25)
    )
    batch = drawn.seek(3).batch()
    rows = golde.entity[torch.cat((batch.entity, batch.answer))]
    torch.testing.assert_close(with_penalty - plain, 0.25 * cubes(rows))


def test_cubes_are_their_formula() -> None:
    rows = normal(4, 5, seed=0)
    by_hand = sum(abs(x) ** 3 for row in rows.tolist() for x in row) / 4
    assert cubes(rows).item() == pytest.approx(by_hand)


def test_the_pull_is_the_gradient_of_the_mean_norm() -> None:
    """Of all entities; one at the origin stays there."""
    table = normal(4, 5, seed=0)
    table[2] = 0
    leaf = table.clone().requires_grad_()
    (0.3 * torch.linalg.vector_norm(leaf, dim=1).mean()).backward()
    found = torch.ones_like(table)
    config = TrainingConfig(regulariser="norm", regulariser_weight=0.3)
    add_pull(found, table, torch.tensor(pull(config, 4), dtype=table.dtype))
    assert leaf.grad is not None
    torch.testing.assert_close(found, 1 + leaf.grad)
    assert (found[2] == 1).all()


@pytest.mark.parametrize("config", [TrainingConfig(), TrainingConfig(regulariser="n3")])
def test_nothing_is_pulled_without_that_penalty(config: TrainingConfig) -> None:
    assert pull(config.model_copy(update={"regulariser_weight": 0.3}), 4) == 0


def test_the_learning_rate_warms_up_and_decays() -> None:
    rates = [learning_rate(s, steps=100, peak=2.0, warmup=0.1) for s in range(100)]
    assert rates[:10] == pytest.approx([0.2 * (i + 1) for i in range(10)])
    assert rates[10] == pytest.approx(2.0)
    assert rates[55] == pytest.approx(1.0)  # half way down the cosine
    assert all(a > b for a, b in pairwise(rates[10:]))
    assert 0 < rates[-1] < 0.002


@pytest.mark.parametrize(("steps", "warmup"), [(1, 0.0), (1, 0.9), (3, 0.99), (5, 0.0)])
def test_short_runs_have_a_learning_rate(steps: int, warmup: float) -> None:
    rates = [learning_rate(s, steps=steps, peak=1.0, warmup=warmup) for s in range(steps)]
    assert all(0 < rate <= 1 for rate in rates)
    assert max(rates) == 1
