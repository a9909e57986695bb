"""Exchanges between two processes by their size, and steps of many GPUs. Needs the extra ``plots``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from golde.benchmark.communication import Exchange, Kind, Link
from golde.report.benchmarks import figures, intact
from golde.report.drawing import BLUE, FAINT, ORANGE, SOFT, bare, save, style
from golde.report.scaling import KINDS, WAYS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def write_scaling_plot(results: Path, folder: Path) -> list[Path]:
    """Draw the picture into a folder, if there are results for it."""
    found = figures(results, "scaling")
    if found is None:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    with style(), intact(results, "scaling"):
        return [save(draw(found), folder / "scaling.png")]


def draw(found: dict[str, Any]) -> Figure:
    """What was measured on the left, what is predicted from it on the right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 3.6), facecolor="white")
    left, right = figure.subplots(1, 2)
    _exchanges(left, found)
    _gpus(right, found["prediction"])
    for ax in (left, right):
        bare(ax)
        ax.grid(True, color=FAINT)
        ax.legend(frameon=False, fontsize=8, loc="upper left")
    return figure


def _exchanges(ax: Axes, found: dict[str, Any]) -> None:
    ax.loglog()
    kinds: tuple[tuple[Kind, str], ...] = (("add_up", BLUE), ("collect", ORANGE))
    for kind, color in kinds:
        points = found["exchanges"][kind]
        at, link = [point["bytes"] for point in points], Link(**found["links"][kind])
        ms = [1e3 * point["seconds"] for point in points]
        line = [1e3 * link.seconds(Exchange(kind, size), 2) for size in at]
        ax.plot(at, ms, "o", color=color, markersize=4.5, label=f"{WAYS[kind]}, measured")
        ax.plot(at, line, color=color, linewidth=1.2, label="latency + bytes / bandwidth")
    ax.set_xlabel("bytes of each process", fontsize=9)
    ax.set_ylabel("ms, between two processes", fontsize=9)


def _gpus(ax: Axes, found: dict[str, Any]) -> None:
    from matplotlib.ticker import FuncFormatter, NullLocator

    ax.loglog()
    for (kind, words), color in zip(KINDS.items(), (BLUE, ORANGE), strict=True):
        at = [one["gpus"] for one in found[kind]]
        rate = [one["pairs_per_second"] / 1e9 for one in found[kind]]
        ax.plot(at, [rate[0] * gpus for gpus in at], color=SOFT, linewidth=1, linestyle=(0, (4, 3)))
        ax.plot(at, rate, "o-", color=color, markersize=4.5, linewidth=1.6, label=words)
    ax.plot([], [], color=SOFT, linewidth=1, linestyle=(0, (4, 3)), label="in proportion")
    ax.set_xticks(at)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda gpus, _: f"{gpus:.0f}"))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlabel("GPUs (predicted)", fontsize=9)
    ax.set_ylabel("G pairs a second", fontsize=9)
