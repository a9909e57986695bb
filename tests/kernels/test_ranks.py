"""Counts and the best candidates as kernels find them, against blocks of scores."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
import torch
from torch import Tensor

from golde.config import ModelConfig
from golde.data.graph import KnowledgeGraph
from golde.data.known import KnownFacts
from golde.evaluation.ranking import (
    CountingScorer,
    NonFiniteScoreError,
    Ranks,
    Scorer,
    rank_queries,
)
from golde.inference.predict import Predictor
from golde.inference.queries import Query
from golde.inference.search import SearchingScorer, top_k
from golde.kernels import Core
from golde.kernels.triton import Blocks
from golde.models import GoldE
from oracles import seeded

pytest.importorskip("triton", reason="Triton is not installed (extra: kernels)")

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
RELATIONS = 2

COUNTED = [(1, 1, 1), (63, 3, 70), (130, 2, 150), (200, 1, 1)]  # entities, groups, queries
SEARCHED = [(1, 1, 1), (63, 3, 70), (150, 2, 5)]
SPANS = ["at once", "in spans", "large tiles"]
SIGNATURES = ["P3x3 Q4x2" if CUDA else "P3x2 Q4x1", "Q3x2 E2x1 P35x1", "Q70x1"]

kernels: Any = import_module("golde.kernels.triton.ranks")


pytestmark = pytest.mark.usefixtures("surroundings")


@pytest.fixture(params=SPANS)
def _spans(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything at once; or a tile of candidates at a time, and blocks that cut a query's answers."""
    if request.param == "large tiles":
        monkeypatch.setattr(kernels, "TILE", Blocks(128, 128, 8, 2))
    if request.param == "in spans":
        monkeypatch.setattr(kernels, "PACKED", 1)
        monkeypatch.setattr(kernels, "SCRATCH_ROWS", kernels.TILE.rows)
        monkeypatch.setattr("golde.evaluation.ranking._ASKED_AT_ONCE", 60)


class Lattice:
    """Entities on a lattice, directions as steps: squared distances are integers, and ties many.

    Coordinates are dealt to the groups two by two; weights are powers of two, so every score is exact.
    """

    def __init__(self, entities: int, groups: int) -> None:
        self.table = torch.randint(0, 3, (entities, 2 * groups), generator=seeded(1)).float()
        self.table = self.table.to(DEVICE)
        steps = torch.randint(-1, 2, (2 * RELATIONS, 2 * groups), generator=seeded(2)).float()
        self.steps, self.weights = steps.to(DEVICE), [2.0, 0.5, 1.0][:groups]

    def queries(self, rows: Tensor, direction: Tensor) -> list[Core]:
        points = (rows + self.steps[direction]).split(2, 1)
        squares = [x.square().sum(1, keepdim=True) for x in points]
        return [
            Core(torch.cat([-2 * x, torch.ones_like(xx), xx], 1)[None], ())
            for x, xx in zip(points, squares, strict=True)
        ]

    def candidates(self, rows: Tensor) -> list[Core]:
        points = rows.split(2, 1)
        squares = [y.square().sum(1, keepdim=True) for y in points]
        return [
            Core(torch.cat([y, yy, torch.ones_like(yy)], 1)[None], ())
            for y, yy in zip(points, squares, strict=True)
        ]

    def score(self, entity: Tensor, direction: Tensor, start: int, stop: int) -> Tensor:
        offset = (self.table[entity] + self.steps[direction])[:, None] - self.table[start:stop]
        weights = torch.tensor(self.weights, device=DEVICE).repeat_interleave(2)
        return -(weights * offset.square()).sum(2)

    def scorer(self) -> Any:
        return kernels.FusedScorer(
            self.score, self.table, self.queries, self.candidates, self.weights, 2
        )


def facts(entities: int, count: int, seed: int) -> Tensor:
    draw = seeded(seed)
    return torch.stack(
        [torch.randint(n, (count,), generator=draw) for n in (entities, RELATIONS, entities)], 1
    )


