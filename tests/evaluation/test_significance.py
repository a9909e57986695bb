"""Differences between models: the interval, the p-value, and several of them together."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from golde.evaluation.significance import holm, paired_bootstrap


def test_a_planted_difference_is_found_and_its_absence_is_not_taken_for_one() -> None:
    random = torch.Generator().manual_seed(0)
    noise = torch.randn(400, 3, generator=random)
    noise -= noise.mean(0)
    better, none, worse = paired_bootstrap(noise + torch.tensor([0.3, 0.0, -0.3]), 2000)
    assert better.difference == pytest.approx(0.3)
    assert worse.difference == pytest.approx(-0.3)
    for found, truth in ((better, 0.3), (none, 0.0), (worse, -0.3)):
        assert found.interval[0] < truth < found.interval[1]
    assert better.p == worse.p == 2 / 2001  # the least that so many resamples can tell
    assert none.p > 0.5


def test_the_interval_is_as_wide_as_theory_has_it() -> None:
    """For a mean over n facts it is close to ± 1.96 σ/√n."""
    random = torch.Generator().manual_seed(1)
    gains = torch.randn(1000, 1, generator=random).double()
    (found,) = paired_bootstrap(gains, 4000)
    half = 1.96 * gains.std().item() / 1000**0.5
    low, high = found.interval
    assert high - low == pytest.approx(2 * half, rel=0.05)


def test_p_is_below_five_percent_exactly_where_the_interval_leaves_out_zero() -> None:
    random = torch.Generator().manual_seed(2)
    gains = torch.randn(60, 40, generator=random) + torch.linspace(0, 0.6, 40)
    for found in paired_bootstrap(gains, 999):
        low, high = found.interval
        if abs(found.p - 0.05) > 0.01:
            assert (found.p < 0.05) == (low > 0 or high < 0)


def test_under_no_difference_five_percent_are_called_significant() -> None:
    random = torch.Generator().manual_seed(3)
    found = paired_bootstrap(torch.randn(200, 600, generator=random), 999)
    share = np.mean([one.p < 0.05 for one in found])
    assert 0.03 < share < 0.08


def test_equal_models_do_not_differ() -> None:
    (found,) = paired_bootstrap(torch.zeros(10, 1), 200)
    assert (found.difference, found.interval, found.p) == (0.0, (0.0, 0.0), 1.0)


def test_draws_follow_the_seed() -> None:
    gains = torch.randn(50, 1, generator=torch.Generator().manual_seed(4))
    assert paired_bootstrap(gains, 200, seed=5) == paired_bootstrap(gains, 200, seed=5)
    assert paired_bootstrap(gains, 200, seed=5) != paired_bootstrap(gains, 200, seed=6)


def test_holm_against_an_example_worked_by_hand() -> None:
    """Sorted .01, .02, .03, .04 times 4, 3, 2, 1, never below the one before."""
    assert holm([0.03, 0.01, 0.04, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([0.2]) == [0.2]
