"""Memory that kernels write to."""

from __future__ import annotations

import torch
from torch import Tensor

from golde.kernels.triton.rehearsal import rehearsing


def new(like: Tensor, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
    """Memory on the device of ``like``, that the caller has written to the last number.

    Where nothing is launched it is 0, so that what is read from it can stand for an index.
    """
    make = like.new_zeros if rehearsing() else like.new_empty
    return make(shape, dtype=dtype)
