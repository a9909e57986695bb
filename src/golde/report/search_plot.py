"""What mattered in a search of settings. Needs the extra ``plots``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from golde.report.drawing import BLUE, FAINT, INK, ORANGE, SOFT, bare, save, short, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


POWERS = frozenset({"signature.log2_dimension"})
"""Axes that hold the logarithm of what is shown."""


class Dot(NamedTuple):
    """A trial: where it was, what it reached, and whether it was trained to its end."""

    point: Mapping[str, Any]
    mrr: float
    complete: bool


def draw_search(
    path: Path,
    importance: Mapping[str, float],
    dots: Sequence[Dot],
    *,
    best: Mapping[str, Any],
    logarithmic: frozenset[str] = frozenset(),
    title: str = "",
) -> Path:
    """Bars of importance, and MRR over each of the axes that mattered most; a PNG or SVG."""
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9.6, 5.6), facecolor="white")
        panels = figure.subplots(2, 3)
        figure.suptitle(
            short(title, 60), x=0.02, ha="left", fontsize=12, fontweight="bold", color=INK
        )
        legend = "ring: the best   blue: trained to the end   pale: cut short"
        figure.text(0.985, 0.955, legend, ha="right", fontsize=9, color=SOFT)
        bars, *others = panels.flat
        _bars(bars, importance)
        ordered = list(importance) or sorted(best)
        for ax, name in zip(others, ordered, strict=False):
            _scatter(ax, name, dots, best, log=name in logarithmic)
        for ax in others[len(ordered) :]:
            ax.set_axis_off()
        return save(figure, path)


def _bars(ax: Axes, importance: Mapping[str, float]) -> None:
    """The share of each axis in what made a trial one of the best."""
    names = list(importance)
    ax.barh(range(len(names)), [importance[name] for name in names], 0.66, color=BLUE)
    ax.set_yticks(range(len(names)), [label(name) for name in names])
    ax.invert_yaxis()
    ax.set_xlabel("importance", color=SOFT, fontsize=9)
    bare(ax)
    ax.xaxis.grid(True, color=FAINT)
    if not names:
        ax.set_axis_off()
        ax.text(0, 0.5, "too few trials\nto tell what mattered", transform=ax.transAxes, color=SOFT)


def _scatter(
    ax: Axes, name: str, dots: Sequence[Dot], best: Mapping[str, Any], *, log: bool
) -> None:
    """MRR over one axis; trials that were pruned are pale, the best has a ring.

    Trials in which the axis had no say are left out.
    """
    ax.set_xlabel(label(name), color=INK, fontsize=9)
    ax.set_ylabel("validation MRR", color=SOFT, fontsize=9)
    bare(ax)
    top = max((dot.mrr for dot in dots if dot.point == best), default=0.0)
    dots = [dot for dot in dots if _matters(name, dot.point)]
    if not dots:
        ax.set(xticks=[], yticks=[])
        ax.text(0.5, 0.5, "no trial had a penalty", transform=ax.transAxes, ha="center", color=SOFT)
        return
    values = sorted({dot.point[name] for dot in dots}, key=lambda value: (str(type(value)), value))
    words = any(isinstance(value, str | bool) for value in values)
    place = {value: i for i, value in enumerate(values)} if words else {v: v for v in values}
    if powers := name in POWERS:
        place = {value: 2**value for value in values}
    for complete, color in ((False, FAINT), (True, BLUE)):
        some = [dot for dot in dots if dot.complete is complete]
        ax.scatter(
            [place[dot.point[name]] for dot in some],
            [dot.mrr for dot in some],
            s=22,
            color=color,
            edgecolor=SOFT if not complete else "white",
            linewidth=0.6,
        )
    if best[name] in place and _matters(name, best):
        at = [place[best[name]]], [top]
        ax.scatter(*at, s=90, facecolor="none", edgecolor=ORANGE, linewidth=1.6)
    if powers:
        _powers(ax, [place[value] for value in values])
    elif words:
        ax.set_xticks(range(len(values)), [_word(value) for value in values])
        ax.set_xlim(-0.5, len(values) - 0.5)
    elif log:
        _logarithmic(ax, wide=max(values) > 30 * min(values))
    ax.tick_params(which="minor", length=0)
    ax.grid(True, color=FAINT)


def _logarithmic(ax: Axes, *, wide: bool) -> None:
    """Few enough numbers below a logarithmic axis that they do not meet."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _powers(ax: Axes, values: Sequence[float]) -> None:
    """A place for each power of two that was tried, evenly apart."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    ax.set_xscale("log", base=2)
    ax.set_xlim(min(values) / 1.5, max(values) * 1.5)
    ax.xaxis.set_major_locator(FixedLocator(sorted(values)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:g}"))


def _matters(name: str, point: Mapping[str, Any]) -> bool:
    """Whether an axis has a say in a trial: the weight of a penalty has none where there is no penalty."""
    return name != "training.regulariser_weight" or point.get("training.regulariser") != "none"


def label(name: str) -> str:
    """An axis in words: its section left out."""
    section, _, key = name.partition(".")
    words = key.replace("log2_", "").replace("_", " ")
    return f"{words} share" if (section, key) == ("signature", "hyperbolic") else words


def _word(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
