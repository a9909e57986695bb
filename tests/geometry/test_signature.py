"""Signatures are read, printed and checked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golde.errors import ConfigError
from golde.geometry import GEOMETRIES, Signature, Term

terms = st.builds(Term, st.sampled_from(list(GEOMETRIES)), st.integers(2, 900), st.integers(1, 99))


@given(st.lists(terms, min_size=1, max_size=4))
def test_printed_signatures_are_read_back(parts: list[Term]) -> None:
    signature = Signature(tuple(parts))
    assert Signature.parse(str(signature)) == signature


def test_a_hyperboloid_stores_one_number_fewer() -> None:
    signature = Signature.parse("P10x36 Q13x36")
    assert (signature.numbers, signature.components) == (36 * 10 + 36 * 12, 72)


@pytest.mark.parametrize(
    ("text", "printed"),
    [("E400", "E400x1"), ("p8x2*q9x2", "P8x2 Q9x2"), ("  E2x3\tE1 ", "E2x3 E1x1"), ("Q2", "Q2x1")],
)
def test_accepted_spellings(text: str, printed: str) -> None:
    assert str(Signature.parse(text)) == printed


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("P10x36,Q13x36", "'P10x36,Q13x36'"),
        ("P10 x36", "'X'"),
        ("P-3", "'P-3'"),
        ("X3x2", "'X'"),
        ("Q1x4", "at least 2"),
        ("E0", "at least 1"),
        ("E2x0", "count of at least 1"),
        ("E" + "9" * 5000, "cannot read"),
        (" ", "empty"),
    ],
)
def test_errors_name_the_word_and_the_rule(text: str, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        Signature.parse(text)
