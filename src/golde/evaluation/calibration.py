"""Probabilities from scores: non-decreasing maps, fitted to facts and negatives of many relations.

Platt      P(true | s) = σ(slope·s + offset), slope > 0, by penalised maximum likelihood
isotonic   P(true | s) = the non-decreasing function nearest to the labels in the mean square

How common facts are is in the weights. With equal ones a probability is P(true | s) among claims such as
those of the fit. With ``balanced`` ones the negatives together weigh as much as the facts, and it is that of
a claim which was a fact or a negative with equal chances before its score was seen; ``with_prior`` turns
that into other chances.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from golde.errors import GoldeError
from golde.evaluation.ranking import EvaluationError

Array = NDArray[np.float64]
Labels = NDArray[np.bool_]
"""True for facts, False for negatives."""
Ids = NDArray[np.int64]

LEAST_PRIOR = 1e-6
"""How far a prior must keep from 0 and 1: beyond it no score says anything any more."""

METHODS = ("platt", "isotonic")

FEWEST_FACTS = {"platt": 10, "isotonic": 20}
"""Facts from which a relation has a fit of its own; with fewer it takes the overall one."""

LEAST_SLOPE = 0.01
"""Of a relation in the log-odds of the overall fit, and of that in standardised scores. Where scores say
nothing or the wrong thing, probabilities are all but equal, and still in the order of scores."""

_PRIOR_STRENGTH = 0.1
"""One over the variance of a relation's slope around 1 and its offset, in log-odds, around 0."""

_TIES_STRENGTH = 1e-6  # keeps the overall fit solvable where all scores are equal


@dataclass(frozen=True)
class Platt:
    """``P = σ(slope·score + offset)``."""

    slope: float
    offset: float

    def __call__(self, scores: Array) -> Array:
        return sigmoid(self.slope * scores + self.offset)

    def least_score(self, probability: float) -> float:
        """The lowest score with at least this probability."""
        return (_logit(probability) - self.offset) / self.slope


@dataclass(frozen=True)
class Isotonic:
    """A non-decreasing function that is linear between its corners and level outside of them."""

    score: tuple[float, ...]
    probability: tuple[float, ...]

    def __call__(self, scores: Array) -> Array:
        return np.interp(scores, self.score, self.probability).astype(np.float64)

    def least_score(self, probability: float) -> float:
        """The lowest score with at least this probability, −∞ if all have it, ∞ if none has."""
        first = int(np.searchsorted(self.probability, probability))
        if first == 0:
            return -math.inf
        if first == len(self.probability):
            return math.inf
        return float(
            np.interp(
                probability,
                self.probability[first - 1 : first + 1],
                self.score[first - 1 : first + 1],
            )
        )


Map = Platt | Isotonic


@dataclass(frozen=True)
class Fit:
    """Maps and thresholds of all relations, those of their own by id, and the overall ones for the rest."""

    overall: Map
    overall_threshold: float
    own: Mapping[int, Map]
    thresholds: Mapping[int, float]  # the score above which a claim is best taken for true

    def __call__(self, scores: Array, relations: Ids) -> Array:
        """The probability of each score (n,) of a claim of each relation (n,)."""
        found = self.overall(scores)
        for relation in np.unique(relations).tolist():
            if relation in self.own:
                at = relations == relation
                found[at] = self.own[relation](scores[at])
        return found

    def threshold(self, relations: Ids) -> Array:
        """The threshold of each relation (n,)."""
        return np.array(
            [self.thresholds.get(r, self.overall_threshold) for r in relations.tolist()]
        )


