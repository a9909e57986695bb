"""Sizes of a step: what can be had, and what a sweep changes."""

from __future__ import annotations

import pytest

from golde.benchmark.size import FACTORS, SMALL, SWEEPS, WN18RR, Size, check, growth
from golde.errors import ConfigError
from golde.geometry import Signature


@pytest.mark.parametrize("dimension", SWEEPS)
def test_a_sweep_changes_one_thing_in_proportion(dimension: str) -> None:
    sizes = list(growth(WN18RR, dimension).values())
    kept = {"components": "signature", "dimension": "signature"}.get(dimension, dimension)
    for size, factor in zip(sizes, FACTORS, strict=True):
        check(size)
        assert size._replace(**{kept: getattr(WN18RR, kept)}) == WN18RR
        if kept != "signature":
            assert getattr(size, kept) == round(factor * getattr(WN18RR, kept))


def test_components_and_dimensions_grow_apart() -> None:
    usual = Signature.parse(WN18RR.signature)
    more = [Signature.parse(size.signature) for size in growth(WN18RR, "components").values()]
    longer = [Signature.parse(size.signature) for size in growth(WN18RR, "dimension").values()]
    assert [s.components for s in more] == [factor * usual.components for factor in FACTORS]
    assert {s.components for s in longer} == {usual.components}
    assert str(longer[1]) == "P5x36 Q7x36"  # half the numbers, and one more coordinate of Q
    assert "dimension P5 Q7" in growth(WN18RR, "dimension")


def test_a_sweep_ends_at_one() -> None:
    tiny = Size(40, 2, 60, "P1 Q2", 1, 1)
    for dimension in ("batch", "negatives", "components", "dimension"):
        for size in growth(tiny, dimension).values():
            check(size)


def test_what_cannot_be_had_is_named() -> None:
    with pytest.raises(ConfigError, match="--batch 50000 is more than the 40,000 queries"):
        check(SMALL._replace(batch=50_000))
    with pytest.raises(ConfigError, match=r"--facts 20000 .* give at most 9471"):
        check(SMALL._replace(entities=42))
    with pytest.raises(
        ConfigError, match=r"--negatives 256 is more than the 200 entities; lower it \(0: all"
    ):
        check(SMALL._replace(entities=200))
    check(SMALL._replace(entities=256))
    check(SMALL._replace(entities=200, negatives=0))
    with pytest.raises(ConfigError, match="unknown geometry"):
        check(SMALL._replace(signature="Z3"))
    with pytest.raises(ConfigError, match="nothing to vary"):
        growth(SMALL._replace(negatives=0), "negatives")
