"""Whether one model beats another by more than the choice of facts explains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from golde.evaluation.metrics import resample


@dataclass(frozen=True)
class Difference:
    """A mean difference over facts, how far it would move with other facts, and how surely it is not 0."""

    difference: float
    interval: tuple[float, float]  # the central 95% over resamples
    p: float  # two-sided


def paired_bootstrap(gains: Tensor, resamples: int = 10_000, seed: int = 0) -> list[Difference]:
    """``mean(a) − mean(b)`` of each column of gains ``a − b``, (n, k), over n facts drawn with replacement.

    Both models are judged on the same draw every time, so what makes facts easy or hard for both cancels
    out. ``p = 2 · (1 + min(#{d ≤ 0}, #{d ≥ 0})) / (resamples + 1)``, at most 1: it is below 5% where the 95%
    interval leaves out 0, and never below what so many resamples can tell.
    """
    means = resample(gains.double(), resamples, seed) / len(gains)  # (resamples, k)
    edges = torch.quantile(means, means.new_tensor([0.025, 0.975]), dim=0).T.tolist()
    tail = torch.minimum((means <= 0).sum(0), (means >= 0).sum(0))
    p = (2 * (1 + tail.double()) / (resamples + 1)).clamp(max=1).tolist()
    return [
        Difference(gain, (low, high), chance)
        for gain, (low, high), chance in zip(gains.double().mean(0).tolist(), edges, p, strict=True)
    ]


def holm(p: Sequence[float]) -> list[float]:
    """p-values of m comparisons together: ``max_{j ≤ i} (m − j + 1) · p_(j)``, at most 1 (Holm, 1979)."""
    order = np.argsort(p, kind="stable")
    steps = (len(p) - np.arange(len(p))) * np.asarray(p, dtype=float)[order]
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    found: list[float] = adjusted.tolist()
    return found
