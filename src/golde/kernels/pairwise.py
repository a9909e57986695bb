"""Sum of component distances between queries and candidates: a bilinear core and a pointwise finish.

Every distance here is ``finish(⟨q, c⟩, query scalars, candidate scalars)`` per component, so scoring
B queries against N candidates is M small matrix products and a pointwise function, summed over M.
The component axis comes first, so that the products are one batched matrix multiplication.
Nothing of shape B×N×K is ever formed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

Finish = Callable[[Tensor, tuple[Tensor, ...], tuple[Tensor, ...]], Tensor]
"""``finish(dot, query scalars, candidate scalars)``: pointwise and broadcasting."""


class Core(NamedTuple):
    """One side of the distance: the vector that enters the product, and pointwise scalars."""

    vector: Tensor  # (M, B, C) for queries, (M, N, C) for candidates
    scalars: tuple[Tensor, ...]  # each (M, B) or (M, N)


def pairwise(query: Core, candidate: Core, finish: Finish, norm: int) -> Tensor:
    """``Σ_m d_m(q_b, c_n)^norm`` for every query and every candidate, (B, N)."""
    with torch.autocast(query.vector.device.type, enabled=False):  # products keep their precision
        dot = torch.bmm(query.vector, candidate.vector.mT)  # (M, B, N)
        distance = finish(
            dot,
            tuple(s.unsqueeze(2) for s in query.scalars),
            tuple(s.unsqueeze(1) for s in candidate.scalars),
        )
        return _power(distance, norm).sum(0)


def paired(query: Core, candidate: Core, finish: Finish, norm: int) -> Tensor:
    """``Σ_m d_m(q_b, c_b)^norm`` for query b and candidate b alone, (B,)."""
    with torch.autocast(query.vector.device.type, enabled=False):
        dot = (query.vector * candidate.vector).sum(-1)  # (M, B)
        return _power(finish(dot, query.scalars, candidate.scalars), norm).sum(0)


def _power(distance: Tensor, norm: int) -> Tensor:
    return distance if norm == 1 else distance.square()
