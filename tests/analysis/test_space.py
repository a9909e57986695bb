from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from golde.analysis.picture import draw_map
from golde.analysis.space import entity_distances, neighbour_map
from golde.config import ModelConfig
from golde.errors import MissingExtraError
from golde.models import GoldE


def test_distances_add_up_over_components() -> None:
    model = GoldE(ModelConfig(signature="P3x2 Q4"), 5, 1)
    found = entity_distances(model, torch.tensor([4, 1]))
    difference = (model.entity[4] - model.entity[1]).detach().double()
    expected = sum(part.norm() for part in difference.split(3))
    torch.testing.assert_close(found, torch.tensor([[0.0, 1.0], [1.0, 0.0]]).double() * expected)


def test_neighbours_stay_neighbours_on_the_map() -> None:
    """Three clusters in ten dimensions, as far apart as they are wide; the same map every time."""
    generator = torch.Generator().manual_seed(0)
    centres = 6 * torch.eye(3, 10).repeat_interleave(20, 0)
    space = torch.randn(60, 10, generator=generator) + centres
    points = neighbour_map(torch.cdist(space, space), perplexity=10)
    apart = torch.cdist(points, points).fill_diagonal_(torch.inf)
    cluster = torch.arange(60) // 20
    assert (cluster[apart.argmin(1)] == cluster).all()
    assert torch.equal(points, neighbour_map(torch.cdist(space, space), perplexity=10))


@pytest.mark.parametrize("count", [2, 3, 7])
def test_few_points_have_a_map_too(count: int) -> None:
    space = torch.arange(count).double().unsqueeze(1)
    assert neighbour_map(torch.cdist(space, space)).isfinite().all()


def test_a_picture_is_drawn_or_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = torch.tensor([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0]])
    whole = points, ["a", "b [c]", "ü"], {"first": [0, 1], "second": [2]}, [(0, 1)]
    draw_map(tmp_path / "map.png", *whole, title="A map")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match="plots"):
        draw_map(tmp_path / "other.png", *whole)
    assert not (tmp_path / "other.png").exists()
