"""Pictures show what they claim to: rings around all points, trials where their settings had a say."""

from __future__ import annotations

from typing import Any

import pytest
import torch

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from golde.report.geometry_plots import Disk, _disk, _rings
from golde.report.search_plot import Dot, _scatter

WEIGHT, PENALTY = "training.regulariser_weight", "training.regulariser"


@pytest.mark.parametrize("farthest", [0.0, 0.004, 0.03, 0.1, 0.26, 0.31, 0.71, 0.999])
def test_the_largest_ring_holds_all_points_and_hardly_more(farthest: float) -> None:
    radii = _rings(farthest)
    assert radii == sorted(radii)
    assert len(radii) <= 5
    assert radii[-1] <= 1
    step = radii[0]
    assert farthest <= radii[-1] < farthest + step + 1e-9


def test_figures_on_the_rings_keep_clear_of_the_points() -> None:
    """All points lie above the centre, so the figures do not."""
    points = torch.tensor([[0.02 * i, 0.2] for i in range(-5, 6)], dtype=torch.float64)
    ax = Figure().subplots()
    _disk(ax, "r", Disk("Q3 #1", -1.0, points, points + 0.01, 0.9))
    places = [note.xy for note in ax.texts]
    assert len(places) == len(_rings(0.237))
    assert all(y < 0 for _, y in places)


def drawn(ax: Any) -> list[tuple[float, float]]:
    """The trials on a panel, the ring around the best left out."""
    return [tuple(at) for dots in ax.collections[:2] for at in dots.get_offsets().tolist()]


def test_a_trial_without_a_penalty_has_no_weight_to_be_drawn_at() -> None:
    points = [{PENALTY: kind, WEIGHT: 0.25} for kind in ("none", "norm", "n3")]
    dots = [Dot(point, 0.1 * i, True) for i, point in enumerate(points)]
    ax = Figure().subplots()
    _scatter(ax, WEIGHT, dots, points[0], log=True)
    assert drawn(ax) == [(0.25, 0.1), (0.25, 0.2)]
    assert len(ax.collections) == 2  # the best had no penalty: no ring
    ax = Figure().subplots()
    _scatter(ax, WEIGHT, dots[:1], points[0], log=True)
    assert [text.get_text() for text in ax.texts] == ["no trial had a penalty"]


def test_dimensions_are_shown_as_they_are() -> None:
    name = "signature.log2_dimension"
    dots = [Dot({name: power}, 0.1 * power, True) for power in (1, 3, 4)]
    ax = Figure().subplots()
    _scatter(ax, name, dots, dots[-1].point, log=False)
    assert [x for x, _ in drawn(ax)] == [2, 8, 16]
    assert ax.get_xticks().tolist() == [2, 8, 16]
    assert ax.get_xlabel() == "dimension"
