"""The sort of a few numbers, against ``torch.sort``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
import torch
from torch import Tensor

from oracles import seeded

pytest.importorskip("triton", reason="Triton is not installed (extra: kernels)")

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
LARGEST = 2**31 - 1
SIZES = [1, 31, 32, 300] + ([5000, 1 << 14] if CUDA else [])

sorting: Any = import_module("golde.kernels.triton.sorting")


pytestmark = pytest.mark.usefixtures("surroundings")


def check(values: Tensor) -> None:
    """Numbers and where they came from, equal ones as they came, in memory that held nonsense."""
    values = values.to(DEVICE)
    ordered, order = (torch.full_like(values, -77) for _ in range(2))
    sorting.launch_sort(values, ordered, order)
    expected = torch.sort(values, stable=True)
    assert torch.equal(ordered, expected.values)
    assert torch.equal(order, expected.indices)


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("limit", [2, 40, LARGEST + 1], ids=["many ties", "ties", "none"])
def test_any_numbers(count: int, limit: int) -> None:
    check(torch.randint(limit, (count,), generator=seeded(count)))


@pytest.mark.parametrize("count", SIZES)
def test_numbers_in_order(count: int) -> None:
    """Already sorted, backwards, all equal, and all of them the largest there is."""
    rising = torch.arange(count)
    check(rising)
    check(rising.flip(0))
    check(torch.zeros_like(rising))
    check(torch.full_like(rising, LARGEST))


@pytest.mark.parametrize("few", [0, 50])
def test_however_many_there_are(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """None, a few and more than that, which take the general way; into memory that is given."""
    monkeypatch.setattr(sorting, "FEW", few)
    for count in (0, 50, 51):
        values = torch.randint(9, (2 * count,), generator=seeded(1)).to(DEVICE)[::2]
        given = torch.full_like(values, -77)
        ordered, order = sorting.sorted_few(values, given)
        expected = torch.sort(values, stable=True)
        assert ordered is given
        assert torch.equal(ordered, expected.values)
        assert torch.equal(order, expected.indices)
        assert torch.equal(sorting.sorted_few(values)[0], expected.values)
