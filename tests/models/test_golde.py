"""The model: live parameters, one score by every path, directions, precision, seeds."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from golde.config import Config, ModelConfig
from golde.errors import ConfigError
from golde.kernels import Geodesic
from golde.kernels.triton.support import KNOWN
from golde.models import GoldE, Model, contract
from golde.models import build as build_model
from golde.models.presets import PRESETS, preset
from golde.models.vectors import InnerProduct
from oracles import normal, randomised

ENTITIES, RELATIONS = 6, 2
CONFIGS = sorted((Path(__file__).parents[2] / "configs").glob("*.toml"))
MIXED = {"signature": "E3x3 P4x2 Q5x3", "weights": {"P": 0.5, "Q": 2.0}}


def shipped() -> dict[str, ModelConfig]:
    """Every configuration that comes with the package, and every choice of the schema."""
    found = {name: preset(name, 16) for name in PRESETS}
    for path in CONFIGS:
        config = Config.load(path).model
        # A file may leave the signature to be chosen from the graph.
        default = preset("golde", 16).signature
        found[path.stem] = config.model_copy(update={"signature": config.signature or default})
    for reflections in ("k", "k-1", "alternating"):
        found[reflections] = ModelConfig(**MIXED, reflections=reflections)
    found["norm"] = ModelConfig(**MIXED, norm=2)
    found["bias"] = ModelConfig(**MIXED, bias=True)
    found["loop bias"] = ModelConfig(**MIXED, loop_bias=True)
    found["both biases"] = ModelConfig(**MIXED, bias=True, loop_bias=True)
    found["boost left"] = ModelConfig(**MIXED, boost_left=True)
    found["block"] = ModelConfig(signature="P4x2 Q5x2", block=2)
    return found


SHIPPED = shipped()
everything = pytest.mark.parametrize("name", SHIPPED)
both_directions = pytest.mark.parametrize("reciprocal", [False, True], ids=["paper", "reciprocal"])


def build(config: ModelConfig, **changes: Any) -> Any:
    model: Model = build_model(config.model_copy(update=changes), ENTITIES, RELATIONS, seed=3)
    return model.double()


def all_queries() -> tuple[Tensor, Tensor]:
    """Every entity asked in every direction."""
    pairs = torch.cartesian_prod(torch.arange(ENTITIES), torch.arange(2 * RELATIONS))
    return pairs[:, 0], pairs[:, 1]


@everything
@both_directions
def test_every_number_is_live_from_the_start(name: str, reciprocal: bool) -> None:
    """A constraint that kills a gradient, or a parameter that is never read, shows here."""
    model = build(SHIPPED[name], reciprocal=reciprocal)
    scores = model.score(*all_queries())
    (normal(*scores.shape, seed=0) * scores).sum().backward()
    for label, parameter in model.named_parameters():
        if parameter.numel():  # no reflections where K−1 = 0 are asked for
            assert parameter.grad is not None, label
            assert (parameter.grad != 0).all(), label


@everything
@both_directions
def test_pair_scores_are_gathered_scores(name: str, reciprocal: bool) -> None:
    model = randomised(build(SHIPPED[name], reciprocal=reciprocal), seed=4, scale=0.3)
    entity, direction = all_queries()
    table = model.score(entity, direction)
    assert table.shape == (len(entity), ENTITIES)
    candidates = torch.tensor([4, 0, 4])
    torch.testing.assert_close(model.score(entity, direction, candidates), table[:, candidates])
    answer = (entity + direction) % ENTITIES
    expected = table[torch.arange(len(entity)), answer]
    torch.testing.assert_close(model.score_pairs(entity, direction, answer), expected)
    forward = direction < RELATIONS
    triples = torch.stack((entity, direction, answer), 1)[forward]
    torch.testing.assert_close(model.score_triples(triples), expected[forward])
    rows = model.entity[torch.cat((entity, answer, candidates))]
    parts = model.score_batch(rows, entity, direction, answer, candidates, own=True)
    loops = table[torch.arange(len(entity)), entity]
    torch.testing.assert_close(parts, (expected, loops, table[:, candidates]))
    assert model.score_batch(rows, entity, direction, answer, candidates, own=False)[1] is None


@pytest.mark.parametrize("known", [True, False])
def test_a_step_takes_kernels_only_where_they_know_every_distance(
    known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a step are chosen by letter, and a geometry may be given another distance."""
    model = build(ModelConfig(**MIXED))
    if not known:
        model.groups[-1].finish = type("Other", (Geodesic,), {})()
    monkeypatch.setattr(
        import_module("golde.models.golde"), "supports", lambda finish, *_: type(finish) in KNOWN
    )
    by_kernels = (torch.zeros(()), None, torch.zeros(()))
    monkeypatch.setattr(model, "_fused_scores", lambda rows, direction, own: by_kernels)
    one = torch.tensor([0])
    scores = model.score_batch(model.entity[[0, 1, 2]], one, one, one + 1, one + 2, own=False)
    assert (scores[0].dim() == 0) == known