def fit(
    scores: Array,
    labels: Labels,
    relations: Ids,
    weights: Array,
    method: str,
    share: float = 1.0,
) -> Fit:
    """Fit every relation that has ``FEWEST_FACTS``, and all of them together.

    Of data that are a share of the whole, such as one half, the same share of facts is enough.
    What has no weight has no say.
    """
    used = weights > 0
    if not used.any():
        raise EvaluationError(
            "there are not both facts and negatives to tell apart; give more negatives"
        )
    scores, labels, relations, weights = scores[used], labels[used], relations[used], weights[used]
    overall = _fit_one(scores, labels, weights, method, None)
    own: dict[int, Map] = {}
    thresholds = {}
    for relation in np.unique(relations).tolist():
        at = relations == relation
        one = scores[at], labels[at], weights[at]
        thresholds[relation] = best_threshold(*one)
        if labels[at].sum() >= share * FEWEST_FACTS[method]:
            own[relation] = _fit_one(*one, method, overall)
    return Fit(overall, best_threshold(scores, labels, weights), own, thresholds)


def balanced(labels: Labels, groups: Ids) -> Array:
    """Weights under which every fact counts 1 and the negatives of a group as much as its facts.

    0 in groups that lack one of the two: there is nothing to tell apart.
    """
    size = int(groups.max(initial=-1)) + 1
    facts = np.bincount(groups[labels], minlength=size)
    negatives = np.bincount(groups[~labels], minlength=size)
    share = np.divide(facts, negatives, out=np.zeros(size), where=negatives > 0)
    weights: Array = np.where(labels, (negatives > 0)[groups].astype(np.float64), share[groups])
    return weights


def with_prior(probability: Array, prior: float) -> Array:
    """``logit P' = logit P + logit prior``: Bayes' rule where facts are as common as ``prior`` says."""
    true, false = probability * prior, (1 - probability) * (1 - prior)
    shifted: Array = true / (true + false)
    return shifted


def without_prior(probability: float, prior: float) -> float:
    """The inverse of ``with_prior``."""
    return float(with_prior(np.array(probability), 1 - prior))


def best_threshold(scores: Array, labels: Labels, weights: Array) -> float:
    """The score that parts facts (above) from negatives (below) with the least weight on the wrong side.

    Halfway between two scores; of several the lowest.
    """
    values, place = np.unique(scores, return_inverse=True)
    gain = np.bincount(place, np.where(labels, weights, -weights), len(values))
    # Wrong below a cut are facts, above it negatives: cutting below value i loses what comes before it.
    wrong = np.concatenate([[0.0], gain.cumsum()])
    cut = int(wrong.argmin())
    if cut == 0:
        return float(np.nextafter(values[0], -np.inf))
    if cut == len(values):
        return float(values[-1])
    return float(values[cut - 1] + values[cut]) / 2


def smoothed(labels: Labels) -> Array:
    """Platt's targets: ``(N₊ + 1)/(N₊ + 2)`` for facts and ``1/(N₋ + 2)`` for negatives.

    Short of 1 and 0 as a uniform prior would have it, so that no fit is ever certain, not even where
    scores part facts and negatives without an error.
    """
    facts = int(labels.sum())
    return np.where(labels, (facts + 1) / (facts + 2), 1 / (len(labels) - facts + 2))


def fit_isotonic(scores: Array, labels: Labels, weights: Array) -> Isotonic:
    """Pool adjacent violators: blocks of scores, each at the mean of its targets, means rising.

    Equal scores are pooled first. The corners are the ends of the blocks.
    """
    values, place = np.unique(scores, return_inverse=True)
    sums = np.bincount(place, weights * smoothed(labels), len(values)).tolist()
    sizes = np.bincount(place, weights, len(values)).tolist()
    blocks: list[tuple[float, float, int]] = []  # sum, weight, last score
    for last, (total, size) in enumerate(zip(sums, sizes, strict=True)):
        while blocks and blocks[-1][0] * size >= total * blocks[-1][1]:  # no lower mean before it
            before = blocks.pop()
            total, size = total + before[0], size + before[1]
        blocks.append((total, size, last))
    corners: list[tuple[float, float]] = []
    first = 0
    for total, size, last in blocks:
        mean = total / size
        corners.append((float(values[first]), mean))
        if last > first:
            corners.append((float(values[last]), mean))
        first = last + 1
    return Isotonic(*map(tuple, zip(*corners, strict=True)))


