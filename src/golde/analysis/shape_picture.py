"""Drawing what advice rests on: the shape of each relation. Needs the extra ``plots``."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from golde.analysis.advise import FACTS_OF, Advice, Shape
from golde.analysis.structure import Structure
from golde.errors import GoldeError, MissingExtraError
from golde.geometry import GEOMETRIES
from golde.runs.atomic import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"Q": "#d9622b", "P": "#1f6fd6", "E": "#8a6d3b"}
INK, SOFT, FAINT = "#1d2433", "#7c8597", "#e3e6ec"
FORMATS = (".png", ".svg")

ROWS = 20
"""Relations with a row of their own; the others share the last one."""

LONGEST_NAME = 30

MEASURES = {
    "curvature": ("curvature", "tree ←   → ring", (-1.08, 0.68), (-1.0, -0.5, 0.0, 0.5)),
    "krackhardt": ("Krackhardt", "1: no way back", (-0.08, 1.08), (0.0, 0.5, 1.0)),
    "delta_relative": ("2δ / diameter", "0: thin as a tree", (-0.08, 1.08), (0.0, 0.5, 1.0)),
    "cyclicity": ("on cycles", "1: all facts", (-0.08, 1.08), (0.0, 0.5, 1.0)),
}
"""What the rule looks at: heading, how to read it, range and ticks."""

Row = tuple[str, int, dict[str, float], Structure | None]


def check_picture(path: Path) -> None:
    """An error if no picture can be drawn there, so that it is told before a graph is read."""
    if path.suffix.lower() not in FORMATS:
        raise GoldeError(f"{path}: cannot tell the kind of picture; name it .png or .svg")
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise MissingExtraError("drawing a picture", "plots") from None


def draw_shapes(path: Path, advice: Advice) -> None:
    """For each relation the share of its facts that calls for each geometry, beside what was measured."""
    check_picture(path)
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    rows = _rows(advice)
    style: Any = {
        "font.family": "DejaVu Sans",
        "text.color": INK,
        "axes.labelcolor": SOFT,
        "svg.hashsalt": "golde",
    }
    with rc_context(style), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of signs that the font lacks
        figure = Figure(
            figsize=(11, 1.7 + 0.28 * len(rows)), facecolor="white", layout="constrained"
        )
        bars, *columns = figure.subplots(
            1, 1 + len(MEASURES), sharey=True, width_ratios=(3, *[1] * len(MEASURES))
        )
        _draw_bars(bars, rows)
        for ax, name in zip(columns, MEASURES, strict=True):
            _draw_measure(ax, name, rows)
        figure.suptitle(
            f"{_short(advice.whole.name)}: {advice.signature}",
            x=0.01,
            ha="left",
            fontsize=14,
            fontweight="bold",
        )
        kind = path.suffix.lower()[1:]
        undated: Any = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
        with replacing(path) as new:
            figure.savefig(new, format=kind, dpi=140, metadata=undated)


def _rows(advice: Advice) -> list[Row]:
    """All facts, the largest relations, and the rest of them in one."""
    largest = sorted(advice.shapes, key=lambda shape: -shape.structure.facts)
    rows: list[Row] = [("all facts", advice.whole.facts, advice.shares, advice.whole)]
    for shape in largest[:ROWS]:
        one = shape.structure
        rows.append((_short(one.name), one.facts, shape.shares, one))
    if rest := largest[ROWS:]:
        facts = sum(shape.structure.facts for shape in rest)
        rows.append((f"{len(rest):,} more", facts, _average(rest, facts), None))
    return rows


def _average(shapes: list[Shape], facts: int) -> dict[str, float]:
    return {
        letter: sum(shape.shares[letter] * shape.structure.facts for shape in shapes) / facts
        for letter in FACTS_OF
    }


def _draw_bars(ax: Axes, rows: list[Row]) -> None:
    for place, (_, facts, shares, _) in enumerate(rows):
        start = 0.0
        for letter, share in shares.items():
            name = GEOMETRIES[letter].word if place == 0 else None
            ax.barh(place, share, 0.72, left=start, color=COLOURS[letter], label=name)
            start += share
        ax.text(1.02, place, f"{facts:,}", va="center", fontsize=8, color=SOFT)
    ax.set_yticks(range(len(rows)), [name for name, _, _, _ in rows])
    ax.get_yticklabels()[0].set_fontweight("bold")
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_xlim(0, 1.16)
    ax.set_xticks([0, 0.5, 1], ["0", "50%", "100%"])
    ax.set_xlabel("facts that call for a geometry", fontsize=8)
    ax.legend(loc="lower left", bbox_to_anchor=(-0.01, 0.99), ncols=3, frameon=False, fontsize=9)
    _bare(ax)


def _draw_measure(ax: Axes, name: str, rows: list[Row]) -> None:
    heading, reading, limits, ticks = MEASURES[name]
    for place, (_, _, shares, one) in enumerate(rows):
        value = None if one is None else getattr(one, name)
        if value is not None:
            colour = INK if place == 0 else COLOURS[max(shares, key=shares.__getitem__)]
            ax.plot(value, place, "o", color=colour, markersize=6)
    ax.axvline(0, color=FAINT, linewidth=1.4, zorder=0)
    ax.set_xlim(*limits)
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_title(heading, fontsize=9)
    ax.set_xlabel(reading, fontsize=8)
    _bare(ax)
    ax.tick_params(labelleft=False)
    ax.grid(True, color=FAINT, linewidth=0.6)


def _bare(ax: Axes) -> None:
    """No frame, and the grid behind what is drawn."""
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.tick_params(length=0, colors=INK, labelsize=8)
    ax.set_axisbelow(True)


def _short(name: str) -> str:
    """The end of a long name, which tells more of a path or an address than its start."""
    shown = name if len(name) <= LONGEST_NAME else "…" + name[1 - LONGEST_NAME :]
    return shown.replace("$", r"\$")
