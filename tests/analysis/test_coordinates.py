"""A view of a component shows what is true of it."""

from __future__ import annotations

import math

import pytest
import torch

from golde.analysis.components import distances_from, nearest
from golde.analysis.coordinates import component_names, groups, view
from golde.config import ModelConfig
from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError
from golde.models import GoldE, build

ALL = torch.arange(60)


@pytest.fixture(scope="module")
def model() -> GoldE:
    """Random, with maps, weights and curvatures that differ from the start."""
    found = build(ModelConfig(signature="E2x1 P5x2 Q3x2", init_scale=0.6), 60, 3, seed=1)
    assert isinstance(found, GoldE)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, parameter in found.named_parameters():
            if "free" in name or name.endswith(".b"):
                parameter.normal_(0, 0.5, generator=generator)
    return found


def test_distances_from_the_centre_of_a_disk_are_hyperbolic(model: GoldE) -> None:
    """With two numbers a component nothing is projected away: ``2√β·artanh r`` is the distance."""
    seen = view(model, 3, ALL, relation=1)
    assert (seen.component, seen.geometry) == ("Q3 #1", "hyperbolic")
    assert seen.kept == pytest.approx(1)
    assert seen.curvature is not None
    root = math.sqrt(-1 / seen.curvature)
    beta = model.geometries[2].maps(torch.tensor([1])).beta[0, 0]
    assert root == pytest.approx(float(beta.detach()) ** 0.5)
    radius = seen.points.norm(dim=1)
    assert float(radius.max()) < 1
    torch.testing.assert_close(2 * root * torch.atanh(radius), seen.depth, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(seen.depth, model.entity[:, 12:14].detach().norm(dim=1))


def test_moved_points_of_a_disk_keep_their_distances(model: GoldE) -> None:
    """A map is an isometry: ``cosh d`` between points of the disk is what it was."""

    def distances(points: torch.Tensor) -> torch.Tensor:
        gap = torch.cdist(points.double(), points.double()).square()
        room = 1 - points.double().square().sum(1)
        return 2 * gap / (room[:, None] * room)

    still = view(model, 4, ALL, relation=2)
    moved = view(model, 4, ALL, relation=2, moved=True)
    assert not torch.allclose(still.points, moved.points, atol=1e-2)
    torch.testing.assert_close(
        distances(still.points), distances(moved.points), rtol=1e-3, atol=1e-4
    )


def test_an_ellipsoid_stands_straight_and_holds_half_of_the_points(model: GoldE) -> None:
    seen = view(model, 1, ALL, relation=0)
    assert seen.semi_axes is not None
    inside = (seen.points / torch.tensor(seen.semi_axes)).square().sum(1) <= 1 + 1e-5
    assert int(inside.sum()) == 30
    p = model.geometries[1].maps(torch.tensor([0])).p[0, 0].detach()
    rows = model.entity[:, 2:7].detach()
    torch.testing.assert_close(seen.depth, (rows.square() @ p).sqrt())
    for column in seen.points.T:  # coordinates themselves, no mixture of them
        assert any(torch.allclose(column, rows[:, i]) for i in range(5))
    # The map moves every point along its own ellipsoid.
    moved = view(model, 1, ALL, relation=0, moved=True)
    torch.testing.assert_close(moved.depth, seen.depth, rtol=1e-4, atol=1e-5)


def test_views_of_some_agree_with_the_view_of_all(model: GoldE) -> None:
    some = torch.tensor([3, 30, 59])
    for component in range(5):
        whole = view(model, component, ALL)
        torch.testing.assert_close(view(model, component, some).points, whole.points[some])


def test_a_small_space_has_an_empty_third_axis(model: GoldE) -> None:
    seen = view(model, 0, ALL)
    assert seen.points.shape == (60, 3)
    assert not seen.points[:, 2].any()
    assert seen.kept == pytest.approx(1)


def test_components_are_counted_and_others_refused(model: GoldE) -> None:
    assert component_names(model) == ["E2 #1", "P5 #1", "P5 #2", "Q3 #1", "Q3 #2"]
    assert [view(model, i, ALL).component for i in range(5)] == component_names(model)
    for wrong in (5, -1):
        with pytest.raises(GoldeError, match="has 5"):
            view(model, wrong, ALL)
    with pytest.raises(GoldeError, match="name one"):
        view(model, 0, ALL, moved=True)


def test_entities_are_grouped_by_what_they_do_or_by_a_relation() -> None:
    facts = [(f"city{i}", "in", "Here" if i < 25 else f"Land{i}") for i in range(50)]
    facts += [("city0", "twin", "city1"), ("city0", "twin", "city2"), ("lone", "twin", "city3")]
    graph = KnowledgeGraph.from_triples(facts)
    role, names = groups(graph)
    assert [names[i] for i in role[graph.entities.ids(["city9", "city0", "Here", "lone"])]] == [
        "in →",
        "twin →",
        "→ in",
        "twin →",
    ]
    place, names = groups(graph, graph.relations.id("in"))
    assert (names[0], names[-1], len(names)) == ("Here", "other", 21)
    at = place[graph.entities.ids(["city1", "city49", "Here"])].tolist()
    assert (at[0], at[2]) == (0, -1)
    assert at[1] in range(1, 21)


def test_the_nearest_are_those_with_the_smallest_distances(model: GoldE) -> None:
    far = distances_from(model, 7)
    order = [i for i in far.argsort().tolist() if i != 7]
    assert [i for i, _ in nearest(model, 7, 5)] == order[:5]
    assert len(nearest(model, 7, 500)) == 59
