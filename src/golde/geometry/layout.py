"""Queries and candidates innermost in memory.

A component has few numbers (K is about ten) and there are thousands of queries. With the queries as
the fastest axis, a sum over K or a factor a query runs over long rows; the other way round it is
several times slower on a CPU. Shapes do not show it: vectors are (M, B, K), stored as (M, K, B).
"""

from __future__ import annotations

import torch
from torch import Tensor


def batch_last(x: Tensor) -> Tensor:
    """Vectors (B, M, K) as (M, B, K), stored as (M, K, B)."""
    return x.permute(1, 2, 0).contiguous().mT


def join(*parts: Tensor) -> Tensor:
    """``torch.cat`` over the last axis of such vectors, stored the same way."""
    return torch.cat([part.mT for part in parts], 1).mT
