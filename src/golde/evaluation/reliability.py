"""How far probabilities can be trusted: Brier score, log loss, and the gap between said and true."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from golde.evaluation.calibration import Array, Labels

BINS = 10
"""Bins of equal width that probabilities fall into."""


@dataclass(frozen=True)
class Bin:
    """Claims with about one probability: the mean of what was said, the share that was true."""

    said: float
    true: float
    weight: float  # the share of all claims


@dataclass(frozen=True)
class Reliability:
    """Figures of some probabilities, lower being better in all three, and the bins behind the first."""

    ece: float
    brier: float
    log_loss: float
    bins: tuple[Bin, ...]  # those that hold anything

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self) | {"bins": [asdict(bin) for bin in self.bins]}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Reliability:
        """What ``as_dict`` gave."""
        return cls(**{**content, "bins": tuple(Bin(**bin) for bin in content["bins"])})


def reliability(probability: Array, labels: Labels, weights: Array) -> Reliability:
    """Judge probabilities of claims by what the claims are.

    ECE        Σ over bins of weight·|said − true|
    Brier      mean of (P − label)²
    log loss   mean of −log of the probability given to what is the case, P being kept 1e-12 from 0 and 1
    """
    weights = weights / weights.sum()
    place = np.minimum((probability * BINS).astype(np.int64), BINS - 1)
    mass, said, true = (
        np.bincount(place, weights * what, BINS) for what in (1.0, probability, labels)
    )
    bins = tuple(
        Bin(float(said[i] / mass[i]), float(true[i] / mass[i]), float(mass[i]))
        for i in mass.nonzero()[0]
    )
    p = probability.clip(1e-12, 1 - 1e-12)
    return Reliability(
        ece=float(sum(bin.weight * abs(bin.said - bin.true) for bin in bins)),
        brier=float(weights @ (probability - labels) ** 2),
        log_loss=float(-weights @ np.log(np.where(labels, p, 1 - p))),
        bins=bins,
    )
