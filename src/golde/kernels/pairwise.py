"""Sum of component distances between queries and candidates.

Every distance is ``finish(⟨q, c⟩, query scalars, candidate scalars)`` per component, so scoring B
queries against N candidates is M small matrix products and a pointwise function, summed over M. The
component axis comes first, so that the products are one batched matrix multiplication. Nothing of
shape B×N×K is ever formed, and the blocked version does not form B×N×M either.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from golde.kernels.finish import Finish, Scalars

BLOCK_ELEMENTS = 1 << 16
"""Pairs × components handled at a time: a few such blocks of float32 stay in a core's cache."""


class Core(NamedTuple):
    """One side of the distance: the vector that enters the product, and pointwise scalars."""

    vector: Tensor  # (M, B, C) for queries, (M, N, C) for candidates
    scalars: Scalars  # each (M, B) or (M, N)


def pairwise_reference(query: Core, candidate: Core, finish: Finish, norm: int) -> Tensor:
    """``Σ_m d_m(q_b, c_n)^norm`` for every query and every candidate, (B, N): the plain form."""
    x = torch.bmm(query.vector, candidate.vector.mT)  # (M, B, N)
    columns, rows = _scalars(query, 2), _scalars(candidate, 1)
    return _power(finish.value(x, columns, rows), norm).sum(0)


def paired(query: Core, candidate: Core, finish: Finish, norm: int) -> Tensor:
    """``Σ_m d_m(q_b, c_b)^norm`` for query b and candidate b alone, (B,)."""
    with torch.autocast(query.vector.device.type, enabled=False):  # products keep their precision
        x = (query.vector * candidate.vector).sum(-1)  # (M, B)
        return _power(finish.value(x, query.scalars, candidate.scalars), norm).sum(0)


def pairwise(query: Core, candidate: Core, finish: Finish, norm: int) -> Tensor:
    """``Σ_m d_m(q_b, c_n)^norm`` for every query and every candidate, (B, N)."""
    with torch.autocast(query.vector.device.type, enabled=False):
        if query.vector.device.type != "cpu":
            return pairwise_reference(query, candidate, finish, norm)
        inputs = (query.vector, candidate.vector, *query.scalars, *candidate.scalars)
        result: Tensor = _Blocked.apply(finish, norm, len(query.scalars), *inputs)
        return result


class _Blocked(torch.autograd.Function):
    """The same, a block of queries at a time so that intermediates stay in cache, recomputed in backward."""

    @staticmethod
    def forward(
        ctx: Any, finish: Finish, norm: int, split: int, q: Tensor, c: Tensor, *scalars: Tensor
    ) -> Tensor:
        ctx.save_for_backward(q, c, *scalars)
        ctx.finish, ctx.norm, ctx.split = finish, norm, split
        query, candidate = Core(q, scalars[:split]), Core(c.contiguous(), scalars[split:])
        out = q.new_empty(q.shape[1], c.shape[1])
        for block in _blocks(q, c):
            part = Core(q[:, block], tuple(s[:, block] for s in query.scalars))
            out[block] = pairwise_reference(part, candidate, finish, norm)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        q, c, *scalars = ctx.saved_tensors
        c = c.contiguous()
        finish, split = ctx.finish, ctx.split
        query_scalars = [s.unsqueeze(2) for s in scalars[:split]]
        rows = tuple(s.unsqueeze(1) for s in scalars[split:])
        grad_q, grad_c = torch.empty_like(q), torch.zeros_like(c)
        grad_query = [torch.empty_like(s) for s in scalars[:split]]
        grad_candidate = [torch.zeros_like(s) for s in scalars[split:]]
        for block in _blocks(q, c):
            columns = tuple(s[:, block] for s in query_scalars)
            x = torch.bmm(q[:, block], c.mT)  # (M, b, N)
            grad = grads[0][block]
            if ctx.norm == 2:
                grad = 2 * grad * finish.value(x, columns, rows)
            grad_x, to_query, to_candidate = finish.gradient(grad, x, columns, rows)
            grad_q[:, block] = torch.bmm(grad_x, c)
            grad_c.baddbmm_(grad_x.mT, q[:, block])
            for total, part in zip(grad_query, to_query, strict=True):
                total[:, block] = part.sum(2)
            for total, part in zip(grad_candidate, to_candidate, strict=True):
                total += part.sum(1)
        return None, None, None, grad_q, grad_c, *grad_query, *grad_candidate


def _blocks(q: Tensor, c: Tensor) -> list[slice]:
    rows = max(1, BLOCK_ELEMENTS // max(1, q.shape[0] * c.shape[1]))
    return [slice(start, start + rows) for start in range(0, q.shape[1], rows)]


def _scalars(core: Core, axis: int) -> Scalars:
    return tuple(s.unsqueeze(axis) for s in core.scalars)


def _power(distance: Tensor, norm: int) -> Tensor:
    return distance if norm == 1 else distance.square()