@everything
def test_without_reciprocals_both_directions_give_one_score(name: str) -> None:
    model = randomised(build(SHIPPED[name], reciprocal=False), seed=1, scale=0.4)
    for relation in range(RELATIONS):
        tails, heads = (
            model.score(torch.arange(ENTITIES), torch.full((ENTITIES,), direction))
            for direction in (relation, relation + RELATIONS)
        )
        torch.testing.assert_close(tails, heads.T, rtol=1e-9, atol=1e-9)


@everything
@both_directions
def test_points_are_scored_as_entities_are(name: str, reciprocal: bool) -> None:
    """All but the query's own bias, which no order of answers depends on."""
    model = randomised(build(SHIPPED[name], reciprocal=reciprocal), seed=2, scale=0.3)
    entity, direction = all_queries()
    of_entities, of_points = (
        model.score(entity, direction),
        model.score_points(model.entity[entity], direction),
    )
    if model.config.loop_bias:
        which = direction if reciprocal else direction % RELATIONS
        of_points[torch.arange(len(entity)), entity] += model.loop_bias[which]
    if not model.config.bias:
        torch.testing.assert_close(of_points, of_entities)
    apart = of_entities - of_points
    torch.testing.assert_close(apart, apart[:, :1].expand_as(apart))


@everything
@both_directions
def test_transport_is_the_best_answer(name: str, reciprocal: bool) -> None:
    """No distance is left; of an inner product, no other row of its length has a higher one."""
    model = randomised(build(SHIPPED[name], reciprocal=reciprocal), seed=2, scale=0.3)
    entity, direction = all_queries()
    rows = model.entity[entity]
    moved, queries = model.transport(rows, direction), model.queries(rows, direction)
    score = model._score_own(queries, model.candidates(moved))
    if isinstance(model, InnerProduct):
        torch.testing.assert_close(score, queries.norm(dim=1) * moved.norm(dim=1))
    else:
        assert (score.abs() < 2e-3).all()
    if not reciprocal and not isinstance(model, InnerProduct):
        back = (direction + RELATIONS) % (2 * RELATIONS)
        torch.testing.assert_close(model.transport(moved, back), rows)


@both_directions
def test_reciprocals_have_parameters_of_their_own(reciprocal: bool) -> None:
    model = build(ModelConfig(**MIXED), reciprocal=reciprocal)
    entity = torch.arange(ENTITIES)
    model.score(entity, torch.zeros_like(entity)).sum().backward()  # tails of relation 0 only
    for group in model.groups:
        used = [p.grad.flatten(1).any(1) for p in group.parameters()]
        for rows in used:
            assert rows.tolist() == [True] + [False] * (len(rows) - 1)
            assert len(rows) == RELATIONS * (2 if reciprocal else 1)


