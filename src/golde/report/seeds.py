"""Trainings of a study by seed: their mean, and how they differ from others at the same seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, TypeVar

BySeed = dict[int, dict[str, Any]]
"""Trainings that differ in nothing but their seed."""

Seed = TypeVar("Seed", int, tuple[int, str])
"""A seed, or a seed on a machine."""


def mean(trainings: BySeed, name: str = "mrr") -> float:
    """Of a figure of validation."""
    return fmean(one["validation"][name] for one in trainings.values())


def apart(rows: Iterable[Sequence[float]]) -> str:
    """How far seeds of one line of a table are apart at the most, in words; empty where each has one."""
    several = [max(row) - min(row) for row in rows if len(row) > 1]
    return f", those of one line up to {bare(f'{max(several):.4f}')} apart" if several else ""


def with_range(trainings: BySeed) -> str:
    """The mean MRR as a cell, with its range if there are several."""
    mrr = [one["validation"]["mrr"] for one in trainings.values()]
    several = f" ({min(mrr):.4f}–{max(mrr):.4f})" if len(mrr) > 1 else ""
    return f"**{fmean(mrr):.4f}**{several}"


def difference(trainings: BySeed, beside: BySeed) -> str:
    """How much MRR is gained over others (see ``gained``); empty over itself."""
    mrr, base = (
        {seed: one["validation"]["mrr"] for seed, one in by_seed.items()}
        for by_seed in (trainings, beside)
    )
    return "" if trainings is beside else gained(mrr, base)


def gained(mrr: Mapping[Seed, float], beside: Mapping[Seed, float]) -> str:
    """How much is gained over others at the same seeds, as a cell: on average, and by each of several."""
    each = [mrr[seed] - beside[seed] for seed in sorted(mrr.keys() & beside.keys())]
    if not each:
        return ""
    by_seed = f" ({' '.join(map(signed, each))})" if len(each) > 1 else ""
    return f"{signed(fmean(each))}{by_seed}"


def signed(gain: float) -> str:
    """With its sign; what rounds to nothing has that of gains."""
    return f"{round(gain, 4) + 0.0:+.4f}"


def bare(figures: str) -> str:
    """Figures below 1 in a text without the zero before the point, as tables have them."""
    return figures.replace("0.", ".")
