"""Launches that are noted down instead of made."""

from __future__ import annotations

from typing import Any
from weakref import ref

import pytest
import torch

from golde.kernels.triton import rehearsal
from golde.kernels.triton.memory import new
from golde.kernels.triton.rehearsal import Kernel

ONE = torch.ones(1)  # a launch is on the device of its tensors


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
    kernel[(3,)](ONE, 1, BLOCK=2)
    assert function.launched == [((3,), (ONE, 1), {"BLOCK": 2})]
    with rehearsal.rehearsal():
        with rehearsal.rehearsal():
            assert rehearsal.rehearsing()
            kernel[(4,)](ONE, 5, BLOCK=6)
            assert new(ONE, 3).tolist() == [0, 0, 0]
        assert rehearsal.rehearsing()
        assert not compiled
    assert not rehearsal.rehearsing()
    assert len(function.launched) == 1
    (launch,) = compiled
    assert launch.function is function
    assert (launch.grid, launch.arguments[1:], launch.constants) == ((4,), (5,), {"BLOCK": 6})
    assert (launch.arguments[0].dtype, launch.device) == (ONE.dtype, ONE.device)
    assert launch.arguments[0].data_ptr() == ONE.data_ptr()


@pytest.mark.parametrize("grid", [(0,), (3, 0)])
def test_an_empty_grid_is_not_launched(
    grid: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[Any] = []
    monkeypatch.setattr(rehearsal, "_compile", compiled.extend)
    function = Recorded()
    Kernel(function)[grid](ONE)
    with rehearsal.rehearsal():
        Kernel(function)[grid](ONE)
    assert not function.launched
    assert not compiled


def test_a_rehearsal_holds_on_to_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it would need more than a step: all that one takes in passing, at once."""
    monkeypatch.setattr(rehearsal, "_compile", lambda launches: None)
    kernel = Kernel(Recorded())
    with rehearsal.rehearsal():
        passing = new(ONE, 3)
        watched = ref(passing)
        kernel[(1,)](passing)
        del passing
        assert watched() is None


def test_a_rehearsal_that_fails_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Any] = []
    monkeypatch.setattr(rehearsal, "_compile", compiled.extend)
    kernel = Kernel(Recorded())
    with pytest.raises(ZeroDivisionError), rehearsal.rehearsal():  # noqa: PT012
        kernel[(1,)](ONE)
        _ = 1 / 0
    assert not rehearsal.rehearsing()
    assert not compiled