def fit_platt(scores: Array, labels: Labels, weights: Array, overall: Platt | None = None) -> Platt:
    """Maximum likelihood of Platt's targets; shrunk towards ``overall``, if there is one.

    A relation is fitted in the log-odds ``z`` of the overall fit, as ``σ(slope·z + offset)`` with a normal
    prior on slope − 1 and on offset: the fewer its facts, the nearer it stays. The overall
    fit itself is in standardised scores, for Newton's sake.
    """
    if overall is None:
        centre = float(np.average(scores, weights=weights))
        spread = math.sqrt(float(np.average((scores - centre) ** 2, weights=weights))) or 1.0
        start, strength = np.array([0.0, 0.0]), _TIES_STRENGTH
        scale, shift = 1 / spread, -centre / spread
    else:
        start, strength = np.array([1.0, 0.0]), _PRIOR_STRENGTH
        scale, shift = overall.slope, overall.offset
    x, targets = scale * scores + shift, smoothed(labels)
    columns = np.stack([x, np.ones_like(x)], axis=1)  # (n, 2)
    slope, offset = _newton(columns, 0.0 * x, targets, weights, start, strength)
    if (
        slope < LEAST_SLOPE
    ):  # the best slope that is allowed is then the least, as the loss is convex
        slope = LEAST_SLOPE
        (offset,) = _newton(columns[:, 1:], slope * x, targets, weights, start[1:], strength)
    return Platt(float(slope * scale), float(slope * shift + offset))


def sigmoid(x: Array) -> Array:
    """``1/(1 + e^−x)``, without overflow."""
    small = np.exp(-np.abs(x))
    found: Array = np.where(x >= 0, 1.0, small) / (1 + small)
    return found


def _fit_one(
    scores: Array, labels: Labels, weights: Array, method: str, overall: Map | None
) -> Map:
    if method == "isotonic":
        return fit_isotonic(scores, labels, weights)
    return fit_platt(scores, labels, weights, overall if isinstance(overall, Platt) else None)


def _newton(
    columns: Array, base: Array, targets: Array, weights: Array, start: Array, strength: float
) -> Array:
    """The minimum of ``Σ w·(log(1 + e^z) − t·z) + strength/2·‖θ − start‖²``, z = base + columns·θ."""

    def loss(theta: Array) -> float:
        z = base + columns @ theta
        data = float(weights @ (np.logaddexp(0, z) - targets * z))
        return data + strength / 2 * float(((theta - start) ** 2).sum())

    theta, now = start, loss(start)
    for _ in range(100):
        p = sigmoid(base + columns @ theta)
        gradient = columns.T @ (weights * (p - targets)) + strength * (theta - start)
        curvature = (columns * (weights * p * (1 - p))[:, None]).T @ columns
        step = np.linalg.solve(curvature + strength * np.eye(len(theta)), gradient)
        rate, new = 1.0, loss(theta - step)
        while new > now and rate > 1e-10:  # a full step may leap over the valley
            rate /= 2
            new = loss(theta - rate * step)
        theta, gained, now = theta - rate * step, now - new, new
        if gained <= 1e-14 * abs(now):
            break
    return theta


def _logit(probability: float) -> float:
    if probability <= 0:
        return -math.inf
    return math.inf if probability >= 1 else math.log(probability / (1 - probability))


def check_choice(method: str, prior: float | None) -> None:
    """An error for a method that there is not, or a prior that leaves nothing open."""
    if method not in METHODS:
        raise GoldeError(f"method is {method!r}; it must be one of {', '.join(METHODS)}")
    if prior is not None and not LEAST_PRIOR <= prior <= 1 - LEAST_PRIOR:
        raise GoldeError(
            f"prior is {prior}; it must lie between 0 and 1, {LEAST_PRIOR:g} or more from both"
        )
