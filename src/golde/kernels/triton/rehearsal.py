"""Kernels launched by name, and compiled side by side before they are first needed.

Triton compiles a kernel when it is first launched. A training step launches some thirty, one after
another, and would spend a quarter of a minute on it. Rehearsed, the step goes through its motions without
launching anything; the kernels it would have launched are then compiled all at once.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor


class _Pointer:
    """All that a kernel is compiled for of a tensor, whose memory others may have."""

    def __init__(self, tensor: Tensor) -> None:
        self.dtype, self._address = tensor.dtype, tensor.data_ptr()

    def data_ptr(self) -> int:
        """Whose alignment counts."""
        return self._address


class _Launch(NamedTuple):
    function: Any
    grid: tuple[int, ...]
    arguments: tuple[Any, ...]
    constants: dict[str, Any]
    device: torch.device


_rehearsed: list[_Launch] | None = None  # what was to be launched; none unless rehearsing


class Kernel:
    """A Triton function that is launched on a grid, as ``kernel[grid](...)``; on an empty one it is not."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        return partial(_launch, self.function, grid)


def _launch(function: Any, grid: tuple[int, ...], *arguments: Any, **constants: Any) -> None:
    if not math.prod(grid):
        return
    device = next(each.device for each in arguments if isinstance(each, Tensor))
    if _rehearsed is not None:
        seen = tuple(_Pointer(each) if isinstance(each, Tensor) else each for each in arguments)
        _rehearsed.append(_Launch(function, grid, seen, constants, device))
        return
    with _on(device):
        function[grid](*arguments, **constants)


def _on(device: torch.device) -> AbstractContextManager[object]:
    """Triton launches on the current device, which need not be the tensors'."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def rehearsing() -> bool:
    """Whether launches are only noted down: what they should have written is then 0."""
    return _rehearsed is not None


@contextmanager
def rehearsal() -> Iterator[None]:
    """Compile what is launched under it, side by side, instead of launching it.

    One within another leaves the compiling to that.
    """
    global _rehearsed
    if _rehearsed is not None:
        yield
        return
    launches: list[_Launch] = []
    _rehearsed = launches
    try:
        yield
    finally:
        _rehearsed = None
    _compile(launches)


def _compile(launches: list[_Launch]) -> None:
    from triton import AsyncCompileMode

    with ThreadPoolExecutor(os.cpu_count()) as pool, AsyncCompileMode(pool):
        for function, grid, arguments, constants, device in launches:
            with _on(device):
                function.warmup(*arguments, grid=grid, **constants)
