"""Figures of learned maps, against parameters set by hand."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from golde.analysis.relation_geometry import relation_geometry
from golde.config import ModelConfig
from golde.data import synthetic
from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError, MissingExtraError
from golde.geometry.constraints import POSITIVE_RANGE, positive
from golde.models import GoldE, build
from golde.report.geometry_plots import disk, draw_geometry
from oracles import randomised, set_rows

GRAPH = KnowledgeGraph.from_triples(
    [("a", "r", "b"), ("b", "r", "c"), ("c", "s", "d")], test=[("a", "unseen", "d")]
)


def free(value: float) -> float:
    """The free parameter that ``positive`` takes to a value."""
    limit = math.log(POSITIVE_RANGE)
    return limit * math.atanh(math.log(value) / limit)


def turning(degrees: float) -> Tensor:
    """Two reflections that make a rotation of the plane by twice the angle between them."""
    half = math.radians(degrees / 2)
    return torch.tensor([[1.0, 0.0], [math.cos(half), math.sin(half)]])


def model(**settings: Any) -> GoldE:
    config = ModelConfig(signature="P2x2 Q3x2", **settings)
    return randomised(GoldE(config, len(GRAPH.entities), len(GRAPH.relations)), seed=0)


def test_figures_are_those_of_the_parameters() -> None:
    made = model()
    elliptic, hyperbolic = made.groups
    with torch.no_grad():
        for i, (stretch, curvature, size, angle) in enumerate(
            ((2, 0.5, 0.25, 30), (3, 4, 1.5, 170))
        ):
            elliptic.free_p[1, i] = torch.tensor([free(1.0), free(stretch**2)])
            hyperbolic.free_beta[1, i] = free(1 / curvature)
            hyperbolic.b[1, i] = size * torch.tensor([0.6, 0.8])
            set_rows(hyperbolic.rotation, 1, i, turning(angle))
    assert positive(torch.tensor(free(4.0))) == pytest.approx(4.0)
    (found,) = relation_geometry(made, GRAPH, [1])
    assert (found.relation, found.facts) == ("s", 1)
    P, Q = found.groups
    assert P.stretch is not None
    assert P.stretch.tolist() == pytest.approx([2, 3])
    assert Q.curvature is not None
    assert Q.curvature.tolist() == pytest.approx([-0.5, -4])
    assert Q.boost is not None
    assert Q.boost.tolist() == pytest.approx([0.25, 1.5])
    assert Q.angles.flatten().tolist() == pytest.approx([30, 30, 170, 170])
    assert Q.determinant.tolist() == [1, 1]
    assert P.curvature is Q.stretch is None
    assert found.pooled("stretch").tolist() == pytest.approx([2, 3])


def test_angles_of_elliptic_maps_are_those_in_the_round() -> None:
    """An ellipsoid's rotation by 50 degrees turns by 50, however the axes are stretched."""
    made = model()
    elliptic = made.groups[0]
    p = torch.tensor([1.0, 9.0]).double()
    with torch.no_grad():
        elliptic.free_p[0, 0] = torch.tensor([free(value) for value in p.tolist()])
        set_rows(elliptic.rotation, 0, 0, turning(50).double() / p.sqrt())
    angles = relation_geometry(made, GRAPH, [0])[0].groups[0].angles
    assert angles[0].tolist() == pytest.approx([50, 50])


@pytest.mark.parametrize(("reflections", "signs"), [("k", [1, 1]), ("k-1", [-1, -1])])
def test_the_number_of_reflections_decides_the_determinant(
    reflections: Any, signs: list[int]
) -> None:
    for group in relation_geometry(model(reflections=reflections), GRAPH)[0].groups:
        assert group.determinant.tolist() == signs


def test_all_relations_are_described_also_one_without_facts() -> None:
    found = relation_geometry(model(), GRAPH)
    assert [one.relation for one in found] == ["r", "s", "unseen"]
    assert found[2].facts == 0
    assert all(one.involution_error > 0 for one in found)
    brief, whole = (found[0].as_dict(components=full) for full in (False, True))
    assert set(brief["groups"][1]["curvature"]) == {"min", "median", "max"}
    assert len(whole["groups"][1]["curvature"]["components"]) == 2
    json.dumps(whole)


def test_a_baseline_has_no_geometry() -> None:
    transe = build(ModelConfig(kind="transe", numbers=4), 4, 3)
    with pytest.raises(GoldeError, match="'transe' has no curved components"):
        relation_geometry(transe, GRAPH)


def test_a_disk_shows_true_radii_where_nothing_is_projected_away() -> None:
    """With two numbers a component, the disk has all of them."""
    made = model()
    seen = disk(made, GRAPH, 1)
    assert seen is not None
    assert seen.kept == pytest.approx(1)
    component = int(seen.component[-1]) - 1
    beta = made.geometries[1].maps(torch.tensor([1])).beta[0, component].detach()
    tail = made.entity[GRAPH.entities.id("d")].detach()[4:].view(2, 2)[component]
    expected = torch.tanh(tail.norm() / (2 * beta.sqrt()))
    assert float(seen.tails.norm()) == pytest.approx(float(expected))
    assert seen.curvature == pytest.approx(-1 / float(beta))
    assert disk(made, GRAPH, 2) is None


@pytest.mark.parametrize(
    ("signature", "pictures"),
    [
        ("P2x2 Q3x2", {"poincare", "ellipsoids", "rotations"}),
        ("E3", {"rotations"}),
        ("Q2", {"poincare", "rotations"}),
    ],
)
def test_pictures_of_what_the_space_has(
    signature: str, pictures: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    graph = synthetic.symmetric(copies=2)
    made = GoldE(ModelConfig(signature=signature), len(graph.entities), len(graph.relations))
    found = relation_geometry(made, graph)
    drawn = draw_geometry(tmp_path / "new" / "folder", made, graph, found)
    assert {path.stem for path in drawn} == pictures
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match="plots"):
        draw_geometry(tmp_path / "other", made, graph, found)
    assert not (tmp_path / "other").exists()
