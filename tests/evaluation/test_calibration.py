"""Probabilities fitted to scores whose true probabilities are known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golde.evaluation.calibration import (
    METHODS,
    Array,
    Fit,
    Ids,
    Labels,
    Platt,
    balanced,
    best_threshold,
    fit,
    fit_isotonic,
    fit_platt,
    sigmoid,
    smoothed,
    with_prior,
)
from golde.evaluation.classification import classification
from golde.evaluation.ranking import EvaluationError
from golde.evaluation.reliability import reliability

MEANS = [(1.0, -1.0), (-4.0, -7.0), (-2.0, -2.5)]  # of facts and of negatives, by relation
SPREAD = 1.5


def planted(facts: list[int], ratio: int = 3, seed: int = 0) -> tuple[Array, Labels, Ids]:
    """Normal scores with one spread: then the log-odds of being a fact are linear in the score."""
    rng = np.random.default_rng(seed)
    scores, labels, relations = [], [], []
    for relation, count in enumerate(facts):
        for label, mean in zip((True, False), MEANS[relation], strict=True):
            n = count if label else ratio * count
            scores.append(rng.normal(mean, SPREAD, n))
            labels.append(np.full(n, label))
            relations.append(np.full(n, relation))
    return np.concatenate(scores), np.concatenate(labels), np.concatenate(relations)


def fitted(scores: Array, labels: Labels, relations: Ids, method: str) -> Fit:
    """With every relation balanced."""
    return fit(scores, labels, relations, balanced(labels, relations), method)


def truth(relation: int) -> Platt:
    """Between facts and negatives that are equally many."""
    high, low = MEANS[relation]
    return Platt((high - low) / SPREAD**2, (low**2 - high**2) / (2 * SPREAD**2))


@pytest.mark.parametrize("relation", range(3))
def test_planted_curves_are_recovered_relation_by_relation(relation: int) -> None:
    """Whatever the ratio of negatives: each relation is balanced."""
    found = fitted(*planted([6000] * 3), "platt").own[relation]
    assert isinstance(found, Platt)
    assert found.slope == pytest.approx(truth(relation).slope, rel=0.05)
    at = np.linspace(*sorted(MEANS[relation]), 20)
    assert np.abs(found(at) - truth(relation)(at)).max() < 0.02
    isotonic = fitted(*planted([6000] * 3), "isotonic").own[relation]
    assert np.abs(isotonic(at) - truth(relation)(at)).max() < 0.08


def test_a_relation_with_few_facts_takes_the_overall_fit_and_one_with_some_is_drawn_to_it() -> None:
    scores, labels, relations = planted([3000, 12, 2])
    found = fitted(scores, labels, relations, "platt")
    assert set(found.own) == {0, 1}
    at = np.array([-3.0, 0.0, 3.0])
    assert np.array_equal(found(at, np.full(3, 2)), found.overall(at))
    assert np.array_equal(found(at, np.full(3, 99)), found.overall(at))  # never seen
    own = relations == 1
    weights = balanced(labels, relations)[own]
    alone = fit_platt(scores[own], labels[own], weights)
    few = found.own[1]
    assert isinstance(few, Platt)
    assert isinstance(found.overall, Platt)

    def level(curve: Platt) -> float:
        """The score at which a claim is as likely true as false."""
        return -curve.offset / curve.slope

    assert level(alone) < level(few) < level(found.overall)


def test_fitted_probabilities_are_reliable_where_scores_alone_are_not() -> None:
    scores, labels, relations = planted([4000] * 3)
    unseen, truths, those = planted([4000] * 3, seed=1)
    weights = balanced(truths, those)
    before = reliability(sigmoid(unseen), truths, weights)
    for method in METHODS:
        after = reliability(
            fitted(scores, labels, relations, method)(unseen, those), truths, weights
        )
        assert before.ece > 0.2
        assert after.ece < 0.02
        assert after.brier < before.brier
        assert after.log_loss < before.log_loss


floats = st.floats(-30, 30).map(lambda x: round(x, 1))  # with ties


@given(
    st.lists(st.tuples(floats, st.booleans()), min_size=2, max_size=60), st.sampled_from(METHODS)
)
def test_probabilities_never_fall_as_scores_rise(
    claims: list[tuple[float, bool]], method: str
) -> None:
    """Also where scores are the wrong way round, tied, or part the two without an error."""
    scores = np.array([score for score, _ in claims])
    labels = np.array([label for _, label in claims])
    if labels.all() or not labels.any():
        return
    found = fitted(scores, labels, np.zeros(len(scores), dtype=np.int64), method)
    probability = found.overall(np.sort(np.append(scores, [-100.0, 100.0])))
    assert np.isfinite(probability).all()
    assert (np.diff(probability) >= 0).all()
    least = 0.5
    bar = found.overall.least_score(least)
    assert (found.overall(scores[scores > bar + 1e-6]) >= least).all()
    assert (found.overall(scores[scores < bar - 1e-6]) < least).all()


def test_no_fit_is_certain_where_scores_part_facts_and_negatives() -> None:
    labels = np.arange(20) < 5
    for scores in (np.where(labels, 1.0, -1.0), np.where(labels, 1e4, -1e4)):
        weights = balanced(labels, np.zeros(20, dtype=np.int64))
        platt = fit_platt(scores, labels, weights)
        assert platt(scores) == pytest.approx(smoothed(labels), abs=1e-3)  # 6/7 and 1/17
        isotonic = fit_isotonic(scores, labels, weights)
        assert isotonic(scores) == pytest.approx(smoothed(labels))


def test_isotonic_is_the_best_non_decreasing_function() -> None:
    """By hand: in the order of scores 0 1 0 0 1 1, of which the second to the fourth pool."""
    scores = np.array([4.0, 1.0, 3.0, 2.0, 5.0, 0.0])
    labels = np.array([True, True, False, False, True, False])
    low, high = 1 / 5, 4 / 5  # the targets of three each
    third = (high + 2 * low) / 3
    found = fit_isotonic(scores, labels, np.ones(6))
    assert found.score == (0.0, 1.0, 3.0, 4.0, 5.0)
    assert found(np.array([0.0, 1.0, 2.0, 3.0])) == pytest.approx([low, third, third, third])
    assert found(np.array([-9.0, 4.0, 5.0, 9.0])) == pytest.approx([low, high, high, high])
    assert found(np.array([3.5])) == pytest.approx((third + high) / 2)
    assert found.least_score(0.99) == np.inf
    assert found.least_score(0.01) == -np.inf
    assert found.least_score((third + high) / 2) == pytest.approx(3.5)


def test_relations_without_negatives_have_no_say() -> None:
    scores, labels, relations = planted([500, 500])
    more = np.full(500, 50.0), np.ones(500, dtype=np.bool_), np.full(500, 7)
    together = [
        np.concatenate(both) for both in zip((scores, labels, relations), more, strict=True)
    ]
    found, alone = fitted(*together, "platt"), fitted(scores, labels, relations, "platt")
    assert found.overall == alone.overall
    with pytest.raises(EvaluationError, match="not both facts and negatives to tell apart"):
        fitted(*more, "platt")


def test_balanced_in_all_a_relation_with_more_negatives_is_less_probable() -> None:
    """By the log of the ratio of the ratios: a fact to four negatives here, four to one there."""
    rng = np.random.default_rng(0)
    labels = np.concatenate([np.arange(5000) < 4000, np.arange(5000) < 1000])
    scores = rng.normal(np.where(labels, 1.0, -1.0), SPREAD)
    weights = balanced(labels, np.zeros(10_000, dtype=np.int64))
    found = fit(scores, labels, np.arange(10_000) // 5000, weights, "platt")
    often, seldom = (found(np.zeros(1), np.array([relation])) for relation in (0, 1))
    odds = (often / (1 - often)) / (seldom / (1 - seldom))
    assert np.log(odds) == pytest.approx(np.log(16), abs=0.2)


def test_a_prior_is_bayes_rule() -> None:
    """Facts and negatives in any proportion: the shifted probabilities fit those."""
    scores, labels, relations = planted([20000])
    prior = 0.1
    probability = with_prior(fitted(scores, labels, relations, "platt")(scores, relations), prior)
    weights = balanced(labels, relations) * np.where(labels, prior, 1 - prior)
    assert float(np.average(probability, weights=weights)) == pytest.approx(prior, abs=0.005)
    assert reliability(probability, labels, weights).ece < 0.01
    assert with_prior(probability, 0.5) == pytest.approx(probability)


def test_figures_by_hand() -> None:
    probability, labels = np.array([0.9, 0.9, 0.15, 1.0]), np.array([True, False, False, True])
    found = reliability(probability, labels, np.array([1.0, 1.0, 2.0, 4.0]))
    # One bin holds .9, .9 and 1: said (.9 + .9 + 4)/6, true 5/6.
    assert found.ece == pytest.approx(6 / 8 * abs(5.8 / 6 - 5 / 6) + 2 / 8 * 0.15)
    assert found.brier == pytest.approx((0.01 + 0.81 + 2 * 0.15**2) / 8)
    assert found.log_loss == pytest.approx(-(np.log(0.9) + np.log(0.1) + 2 * np.log(0.85)) / 8)
    assert [bin.weight for bin in found.bins] == pytest.approx([0.25, 0.75])


@given(st.lists(st.tuples(floats, st.booleans(), st.integers(1, 4)), min_size=1, max_size=30))
def test_no_threshold_is_better_than_the_best(claims: list[tuple[float, bool, int]]) -> None:
    scores, labels, weights = (np.array(column) for column in zip(*claims, strict=True))

    def right(threshold: float) -> float:
        return float(weights[(scores > threshold) == labels].sum())

    best = max(right(threshold) for threshold in [*scores, scores.min() - 1])
    assert right(best_threshold(scores, labels, weights.astype(float))) == best


def test_yes_and_no() -> None:
    labels = np.array([True, True, True, False, False])
    found = classification(np.array([True, True, False, True, False]), labels)
    assert (found.accuracy, found.f1) == (3 / 5, pytest.approx(2 / 3))
    assert (found.precision, found.recall) == pytest.approx((2 / 3, 2 / 3))
    nothing = classification(np.zeros(5, dtype=np.bool_), labels)
    assert (nothing.accuracy, nothing.precision, nothing.f1) == (2 / 5, 0, 0)
