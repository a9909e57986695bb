"""The loss of one step, the learning rate and the penalties, against their formulas."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from golde.config import ModelConfig, TrainingConfig
from golde.models import GoldE
from golde.training.regularisers import penalty
from golde.training.sampling import Sampler
from golde.training.schedule import learning_rate
from golde.training.step import step_loss
from oracles import normal, seeded

ENTITIES, RELATIONS = 9, 2


def facts() -> Tensor:
    codes = torch.randperm(ENTITIES * RELATIONS * ENTITIES, generator=seeded(7))[:20]
    return torch.stack(torch.unravel_index(codes, (ENTITIES, RELATIONS, ENTITIES)), 1)


def model() -> GoldE:
    config = ModelConfig(signature="P3x2 Q4x2", margin=3.0, init_scale=0.5)
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


@pytest.mark.parametrize("kind", ["norm", "n3"])
def test_the_regulariser_adds_its_weight_times_the_penalty_of_the_rows(kind: Any) -> None:
    golde, drawn = model(), sampler(4)
    plain, with_penalty = (
        loss_of(golde, drawn.seek(3), TrainingConfig(regulariser=kind, regulariser_weight=weight))
        for weight in (0.0, 0.25)
    )
    batch = drawn.seek(3).batch()
    rows = golde.entity[torch.cat((batch.entity, batch.answer))]
    torch.testing.assert_close(with_penalty - plain, 0.25 * penalty(kind, rows))


def test_penalties_are_their_formulas() -> None:
    rows = normal(4, 5, seed=0)
    by_hand = rows.tolist()
    norm = sum(math.sqrt(sum(x * x for x in row)) for row in by_hand) / 4
    cubes = sum(abs(x) ** 3 for row in by_hand for x in row) / 4
    assert penalty("norm", rows).item() == pytest.approx(norm)
    assert penalty("n3", rows).item() == pytest.approx(cubes)


@pytest.mark.parametrize("kind", ["norm", "n3"])
def test_penalties_of_zero_rows_have_finite_gradients(kind: Any) -> None:
    rows = torch.zeros(3, 4, requires_grad=True)
    penalty(kind, rows).backward()
    assert rows.grad is not None
    assert (rows.grad == 0).all()


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