@pytest.mark.parametrize("norm", [1, 2])
def test_score_is_the_weighted_sum_of_distances(norm: int) -> None:
    """``s = −Σ_i w_i d_i^l`` (Eq. 15): each geometry alone, then together."""
    whole = build(ModelConfig(**MIXED, norm=norm))
    entity, direction = all_queries()
    total = torch.zeros(len(entity), ENTITIES, dtype=torch.float64)
    start = 0
    for group, term in zip(whole.groups, whole.signature, strict=True):
        part = GoldE(ModelConfig(signature=str(term), norm=norm), ENTITIES, RELATIONS).double()
        size = term.count * term.numbers
        part.groups[0].load_state_dict(group.state_dict())
        with torch.no_grad():
            part.entity.copy_(whole.entity[:, start : start + size])
        start += size
        total += MIXED["weights"].get(term.letter, 1.0) * part.score(entity, direction)
    torch.testing.assert_close(whole.score(entity, direction), total)


def test_autocast_changes_nothing() -> None:
    """Neither the maps nor the products lose precision behind the user's back."""
    model = GoldE(ModelConfig(**MIXED, bias=True, reciprocal=False), ENTITIES, RELATIONS)
    entity, direction = all_queries()
    plain = model.score(entity, direction), model.score_pairs(entity, direction, entity)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = model.score(entity, direction), model.score_pairs(entity, direction, entity)
    torch.testing.assert_close(cast, plain, rtol=0, atol=0)


@everything
def test_float64_agrees_with_float32(name: str) -> None:
    single = build_model(SHIPPED[name], ENTITIES, RELATIONS, seed=4)
    double = build_model(SHIPPED[name], ENTITIES, RELATIONS, seed=4).double()
    exact = double.score(*all_queries())
    assert exact.dtype == torch.float64
    torch.testing.assert_close(single.score(*all_queries()).double(), exact, rtol=1e-4, atol=1e-4)


def test_seeds_repeat() -> None:
    first, again, other = (
        GoldE(ModelConfig(**MIXED), ENTITIES, RELATIONS, seed=seed).state_dict()
        for seed in (5, 5, 6)
    )
    torch.testing.assert_close(first, again, rtol=0, atol=0)
    assert not torch.equal(first["entity"], other["entity"])
    assert not torch.equal(first["groups.0.rotation.U"], other["groups.0.rotation.U"])


def test_an_empty_batch_has_no_scores() -> None:
    model = build(ModelConfig(**MIXED, bias=True))
    nothing = torch.zeros(0, dtype=torch.long)
    assert model.score(nothing, nothing).shape == (0, ENTITIES)
    assert model.score_pairs(nothing, nothing, nothing).shape == (0,)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"signature": "P4x2", "weights": {"Q": 0.5}}, "weights: Q is not in the signature"),
        ({"signature": "P4x2", "block": 3}, "block = 3"),
        (
            {"signature": "E4 P4x2", "boost_left": True},
            "boost_left does nothing .*leave it out.* Q9x8",
        ),
        ({}, "signature is empty"),
    ],
)
def test_settings_that_make_no_model(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        GoldE(ModelConfig(**settings), ENTITIES, RELATIONS)


def test_some_rows_start_as_they_do_among_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """In whatever portions they are drawn; the relations, drawn after them, too."""
    config = ModelConfig(signature="P3x2 Q4x2", bias=True)
    whole = GoldE(config, 20, 2, seed=5)
    monkeypatch.setattr(contract, "DRAWN_AT_ONCE", 40)
    for rows in (range(20), range(7), range(7, 13), range(13, 20), range(9, 9)):
        part = GoldE(config, 20, 2, seed=5, rows=rows)
        assert torch.equal(part.entity, whole.entity[rows.start : rows.stop])
        assert len(part.query_bias) == len(rows)
        for name, parameter in part.groups.named_parameters():
            assert torch.equal(parameter, whole.groups.get_parameter(name))
