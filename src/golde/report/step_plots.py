"""A training step on a GPU: its forms side by side, and how it grows. Needs the extra ``plots``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from golde.geometry import Signature
from golde.report.benchmarks import figures, intact
from golde.report.drawing import BLUE, FAINT, INK, ORANGE, SOFT, bare, save, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FASTEST = "fused"

AXES = {
    "batch": "queries, B",
    "negatives": "negatives, N",
    "components": "components, M",
    "dimension": "numbers a component, K",
    "entities": "entities",
}


def value(size: dict[str, Any], axis: str) -> float:
    """Where a size lies on an axis."""
    signature = Signature.parse(size["signature"])
    if axis == "components":
        return signature.components
    if axis == "dimension":
        return signature.numbers / signature.components
    return float(size[axis])


def growth(found: dict[str, Any], axis: str) -> list[tuple[float, dict[str, Any]]]:
    """The fused form along one axis, the usual size among the others, from small to large."""
    points = [(found["size"], found["forms"][FASTEST])]
    points += [
        (one["size"], one) for name, one in found["sizes"].items() if name.split()[0] == axis
    ]
    timed = [(value(size, axis), one) for size, one in points if "ms" in one]
    return sorted(timed, key=lambda point: point[0])


def write_step_plots(results: Path, folder: Path) -> list[Path]:
    """Draw every picture that there are results for into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with style():
        for name, draw in (("gpu_step", forms), ("gpu_growth", all_growth)):
            found = figures(results, name)
            if found is not None:
                with intact(results, name):
                    written.append(save(draw(found), folder / f"{name}.png"))
    return written


def forms(found: dict[str, Any]) -> Figure:
    """The time of a step in every form, with its quartiles and its memory."""
    from matplotlib.figure import Figure

    timed = {name: one for name, one in found["forms"].items() if "ms" in one}
    figure = Figure(figsize=(7.2, 0.5 + 0.42 * len(timed)), facecolor="white")
    ax = figure.subplots()
    widest = max(one["ms"] for one in timed.values())
    for row, (name, one) in enumerate(timed.items()):
        color = BLUE if name.startswith(FASTEST) else SOFT
        low, high = one["quartiles_ms"]
        spread = [[one["ms"] - low], [high - one["ms"]]]
        ax.barh(row, one["ms"], 0.66, color=color, xerr=spread, ecolor=INK, capsize=4)
        note = f"{one['ms']:.2f} ms, {one['memory_beyond_state_mb'] / 1024:.1f} GiB"
        ax.text(max(high, one["ms"]) + 0.012 * widest, row, note, va="center", fontsize=9)
    ax.set_yticks(range(len(timed)), list(timed))
    ax.invert_yaxis()
    ax.set_xlim(0, 1.32 * widest)
    ax.set_xlabel("ms a step; GiB beyond parameters and Adam", color=SOFT, fontsize=9)
    bare(ax)
    ax.xaxis.grid(True, color=FAINT)
    return figure


def all_growth(found: dict[str, Any]) -> Figure:
    """One panel an axis, both logarithmic, with a line of slope one to compare with."""
    from matplotlib.figure import Figure

    axes = [axis for axis in AXES if len(growth(found, axis)) > 1]
    columns = 3
    rows = -(-len(axes) // columns)
    figure = Figure(figsize=(9.6, 3.0 * rows), facecolor="white")
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False).flat
    for number, (ax, axis) in enumerate(zip(panels, axes, strict=False)):
        _growth(ax, growth(found, axis))
        ax.set_xlabel(AXES[axis], fontsize=9)
        if number % columns == 0:
            ax.set_ylabel("ms a step", fontsize=9)
    for ax in list(figure.axes)[len(axes) :]:
        ax.remove()
    return figure


def _growth(ax: Axes, points: list[tuple[float, dict[str, Any]]]) -> None:
    from matplotlib.patheffects import withStroke
    from matplotlib.ticker import FuncFormatter, NullLocator

    at, ms = [x for x, _ in points], [one["ms"] for _, one in points]
    ax.loglog()
    last = len(at) - 1
    line = [ms[last] * x / at[last] for x in at]
    ax.plot(at, line, color=ORANGE, linewidth=1, linestyle=(0, (4, 3)), label="in proportion")
    ax.plot(at, ms, "o-", color=BLUE, markersize=4.5, linewidth=1.6, label="fused")
    clear = [withStroke(linewidth=2.5, foreground="white")]  # of the line in proportion
    for x, y in zip(at, ms, strict=True):
        label = ax.annotate(f"{y:.1f}", (x, y), (0, 6), textcoords="offset points", ha="center")
        label.set(fontsize=8, path_effects=clear)
    ax.margins(x=0.14, y=0.2)
    ax.set_xticks(at)
    ax.xaxis.set_major_formatter(FuncFormatter(_short))
    ax.yaxis.set_major_formatter(FuncFormatter(_short))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_minor_locator(NullLocator())
    bare(ax)
    ax.grid(True, color=FAINT)
    ax.legend(frameon=False, fontsize=8, loc="lower right")


def _short(number: float, _: object = None) -> str:
    for factor, unit in ((1e6, "M"), (1e3, "k")):
        if number >= factor:
            return f"{number / factor:.3g}{unit}"
    return f"{number:.3g}"
