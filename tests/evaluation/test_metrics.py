"""Figures from ranks worked out by hand, and intervals that hold what they promise."""

from __future__ import annotations

import time

import pytest
import torch

from golde.evaluation.metrics import (
    checked_hits,
    intervals,
    rank_table,
    resample,
    summarise,
    summarise_groups,
)
from golde.evaluation.ranking import EvaluationError

RANK = torch.tensor([1.0, 2.5, 4.0, 10.0])
CANDIDATES = torch.tensor([11, 5, 9, 19])


def test_figures_by_hand() -> None:
    figures = summarise(RANK, CANDIDATES, hits=(1, 2, 4))
    # Chance ranks are 6, 3, 5, 10; ranks lie 0, 1.5, 3, 9 beyond the first place.
    assert figures == pytest.approx(
        {
            "count": 4,
            "mr": 17.5 / 4,
            "mrr": (1 + 0.4 + 0.25 + 0.1) / 4,
            "hits@1": 1 / 4,
            "hits@2": 1 / 4,
            "hits@4": 3 / 4,
            "amri": 1 - 13.5 / 20,
        }
    )


def test_amri_is_one_for_perfect_ranks_and_zero_for_chance_even_without_rivals() -> None:
    assert summarise(torch.ones(4), CANDIDATES)["amri"] == 1
    assert summarise((CANDIDATES + 1) / 2, CANDIDATES)["amri"] == 0
    assert summarise(torch.ones(2), torch.ones(2))["amri"] == 0


def test_groups_are_summaries_of_their_own_rows() -> None:
    first, empty, last = summarise_groups(
        rank_table(RANK, CANDIDATES), torch.tensor([2, 0, 2, 0]), groups=3
    )
    assert first == pytest.approx(summarise(RANK[1::2], CANDIDATES[1::2]))
    assert empty is None
    assert last == pytest.approx(summarise(RANK[::2], CANDIDATES[::2]))


def test_hits_are_put_in_order_and_hits_at_nothing_is_an_error() -> None:
    assert checked_hits([10, 1, 10]) == (1, 10)
    with pytest.raises(EvaluationError, match="hits@0"):
        checked_hits([0, 1])


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    # Ranks 1 and 2 are equally likely: MRR is .75 and H@1 .5 in truth.
    random, covered = torch.Generator().manual_seed(1), 0
    for _ in range(200):
        rank = 1.0 + torch.randint(0, 2, (400,), generator=random)
        table = rank_table(rank, torch.full((400,), 3))
        low, high = intervals(resample(table, 200))["mrr"]
        covered += low <= 0.75 <= high
    assert 180 <= covered <= 198


def test_resamples_repeat_with_the_seed_and_only_then() -> None:
    table = rank_table(RANK, CANDIDATES)
    assert torch.equal(resample(table, 20, seed=3), resample(table, 20, seed=3))
    assert not torch.equal(resample(table, 20, seed=3), resample(table, 20, seed=4))
    assert (resample(table, 20)[:, 0] == 4).all()


def test_a_thousand_resamples_of_forty_thousand_ranks_are_quick() -> None:
    table = rank_table(torch.arange(1, 40_001).double(), torch.full((40_000,), 50_000))
    began = time.process_time()
    intervals(resample(table, 1000))
    assert time.process_time() - began < 3  # about 0.5 s; room for a busy machine
