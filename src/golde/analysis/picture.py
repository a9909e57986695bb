"""Drawing a map of entities. Needs the extra ``plots``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from golde.errors import MissingExtraError

COLOURS = ("#4269d0", "#e8912d", "#3ca951", "#d1495b", "#8f5fbf", "#3aa6a6", "#97785c", "#8a8f98")
"""Groups beyond the last share the last one."""

SIDES = (
    ((5, 0), "left", "center_baseline"),
    ((-5, 0), "right", "center_baseline"),
    ((0, 4), "center", "bottom"),
    ((0, -4), "center", "top"),
)
"""Where a name may stand beside its point, and how it is set there; the first with room is taken."""


def draw_map(
    path: str | Path,
    points: Tensor,
    names: Sequence[str],
    groups: Mapping[str, Sequence[int]],
    links: Sequence[tuple[int, int]] = (),
    *,
    title: str = "",
    caption: str = "",
) -> None:
    """Draw points (n, 2) in the colours of their groups, joined by links, and write a PNG.

    Points are named in the order given as far as there is room, so the first ones should matter
    most.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.collections import LineCollection
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("drawing a picture", "plots") from None
    figure = Figure(figsize=(11, 8.5), dpi=140, facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.02, 0.04, 0.96, 0.90))
    x, y = points.T.tolist()
    lines = LineCollection([[(x[i], y[i]) for i in link] for link in links])
    lines.set(color="#d3d6db", linewidth=0.6, zorder=1)
    axes.add_collection(lines)
    for i, (group, members) in enumerate(groups.items()):
        at = [x[m] for m in members], [y[m] for m in members]
        colour = COLOURS[min(i, len(COLOURS) - 1)]
        axes.scatter(
            *at, s=34, color=colour, edgecolor="white", linewidth=0.6, label=group, zorder=2
        )
    axes.set_axis_off()
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.06)
    axes.set_title(title, loc="left", fontsize=15, fontweight="bold", color="#222")
    axes.legend(loc="best", frameon=False, fontsize=10, handletextpad=0.2)
    figure.text(0.02, 0.015, caption, fontsize=8.5, color="#666")
    _name_points(figure, axes, list(zip(x, y, strict=True)), names)
    figure.savefig(path, format="png")


def _name_points(
    figure: Any, axes: Any, places: Sequence[tuple[float, float]], names: Sequence[str]
) -> None:
    """Names beside their points, on a side with room; where there is none, no name."""
    from matplotlib import patheffects
    from matplotlib.transforms import Bbox

    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    dots = axes.transData.transform(places)
    taken = [Bbox.from_extents(x - 5, y - 5, x + 5, y + 5) for x, y in dots]
    halo = [patheffects.withStroke(linewidth=1.6, foreground="white")]
    for i, name in enumerate(names):
        others = taken[:i] + taken[i + 1 :]
        for offset, horizontal, vertical in SIDES:
            text = axes.annotate(
                name,
                places[i],
                offset,
                textcoords="offset points",
                horizontalalignment=horizontal,
                verticalalignment=vertical,
                fontsize=7,
                color="#333",
                zorder=3,
                path_effects=halo,
            )
            box = text.get_window_extent(renderer)
            if not any(box.overlaps(other) for other in others):
                taken.append(box)
                break
            text.remove()
