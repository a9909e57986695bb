"""The paper's Figures 3 and 4, ours drawn over what was published. Needs the extra ``plots``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from golde.geometry import GEOMETRIES
from golde.report.drawing import BLUE, FAINT, ORANGE, bare, save, style
from golde.report.paper import GRAPHS, Curve, PaperTables, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {"E": "#8a6d3b", "P": BLUE, "Q": ORANGE}


def write_plots(evidence: PaperTables, folder: Path) -> list[Path]:
    """Draw both figures into a folder, each as PNG and SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with style():
        for name, draw in (("figure3", figure3), ("figure4", figure4)):
            picture = draw(evidence)
            written += [save(picture, folder / f"{name}.{kind}") for kind in ("png", "svg")]
    return written


def figure3(evidence: PaperTables) -> Figure:
    """MRR by the dimension of equal spaces, one panel a graph."""
    published = paper()["figure3"]
    picture, panels = _panels(len(published))
    on = evidence.ranked_on("figure3")
    for ax, (graph, curves) in zip(panels, published.items(), strict=True):
        ours = evidence.dimension_curves(graph)
        for letter, points in curves.items():
            _draw(ax, dict(points), ours[letter], COLOURS[letter], GEOMETRIES[letter].word, on)
        _finish(ax, GRAPHS[graph], "dimension of a space", any(ours.values()))
        ax.set_xticks([place for place, _ in points])
    return picture


def figure4(evidence: PaperTables) -> Figure:
    """MRR by the numbers an entity has, on WN18RR."""
    published, ours = paper()["figure4"], evidence.size_curve()
    picture, (ax,) = _panels(1)
    colours = {"MuRP": COLOURS["E"], "RotH": COLOURS["P"], "GoldE": COLOURS["Q"]}
    for model, points in published.items():
        mine = ours if model == "GoldE" else {}
        _draw(ax, dict(points), mine, colours[model], model, evidence.ranked_on("figure4"))
    ax.set_xscale("log")
    _finish(ax, GRAPHS["wn18rr"], "numbers an entity", bool(ours))
    places = [place for place, _ in points]
    ax.set_xticks(places, [f"{place:g}" for place in places])
    ax.minorticks_off()
    return picture


def _panels(count: int) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    picture = Figure(figsize=(4.8 * count, 3.6), facecolor="white")
    return picture, picture.subplots(1, count, squeeze=False)[0]


def _draw(ax: Axes, published: Curve, ours: Curve, colour: str, name: str, on: str) -> None:
    """What was published as a dotted line, ours as a solid one."""
    line: dict[str, Any] = {"color": colour, "markersize": 4.5}
    ax.plot(*_points(published), "o:", linewidth=1.4, alpha=0.7, label=f"{name}, published", **line)
    if ours:
        ax.plot(*_points(ours), "o-", linewidth=1.8, label=f"{name}, ours on {on}", **line)


def _points(curve: Curve) -> tuple[list[float], list[float]]:
    places = sorted(curve)
    return places, [curve[place] for place in places]


def _finish(ax: Axes, title: str, below: str, has_ours: bool) -> None:
    ax.set_title(title if has_ours else f"{title} (ours: not run)", fontsize=10)
    ax.set_xlabel(below, fontsize=9)
    ax.set_ylabel("MRR", fontsize=9)
    bare(ax)
    ax.grid(True, color=FAINT)
    ax.legend(frameon=False, fontsize=8, loc="lower right")
