"""Several hops: exact where maps are, beams against all paths, how paths are written, what is known."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch

from golde.config import ModelConfig
from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError
from golde.inference import Run
from golde.inference.paths import (
    answer_path,
    beam_scores,
    composed_scores,
    parse_path,
    reached,
    reversed_path,
)
from golde.models import Model, build
from oracles import randomised

LENGTH = 12


def ring_graph() -> KnowledgeGraph:
    """A ring in which every step but one is known."""
    steps = [(f"e{i}", "next", f"e{(i + 1) % LENGTH}") for i in range(LENGTH)]
    return KnowledgeGraph.from_triples(steps[:-1], test=steps[-1:], name="ring")


def ring_model() -> Any:
    """Fits the ring exactly: one turn of 2π/12 in the plane, two reflections half as far apart."""
    model: Any = build(ModelConfig(signature="E2", reciprocal=False), LENGTH, 1).double()
    with torch.no_grad():
        half = math.pi / LENGTH
        rows = [[1.0, 0.0], [math.cos(half), math.sin(half)]]
        model.groups[0].rotation.U[0, 0, 0] = torch.tensor(rows)
        turns = 2 * math.pi * torch.arange(LENGTH).double() / LENGTH
        model.entity.copy_(torch.stack((turns.cos(), turns.sin()), 1))
    return model


def random_model(**settings: Any) -> Model:
    model: Model = build(ModelConfig(signature="P3x2 Q4", **settings), 6, 2)
    return randomised(model, seed=5, scale=0.6)


@pytest.mark.parametrize("beam", [None, 3])
@pytest.mark.parametrize(
    ("path", "shift"),
    [("next", 1), ("next,next", 2), ("next,next,next", 3), ("^next,^next", -2), ("next,^next", 0)],
)
def test_a_ring_is_walked_as_far_as_the_path_goes(path: str, shift: int, beam: int | None) -> None:
    graph, model = ring_graph(), ring_model()
    directions = parse_path(path, graph)
    model.weights = [30.0]  # probabilities near 0 and 1, so that no sum over paths outdoes the one
    for i in range(LENGTH):
        (found,) = answer_path(model, graph, f"e{i}", directions, beam=beam, top=1)
        assert found.answer == f"e{(i + shift) % LENGTH}"
        if beam:
            signs = [-1 if hop.startswith("^") else 1 for hop in path.split(",")]
            places = [*itertools.accumulate(signs, initial=i)][1:-1]
            assert found.via == tuple(f"e{place % LENGTH}" for place in places)


@pytest.mark.parametrize("reciprocal", [False, True])
def test_one_hop_is_an_ordinary_query(reciprocal: bool) -> None:
    model = random_model(reciprocal=reciprocal, bias=True)
    entity = torch.arange(6).repeat(4)
    direction = torch.arange(4).repeat_interleave(6)
    scores = model.score(entity, direction)
    composed = composed_scores(model, entity, direction.unsqueeze(1))
    apart = scores - composed  # the query's own bias
    torch.testing.assert_close(apart, apart[:, :1].expand_as(apart))
    by_beam, via = beam_scores(model, entity, direction.unsqueeze(1), 2)
    torch.testing.assert_close(by_beam, torch.log_softmax(scores, 1))
    assert via.shape == (24, 6, 0)


def test_composed_maps_take_each_relation_with_its_own_geometry() -> None:
    model = random_model(reciprocal=False)
    entity, directions = torch.tensor([1, 4]), torch.tensor([[0, 3, 1], [2, 0, 0]])
    rows = model.entity[entity]
    for direction in directions[:, :2].T:
        rows = model.transport(rows, direction)
    expected = model.score_points(rows, directions[:, 2])
    torch.testing.assert_close(composed_scores(model, entity, directions), expected)


@pytest.mark.parametrize("hops", [2, 3])
def test_a_beam_of_everything_is_the_sum_over_all_paths(hops: int) -> None:
    """And its path the most probable of all, each probability a product of softmaxes."""
    model, path = random_model(reciprocal=True), [0, 3, 1][:hops]
    tables = [model.score(torch.arange(6), torch.full((6,), d)).softmax(1).detach() for d in path]
    directions = torch.tensor([path]).expand(6, -1)
    scores, via = beam_scores(model, torch.arange(6), directions, 100)
    product = torch.linalg.multi_dot(tables)
    torch.testing.assert_close(scores.exp(), product)
    for start, end in itertools.product(range(6), range(6)):

        def probability(middle: tuple[int, ...], start: int = start, end: int = end) -> float:
            places = (start, *middle, end)
            steps = zip(tables, itertools.pairwise(places), strict=True)
            return math.prod(float(table[a, b]) for table, (a, b) in steps)

        best = max(itertools.product(range(6), repeat=hops - 1), key=probability)
        assert tuple(via[start, end].tolist()) == best


def test_a_narrow_beam_keeps_the_most_probable() -> None:
    model, directions = random_model(), torch.tensor([[0, 1]])
    scores, via = beam_scores(model, torch.tensor([2]), directions, 1)
    first = torch.log_softmax(model.score(torch.tensor([2]), torch.tensor([0])), 1)[0]
    middle = int(first.argmax())
    assert (via == middle).all()
    second = torch.log_softmax(model.score(torch.tensor([middle]), torch.tensor([1])), 1)[0]
    torch.testing.assert_close(scores[0], first[middle] + second)


def test_paths_are_written_with_commas_and_carets() -> None:
    names = ["by", "of, or by", "^up", "up"]
    graph = KnowledgeGraph.from_triples([("a", name, "b") for name in names])
    R = len(names)
    assert parse_path("by,^by, up⁻¹ ,of, or by", graph) == [0, R, 3 + R, 1]
    assert parse_path("^of, or by,^up", graph) == [1 + R, 2]  # a name as it stands comes first
    assert reversed_path([0, 3 + R, 1], R) == [1 + R, 3, R]
    for wrong, named in (("by,upp", "'upp'; did you mean 'up'"), ("^by⁻¹", "'by⁻¹'")):
        with pytest.raises(GoldeError, match="unknown relation") as caught:
            parse_path(wrong, graph)
        assert named in str(caught.value)
    for wrong in ("", ",", "by,,up", "by, ^"):
        with pytest.raises(GoldeError, match="a hop is empty"):
            parse_path(wrong, graph)


def test_known_ends_are_those_that_facts_lead_to() -> None:
    graph, model = ring_graph(), ring_model()
    assert reached(graph, 10, [0, 0]).tolist() == [0]
    assert reached(graph, 10, [0, 0], "train").tolist() == []  # the step over the end is held out
    assert reached(graph, 3, [0, 0, 1]).tolist() == [4]
    marked = answer_path(model, graph, "e3", [0, 0], top=LENGTH)
    assert [found.answer for found in marked if found.known] == ["e5"]
    dropped = answer_path(model, graph, "e3", [0, 0], top=LENGTH, known="drop")
    assert [found.answer for found in dropped] == [m.answer for m in marked if not m.known]
    kept = answer_path(
        model, graph, "e3", [0, 0], top=2, known="keep", candidates=["e1", "e10", "e4"]
    )
    assert [(found.answer, found.known) for found in kept] == [("e4", None), ("e1", None)]


def test_from_a_tail_the_path_is_walked_back(paper_run: Run) -> None:
    """Last hop first, each the other way."""
    back = paper_run.predict_path("next,^twin", tail="q3", top=50)
    turned = paper_run.predict_path("twin,^next", head="q3", top=50)
    assert back == turned


def test_mistakes_are_named(run: Run, diverged: Run) -> None:
    for ends in ({}, {"head": "p0", "tail": "p1"}):
        with pytest.raises(GoldeError, match="either head or tail"):
            run.predict_path("next", **ends)
    with pytest.raises(GoldeError, match="unknown entity 'p99'"):
        run.predict_path("next", head="p99")
    with pytest.raises(GoldeError, match="beam is 0"):
        run.predict_path("next", head="p0", beam=0)
    with pytest.raises(GoldeError, match="top is 0"):
        run.predict_path("next", head="p0", top=0)
    with pytest.raises(GoldeError, match="known is 'yes'"):
        run.predict_path("next", head="p0", known="yes")
    for beam in (None, 2):
        with pytest.raises(GoldeError, match="diverged"):
            diverged.predict_path("next,next", head="p0", beam=beam)
