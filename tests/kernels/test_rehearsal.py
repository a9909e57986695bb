"""Launches that are noted down instead of made."""

from __future__ import annotations

from typing import Any

import pytest

from golde.kernels.triton import rehearsal
from golde.kernels.triton.rehearsal import Kernel


class Recorded:
    """Stands in for a Triton function."""

    def __init__(self) -> None:
        self.launched: list[Any] = []

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        return lambda *args, **constants: self.launched.append((grid, args, constants))


def test_a_kernel_is_launched_unless_it_is_rehearsed(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Any] = []
    monkeypatch.setattr(rehearsal, "_compile", compiled.extend)
    function = Recorded()
    kernel = Kernel(function)
    kernel[(3,)](1, BLOCK=2)
    assert function.launched == [((3,), (1,), {"BLOCK": 2})]
    with rehearsal.rehearsal():
        with rehearsal.rehearsal():
            assert rehearsal.rehearsing()
            kernel[(4,)](5, BLOCK=6)
        assert rehearsal.rehearsing()
        assert not compiled
    assert not rehearsal.rehearsing()
    assert len(function.launched) == 1
    (launch,) = compiled
    assert launch.function is function
    assert (launch.grid, launch.arguments, launch.constants) == ((4,), (5,), {"BLOCK": 6})


def test_a_rehearsal_that_fails_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Any] = []
    monkeypatch.setattr(rehearsal, "_compile", compiled.extend)
    kernel = Kernel(Recorded())
    with pytest.raises(ZeroDivisionError), rehearsal.rehearsal():  # noqa: PT012
        kernel[(1,)]()
        _ = 1 / 0
    assert not rehearsal.rehearsing()
    assert not compiled