def asked(entities: int, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries of every direction, many of them asked for several answers."""
    draw = seeded(3)
    sizes = (min(entities, 20), 2 * RELATIONS, entities)
    ids = [torch.randint(n, (count,), generator=draw).to(DEVICE) for n in sizes]
    return ids[0], ids[1], ids[2]


def ranked(score: Scorer, known: KnownFacts, entities: int, count: int, own: bool) -> Ranks:
    return rank_queries(score, *asked(entities, count), known, entities=entities, self_filter=own)


def same(one: Ranks, two: Ranks) -> bool:
    return all(
        torch.equal(getattr(one, name), getattr(two, name))
        for name in ("better", "ties", "candidates", "answer")
    )


@pytest.mark.usefixtures("_spans")
@pytest.mark.parametrize(
    ("entities", "groups", "count", "own"),
    [(*shape, own) for shape in COUNTED for own in (False, True)]
    if CUDA
    else [(1, 1, 1, False), (63, 3, 40, False), (130, 2, 150, True), (200, 1, 1, True)],
)
def test_counts_are_those_of_blocks(entities: int, groups: int, count: int, own: bool) -> None:
    """Ties, answers known and not, one query and many, candidates that fill no tile."""
    lattice = Lattice(entities, groups)
    known = KnownFacts(facts(entities, 4 * entities, 4), entities, RELATIONS)
    expected = ranked(lattice.score, known, entities, count, own)
    scorer = lattice.scorer()
    assert isinstance(scorer, CountingScorer)
    scorer.score = None  # blocks are not asked for
    assert same(ranked(scorer, known, entities, count, own), expected)
    assert count == 1 or expected.ties.sum() > count


@pytest.mark.usefixtures("_spans")
@pytest.mark.parametrize(
    ("entities", "groups", "count", "k"),
    [(*shape, k) for shape in SEARCHED for k in (1, 4, 1000)]
    if CUDA
    else [(1, 1, 1, 4), (63, 3, 70, 1000), (150, 2, 5, 4), (150, 2, 5, 1)],
)
def test_the_best_are_those_of_blocks(entities: int, groups: int, count: int, k: int) -> None:
    """The lower id among equals; nothing but −∞ where more are wanted than are left."""
    lattice = Lattice(entities, groups)
    known = KnownFacts(facts(entities, 20 * entities, 4), entities, RELATIONS).to(DEVICE)
    entity, direction, _ = asked(entities, count)
    ranges = known.ranges(entity, direction)
    scorer = lattice.scorer()
    assert isinstance(scorer, SearchingScorer)
    values, best, doubt = scorer.top(entity, direction, k, ranges)
    scores = lattice.score(entity, direction, 0, entities)
    everyone = torch.arange(entities, device=DEVICE)
    out = known.contains(entity.unsqueeze(1), direction.unsqueeze(1), everyone)
    expected, columns = top_k(scores.masked_fill(out, -torch.inf), k)
    assert torch.equal(best, columns)
    assert torch.allclose(values, expected, atol=1e-9)  # the floor of a distance
    assert not doubt


def test_there_is_always_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """More tiles of queries than a band has, more known answers than are marked at a time."""
    monkeypatch.setattr(kernels, "BAND", 1)
    monkeypatch.setattr(kernels, "MARKS", 32)
    lattice = Lattice(70, 1)
    known = KnownFacts(facts(70, 6000, 4), 70, RELATIONS).to(DEVICE)
    entity, direction, _ = asked(70, 70)
    first, last, base, codes = known.ranges(entity, direction)
    assert (last - first).max() > 32
    _, best, _ = lattice.scorer().top(entity, direction, 3, (first, last, base, codes))
    scores = lattice.score(entity, direction, 0, 70)
    out = known.contains(
        entity.unsqueeze(1), direction.unsqueeze(1), torch.arange(70, device=DEVICE)
    )
    assert torch.equal(best, top_k(scores.masked_fill(out, -torch.inf), 3)[1])


@pytest.mark.parametrize(
    ("signature", "norm"),
    [(signature, norm) for signature in SIGNATURES for norm in (1, 2)]
    if CUDA
    else list(zip(SIGNATURES, (1, 2, 1), strict=True)),
)
def test_counts_of_every_geometry(signature: str, norm: int) -> None:
    """Of a model as it is initialised, where no two scores are close but those of an entity there twice."""
    entities, count = 97, 40 if CUDA else 20
    weights = {letter: 0.5 for letter in signature if letter in "PQ"}
    model = GoldE(
        ModelConfig(signature=signature, norm=norm, weights=weights), entities, RELATIONS
    ).to(DEVICE)

    def fused() -> Any:
        return kernels.FusedScorer(
            None, model.entity, model.queries, model.candidates, model.weights, norm
        )

    def plain(entity: Tensor, direction: Tensor, start: int, stop: int) -> Tensor:
        return model.score(entity, direction, torch.arange(start, stop, device=DEVICE))

    known = KnownFacts(facts(entities, 400, 4), entities, RELATIONS)
    expected = ranked(plain, known, entities, count, True)
    assert same(ranked(fused(), known, entities, count, True), expected)
    with torch.no_grad():
        model.entity[-1] = model.entity[0]
    entity, direction, _ = asked(entities, count)
    nothing = KnownFacts(facts(entities, 0, 4), entities, RELATIONS)
    first = torch.zeros_like(entity)
    twice = rank_queries(fused(), entity, direction, first, nothing, entities=entities)
    assert (twice.ties == 1).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the interpreter
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_a_score_that_is_not_finite_is_found_by_blocks(value: float) -> None:
    lattice = Lattice(70, 2)
    lattice.table[66] = value
    known = KnownFacts(facts(70, 9, 4), 70, RELATIONS)
    with pytest.raises(NonFiniteScoreError, match=r"candidate 66 .*direction 0"):
        ranked(lattice.scorer(), known, 70, 20, False)
    entity, direction, _ = asked(70, 20)
    ranges = known.to(DEVICE).ranges(entity, direction)
    assert lattice.scorer().top(entity, direction, 3, ranges)[2]


def test_answers_scored_otherwise_are_left_to_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The distance of an answer must be that of the tile that holds it, to the bit."""
    lattice = Lattice(70, 2)
    known = KnownFacts(facts(70, 300, 4), 70, RELATIONS)
    scorer = lattice.scorer()
    plain = scorer._true_distances
    monkeypatch.setattr(
        scorer,
        "_true_distances",
        lambda *a: torch.nextafter(plain(*a), torch.zeros((), device=DEVICE)),
    )
    expected = ranked(lattice.score, known, 70, 40, False)
    assert same(ranked(scorer, known, 70, 40, False), expected)


@pytest.mark.parametrize("known", ["drop", "mark"])
def test_predictions_are_those_of_blocks(known: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"e{i}" for i in range(80)]
    triples = [(names[h], f"r{r}", names[t]) for h, r, t in facts(80, 600, 5).tolist()]
    graph = KnowledgeGraph.from_triples(triples)
    model = GoldE(ModelConfig(signature="P3x2 Q3x2"), len(graph.entities), 2).to(DEVICE)
    queries = [Query(f"e{i}", "r0") for i in range(9)] + [Query(None, "r1", "e3")]
    monkeypatch.setenv("GOLDE_KERNELS", "plain")
    blocks = Predictor(model, graph, top=7, known=known)
    assert blocks.searcher is None
    expected = list(blocks.stream(queries))
    monkeypatch.setattr("golde.models.golde.supports", lambda *_: True)
    search = Predictor(model, graph, top=7, known=known)
    assert search.searcher is not None
    monkeypatch.setattr(Predictor, "_best_of_blocks", None)
    for one, two in zip(search.stream(queries), expected, strict=True):
        assert [(p.fact, p.known) for p in one] == [(p.fact, p.known) for p in two]
        assert [p.score for p in one] == pytest.approx([p.score for p in two], rel=1e-5)


def test_what_the_kernels_cannot_do_is_scored_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("golde.models.golde.supports", lambda *_: True)
    many, few = (
        GoldE(ModelConfig(signature=signature), 5, 1).scorer()
        for signature in ("E2x1 P2x1 Q2x1 E3x1", "P3x2")
    )
    assert not isinstance(many, CountingScorer)
    assert isinstance(few, CountingScorer)


@pytest.mark.usefixtures("_spans")
@pytest.mark.parametrize(
    ("_spans", "reciprocal", "bias", "loop_bias"),
    [
        (spans, reciprocal, *which)
        for spans in SPANS
        for reciprocal in (True, False)
        for which in ((True, False), (False, True), (True, True))
    ]
    if CUDA
    else [
        ("at once", True, True, False),
        ("in spans", True, False, True),
        ("in spans", False, True, True),
    ],
    indirect=["_spans"],
)
def test_biases_count(
    reciprocal: bool, bias: bool, loop_bias: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of both directions, so large that they decide; in ranks and among the best."""
    entities, signature = (131, "P3x2 Q3x1") if CUDA else (70, "P3x1 Q3x1")
    count = 70
    biases = {"bias": bias, "loop_bias": loop_bias}
    config = ModelConfig(signature=signature, reciprocal=reciprocal, **biases)
    model = GoldE(config, entities, RELATIONS).to(DEVICE)
    with torch.no_grad():
        for seed, name in enumerate(("query_bias", "answer_bias", "loop_bias")):
            if hasattr(model, name):
                values = getattr(model, name)
                values.copy_(torch.randn(len(values), generator=seeded(seed)))
    known = KnownFacts(facts(entities, 400, 4), entities, RELATIONS)
    monkeypatch.setenv("GOLDE_KERNELS", "plain")
    plain = model.scorer()
    assert not isinstance(plain, CountingScorer)
    monkeypatch.setattr("golde.models.golde.supports", lambda *_: True)
    scorer = model.scorer()
    assert isinstance(scorer, SearchingScorer)
    own = not loop_bias  # else those would not be seen
    expected = ranked(plain, known, entities, count, own)
    monkeypatch.setattr(scorer, "score", None)
    assert same(ranked(scorer, known, entities, count, own), expected)
    entity, direction, _ = asked(entities, count)
    nothing = KnownFacts(facts(entities, 0, 4), entities, RELATIONS).to(DEVICE)
    values, best, _ = scorer.top(entity, direction, 9, nothing.ranges(entity, direction))
    highest, columns = top_k(plain(entity, direction, 0, entities), 9)
    assert torch.equal(best, columns)
    torch.testing.assert_close(values, highest, rtol=1e-5, atol=1e-5)
