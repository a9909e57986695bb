"""TransE, DistMult and ComplEx: their formulas, one score by every path, what they refuse.

What holds for every model (live parameters, paths that agree, directions) is tested in ``test_golde.py``,
which takes in all presets.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from golde.config import Config, ModelConfig
from golde.errors import ConfigError
from golde.models import GoldE, Model, build
from golde.models import transe as transe_module
from golde.models.distmult import DistMult
from golde.models.transe import TransE
from golde.models.vectors import InnerProduct
from oracles import normal, randomised

ENTITIES, RELATIONS, NUMBERS = 5, 2, 6

baselines = pytest.mark.parametrize("kind", ["transe", "distmult", "complex"])
with_norms = pytest.mark.parametrize(
    ("kind", "norm"), [("transe", 1), ("transe", 2), ("distmult", 1), ("complex", 1)]
)
both_directions = pytest.mark.parametrize(
    "reciprocal", [False, True], ids=["inverse", "reciprocal"]
)


def make(kind: str, **settings: Any) -> Any:
    model = build(ModelConfig(kind=kind, numbers=NUMBERS, **settings), ENTITIES, RELATIONS, seed=3)
    return randomised(model, seed=1)


def formula(model: Model, head: list[float], relation: list[float], tail: list[float]) -> float:
    """The score of one fact, coordinate by coordinate."""
    if model.config.kind == "transe":
        differences = [h + r - t for h, r, t in zip(head, relation, tail, strict=True)]
        if model.config.norm == 1:
            return -sum(abs(d) for d in differences)
        return -math.sqrt(sum(d * d for d in differences))
    if model.config.kind == "complex":
        half = NUMBERS // 2
        h, r, t = (
            [complex(row[i], row[half + i]) for i in range(half)] for row in (head, relation, tail)
        )
        return sum((a * b * c.conjugate()).real for a, b, c in zip(h, r, t, strict=True))
    return sum(h * r * t for h, r, t in zip(head, relation, tail, strict=True))


def oracle(model: Any, entity: int, direction: int, answer: int) -> float:
    """A score by the formula of the fact that a query and its answer make."""
    rows, relations = model.entity.tolist(), model.relation.tolist()
    asks_heads = direction >= RELATIONS and not model.config.reciprocal
    head, tail = (answer, entity) if asks_heads else (entity, answer)
    relation = relations[direction % RELATIONS if asks_heads else direction]
    score = formula(model, rows[head], relation, rows[tail])
    if model.config.bias:
        score += model.query_bias.tolist()[head] + model.answer_bias.tolist()[tail]
    if model.config.loop_bias and entity == answer:
        score += model.loop_bias.tolist()[direction % len(model.loop_bias)]
    return score


@with_norms
@both_directions
@pytest.mark.parametrize("loop_bias", [False, True], ids=["", "loops"])
@pytest.mark.parametrize("bias", [False, True], ids=["", "bias"])
def test_scores_are_those_of_the_formula_by_every_path(
    kind: str, norm: int, reciprocal: bool, bias: bool, loop_bias: bool
) -> None:
    model = make(kind, reciprocal=reciprocal, bias=bias, loop_bias=loop_bias, norm=norm)
    assert model.relation.shape == (RELATIONS * (2 if reciprocal else 1), NUMBERS)
    pairs = torch.cartesian_prod(torch.arange(ENTITIES), torch.arange(2 * RELATIONS))
    entity, direction = pairs.unbind(1)
    expected = torch.tensor(
        [[oracle(model, e, d, a) for a in range(ENTITIES)] for e, d in pairs.tolist()],
        dtype=torch.float64,
    )
    torch.testing.assert_close(model.score(entity, direction).detach(), expected)
    score = model.scorer()
    for start, stop in ((0, 3), (0, 3), (3, 5)):
        found = score(entity, direction, start, stop)
        torch.testing.assert_close(found.detach(), expected[:, start:stop])
    answer = (entity + direction) % ENTITIES
    own = expected[torch.arange(len(pairs)), answer]
    torch.testing.assert_close(model.score_pairs(entity, direction, answer).detach(), own)
    shared = torch.tensor([4, 0, 4])
    rows = model.entity[torch.cat((entity, answer, shared))]
    parts = model.score_batch(rows, entity, direction, answer, shared, own=True)
    loops = expected[torch.arange(len(pairs)), entity]
    torch.testing.assert_close(
        tuple(part.detach() for part in parts), (own, loops, expected[:, shared])
    )


@with_norms
def test_gradients_are_finite_where_points_coincide(kind: str, norm: int) -> None:
    model = make(kind, norm=norm)
    with torch.no_grad():
        model.relation.zero_()
        model.entity.copy_(model.entity[0].clone())
    entity, direction = torch.arange(ENTITIES), torch.zeros(ENTITIES, dtype=torch.long)
    scores = (
        model.score(entity, direction).sum() + model.score_pairs(entity, direction, entity).sum()
    )
    scores.backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


def test_blocks_of_translations_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a GPU; values and gradients."""
    model = make("transe")
    entity, direction = torch.tensor([0, 1, 2, 3, 4, 0, 1]), torch.tensor([0, 1, 2, 3, 0, 1, 2])

    def outcome() -> tuple[Tensor, Tensor]:
        model.zero_grad()
        scores = model.score(entity, direction)
        (normal(*scores.shape, seed=0) * scores).sum().backward()
        return scores.detach(), model.entity.grad

    whole, sizes = outcome(), []
    split = Tensor.split

    def remember(tensor: Tensor, size: int) -> Any:
        sizes.append(size)
        return split(tensor, size)

    monkeypatch.setattr(transe_module, "_block", lambda queries, candidates: 3)
    monkeypatch.setattr(Tensor, "split", remember)
    torch.testing.assert_close(outcome(), whole)
    assert sizes == [3]


