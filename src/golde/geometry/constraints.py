"""Smooth maps from free parameters to constrained ones, with a gradient everywhere."""

from __future__ import annotations

import math

from torch import Tensor

from golde.kernels.triton.support import fuses

POSITIVE_RANGE = 20.0
"""``positive`` reaches the open interval (1/20, 20)."""


def positive(free: Tensor) -> Tensor:
    """``exp(L · tanh(free / L))`` with ``L = log 20``: 1 with slope 1 at 0, inside (1/20, 20) for ever."""
    limit = math.log(POSITIVE_RANGE)
    if fuses(free):
        from golde.kernels.triton.positive import fused_positive

        return fused_positive(free, limit)
    return (limit * (free / limit).tanh()).exp()
