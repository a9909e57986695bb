"""The picture of a comparison of runs. Needs the extra ``plots``."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from golde.report.compare import Comparison
from golde.report.drawing import BLUE, FAINT, INK, ORANGE, SOFT, bare, save, short, style
from golde.runs.atomic import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = (BLUE, ORANGE, "#3ca951", "#8f5fbf", "#3aa6a6", "#97785c", SOFT)
"""Runs beyond the last share the last one."""

RELATIONS_SHOWN = 15
SIGNIFICANT = 0.05


def draw_comparison(found: Comparison, path: Path) -> None:
    """MRR of each run, its difference from the first, and MRR by relation, as PNG or SVG."""
    with style(), TemporaryDirectory() as folder:
        from matplotlib.figure import Figure

        relations = min(len(found.runs[0].found.relations), RELATIONS_SHOWN)
        top, bottom = 1.0 + 0.42 * len(found.runs), 0.9 + 0.30 * relations
        picture = Figure(figsize=(9.6, top + bottom), facecolor="white")
        grid = picture.add_gridspec(2, 2, height_ratios=[top, bottom])
        _figures(picture.add_subplot(grid[0, 0]), found)
        _differences(picture.add_subplot(grid[0, 1]), found)
        _relations(picture.add_subplot(grid[1, :]), found)
        drawn = save(picture, Path(folder, "comparison").with_suffix(path.suffix.lower()))
        with replacing(path) as new:
            new.write_bytes(drawn.read_bytes())


def _colour(place: int) -> str:
    return COLOURS[min(place, len(COLOURS) - 1)]


def _rows(ax: Axes, names: list[str]) -> None:
    """Rows from top to bottom, with their names."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    bare(ax)
    ax.grid(True, axis="x", color=FAINT)


def _figures(ax: Axes, found: Comparison) -> None:
    """MRR over both sides with its 95% interval, heads and tails as ◂ and ▸."""
    for i, run in enumerate(found.runs):
        metrics = run.found.metrics
        low, high = metrics["both"]["intervals"]["mrr"]
        ax.plot([low, high], [i, i], color=_colour(i), linewidth=2.2, solid_capstyle="round")
        ax.plot(metrics["both"]["mrr"], i, "o", color=_colour(i), markersize=7)
        for side, marker in (("head", "<"), ("tail", ">")):
            ax.plot(metrics[side]["mrr"], i, marker, color=SOFT, markersize=5, zorder=1)
    _rows(ax, [f"{run.letter}  {short(run.path.resolve().name)}" for run in found.runs])
    ax.set_title(f"MRR on {found.protocol.split} (◂ heads, ▸ tails), 95% intervals", fontsize=10)


def _differences(ax: Axes, found: Comparison) -> None:
    """What each run gains over the first; hollow where it may well be chance."""
    first, *others = found.runs
    ax.axvline(0, color=INK, linewidth=1)
    for i, run in enumerate(others, 1):
        tested = run.against_first["mrr"]
        ax.plot(tested["interval"], [i, i], color=_colour(i), linewidth=2.2)
        inside = _colour(i) if tested["p_holm"] < SIGNIFICANT else "white"
        ax.plot(
            tested["difference"], i, "o", color=_colour(i), markerfacecolor=inside, markersize=7
        )
    ax.locator_params(axis="x", nbins=5)
    _rows(ax, [first.letter, *(f"{run.letter} − {first.letter}" for run in others)])
    ax.set_title(f"difference in MRR (filled: p < {SIGNIFICANT:g}, Holm)", fontsize=10)


def _relations(ax: Axes, found: Comparison) -> None:
    """MRR by relation, those with most facts first."""
    counts = {name: block["count"] // 2 for name, block in found.runs[0].found.relations.items()}
    names = sorted(counts, key=lambda name: -counts[name])[:RELATIONS_SHOWN]
    for row, name in enumerate(names):
        values = [run.found.relations[name]["mrr"] for run in found.runs]
        ax.plot([min(values), max(values)], [row, row], color=FAINT, linewidth=4, zorder=1)
    for i, run in enumerate(found.runs):
        values = [run.found.relations[name]["mrr"] for name in names]
        ax.plot(values, range(len(names)), "o", color=_colour(i), label=run.letter, markersize=6)
    _rows(ax, [f"{short(name)} ({counts[name]:,})" for name in names])
    ax.set_xlim(-0.02, 1.02)
    more = len(counts) - len(names)
    title = "MRR by relation (facts)" + (f", {more} smaller relations not shown" if more else "")
    ax.set_title(title, fontsize=10)
    ax.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
