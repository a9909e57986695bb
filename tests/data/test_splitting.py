"""Holding facts out of one file."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from golde.data.splitting import split_facts
from golde.errors import GoldeError

FACTS = np.unique(np.random.default_rng(0).integers(0, (30, 4, 30), size=(1000, 3)), axis=0)


@given(
    arrays.arrays(np.int64, st.tuples(st.integers(1, 60), st.just(3)), elements=st.integers(0, 6)),
    st.floats(0, 0.4),
    st.floats(0, 0.4),
    st.integers(0, 5),
)
def test_nothing_is_lost_and_every_name_stays_in_train(
    facts: np.ndarray, valid: float, test: float, seed: int
) -> None:
    facts = np.unique(facts, axis=0)
    splits, notes = split_facts(facts, valid=valid, test=test, seed=seed)
    assert list(splits) == ["train", "valid", "test"]
    together = np.concatenate(list(splits.values()))
    assert sorted(map(tuple, together)) == sorted(map(tuple, facts))
    train = splits["train"]
    assert set(train[:, [0, 2]].flat) == set(facts[:, [0, 2]].flat)
    assert set(train[:, 1]) == set(facts[:, 1])
    if not notes:
        sizes = len(splits["valid"]), len(splits["test"])
        assert sizes == (round(valid * len(facts)), round(test * len(facts)))


def test_counts_fractions_and_seed() -> None:
    draw, _ = split_facts(FACTS, valid=50, test=0.2, seed=3)
    assert len(draw["valid"]) == 50
    assert len(draw["test"]) == round(0.2 * len(FACTS))
    again, _ = split_facts(FACTS, valid=50, test=0.2, seed=3)
    other, _ = split_facts(FACTS, valid=50, test=0.2, seed=4)
    assert all((draw[split] == again[split]).all() for split in draw)
    assert (draw["test"] != other["test"]).any()


def test_too_few_facts_to_hold_out() -> None:
    star = np.array([(0, 0, i) for i in range(1, 11)] + [(0, 1, 1)])  # a leaf has one fact only
    splits, (note,) = split_facts(star, valid=0.2, test=0.2)
    assert len(splits["valid"]) + len(splits["test"]) == 1
    assert note.startswith("only 1 of 11 facts can be held out")
    assert note.endswith("not the 4 asked for")
    assert len(split_facts(star, valid=0, test=0.2)[0]["test"]) == 1
    with pytest.raises(GoldeError, match=r"only 1 of 11 facts .*; 4 are asked for"):
        split_facts(star, valid=2, test=2)


def test_a_fraction_that_comes_to_nothing_is_noted() -> None:
    splits, notes = split_facts(FACTS[:3], valid=0.1, test=0.1)
    assert len(splits["train"]) == 3
    assert notes == ["3 facts are too few for the fractions held out, so valid and test are empty"]
    assert "so test is empty" in split_facts(FACTS, valid=0.2, test=1e-6)[1][0]
    assert split_facts(FACTS[:3], valid=0.0, test=0)[1] == []


@pytest.mark.parametrize("size", [-1, 1.0, 1.5, len(FACTS)])
def test_a_size_out_of_range(size: float) -> None:
    with pytest.raises(GoldeError, match=f"valid size is {size}; give a fraction"):
        split_facts(FACTS, valid=size)
