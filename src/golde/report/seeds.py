"""Trainings of a study by seed: their mean, and how they differ from others at the same seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

BySeed = dict[int, dict[str, Any]]
"""Trainings that differ in nothing but their seed."""


def mean(trainings: BySeed, name: str = "mrr") -> float:
    """Of a figure of validation."""
    return fmean(one["validation"][name] for one in trainings.values())


def apart(rows: Iterable[Sequence[float]]) -> str:
    """How far seeds of one line of a table are apart at the most, in words; empty where each has one."""
    several = [max(row) - min(row) for row in rows if len(row) > 1]
    return (
        f", those of one line up to {max(several):.4f} apart".replace("0.", ".") if several else ""
    )


def with_range(trainings: BySeed) -> str:
    """The mean MRR as a cell, with its range if there are several."""
    mrr = [one["validation"]["mrr"] for one in trainings.values()]
    several = f" ({min(mrr):.4f}–{max(mrr):.4f})" if len(mrr) > 1 else ""
    return f"**{fmean(mrr):.4f}**{several}"


def difference(trainings: BySeed, beside: BySeed) -> str:
    """How much MRR is gained over others at the same seeds, as a cell; empty without any, or over itself."""
    both = trainings.keys() & beside.keys()
    if not both or trainings is beside:
        return ""
    gained = (
        trainings[seed]["validation"]["mrr"] - beside[seed]["validation"]["mrr"] for seed in both
    )
    return f"{fmean(gained):+.4f}"