def test_on_a_gpu_blocks_hold_a_bounded_number_of_differences() -> None:
    elsewhere = torch.empty(3000, 128, device="meta")
    queries = transe_module._block(1000, elsewhere)
    assert 1 < queries < 1000
    assert queries * elsewhere.numel() <= transe_module.DEVICE_BLOCK_ELEMENTS
    assert transe_module._block(1000, torch.empty(10**9, 2, device="meta")) == 1
    assert transe_module._block(1000, torch.empty(3, 2)) == 1000
    with torch.no_grad():
        assert transe_module._block(1000, elsewhere) == 1000


def test_one_diagonal_for_both_directions_makes_relations_symmetric() -> None:
    model = make("distmult", reciprocal=False)
    entity = torch.arange(ENTITIES)
    table = model.score(entity, torch.zeros_like(entity))
    torch.testing.assert_close(table, table.T)


@pytest.mark.parametrize("kind", ["distmult", "complex"])
@both_directions
def test_a_penalty_weighs_all_three_factors_by_their_moduli(kind: str, reciprocal: bool) -> None:
    model = make(kind, reciprocal=reciprocal)
    heads, tails = model.entity[[0, 1]], model.entity[[2, 3]]
    direction = torch.tensor([1, 3])
    found = model.penalised(torch.cat((heads, tails)), direction)
    relations = model.relation[direction if reciprocal else direction % RELATIONS]
    rows = torch.cat((heads, tails, relations)).tolist()
    half = NUMBERS // 2
    by_hand = [
        [math.hypot(row[i], row[half + i]) for i in range(half)]
        if kind == "complex"
        else [abs(x) for x in row]
        for row in rows
    ]
    torch.testing.assert_close(found, torch.tensor(by_hand, dtype=torch.float64))
    translation = make("transe")
    assert translation.penalised(heads, direction) is heads


def test_the_kind_is_built_that_was_asked_for() -> None:
    assert isinstance(make("transe"), TransE)
    assert type(make("distmult")) is DistMult
    assert isinstance(make("complex"), InnerProduct)
    assert isinstance(build(ModelConfig(signature="E4"), ENTITIES, RELATIONS), GoldE)
    assert (make("transe").margin, make("complex").margin) == (6.0, 0.0)
    assert make("complex", margin=2.0).margin == 2.0
    wide = make("transe", init_scale=0.5, norm=2)
    assert wide.config.init_scale == 0.5


@baselines
def test_autocast_changes_nothing(kind: str) -> None:
    model = build(ModelConfig(kind=kind, numbers=NUMBERS, bias=True), ENTITIES, RELATIONS)
    entity = torch.arange(ENTITIES)
    plain = model.score(entity, entity % 4), model.score_pairs(entity, entity % 4, entity)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = model.score(entity, entity % 4), model.score_pairs(entity, entity % 4, entity)
    torch.testing.assert_close(cast, plain, rtol=0, atol=0)


FOREIGN = {
    "signature": ("E4", "give model.numbers instead"),
    "reflections": ("k-1", "leave it out"),
    "block": (2, "leave it out"),
    "boost_left": (True, "leave it out"),
    "weights": ({"P": 0.5}, "leave it out"),
}


@baselines
@pytest.mark.parametrize("key", FOREIGN)
def test_settings_of_golde_are_refused(kind: str, key: str) -> None:
    value, fix = FOREIGN[key]
    said = rf"model\.{key} = .* does nothing with model\.kind = '{kind}'; {fix}"
    with pytest.raises(ConfigError, match=said):
        Config.from_dict({"model": {"kind": kind, key: value}})
    with pytest.raises(ConfigError, match=said):
        build(ModelConfig(kind=kind, numbers=NUMBERS, **{key: value}), ENTITIES, RELATIONS)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (
            {"signature": "E4", "numbers": 4},
            r"model\.numbers = 4 .*'golde'; give a model\.signature",
        ),
        (
            {"kind": "distmult", "numbers": 4, "norm": 2},
            r"model\.norm = 2 .*'distmult'; leave it out",
        ),
        ({"kind": "complex", "numbers": 7}, r"model\.numbers = 7 is odd.*use 8"),
        ({"kind": "transe"}, r"model\.numbers is not set.*such as 128"),
    ],
)
def test_settings_that_make_no_model(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        build(ModelConfig(**settings), ENTITIES, RELATIONS)
