"""Sum of component distances between queries and candidates.

Every distance is ``finish(⟨q, c⟩, query scalars, candidate scalars)`` per component, so scoring B
queries against N candidates is M small matrix products and a pointwise function, summed over M. The
component axis comes first, so that the products are one batched matrix multiplication. Nothing of
shape B×N×K is ever formed, and the blocked version does not form B×N×M either.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cache
from math import isqrt
from typing import Any, NamedTuple

import torch
from torch import Tensor

from golde.kernels.finish import Finish, Root, Scalars
from golde.kernels.triton.support import supports

BLOCK_ELEMENTS = 1 << 17
"""Pairs × components handled at a time: a few such tiles of float32 stay in a core's cache."""

COMPILED_BLOCKS = 4
"""One compiled loop keeps fewer intermediates than a chain of operations, so its tiles are larger."""

DEVICE_BLOCK_ELEMENTS = 1 << 26
"""Pairs × components at a time on a GPU, where a tile has to keep all of it busy."""

TILE_SIDE = 64
"""Queries of a tile, where there are so many and as many candidates find room beside them.

Products of a few rows with very many columns are several times slower than those of a compact tile.
"""

LANES = 16
"""What lengths of spans are a multiple of if they can be: float32 numbers in the widest registers."""

LEAST_PAIRS = 1024
"""Pairs of a tile even where there are too many components for the cache: smaller products cost more."""


class Core(NamedTuple):
    """One side of the distance: the vector that enters the product, and pointwise scalars."""

    vector: Tensor  # (M, B, C) for queries, (M, N, C) for candidates
    scalars: Scalars  # each (M, B) or (M, N)


def pairwise_reference(query: Core, candidate: Core, finish: Finish, norm: int) -> Tensor:
    """``Σ_m d_m(q_b, c_n)^norm`` for every query and every candidate, (B, N): the plain form."""
    x = torch.bmm(query.vector, candidate.vector.mT)  # (M, B, N)
    columns, rows = _broadcast(*finish.sides(query.scalars, candidate.scalars))
    return _values(finish, norm, x, columns, rows)


def paired(query: Core, candidate: Core, finish: Finish, norm: int) -> Tensor:
    """``Σ_m d_m(q_b, c_b)^norm`` for query b and candidate b alone, (B,)."""
    device = query.vector.device
    with torch.autocast(device.type, enabled=False):  # products keep their precision
        if device.type != "cpu" and supports(finish, query.vector.dtype, device):
            from golde.kernels.triton.distance import fused_paired

            return fused_paired(query, candidate, norm)
        x = (query.vector * candidate.vector).sum(-1)  # (M, B)
        sides = finish.sides(query.scalars, candidate.scalars)
        return _power(finish.value(x, *sides), norm).sum(0)


def pairwise(
    query: Core, candidate: Core, finish: Finish, norm: int, *, compiled: bool = False
) -> Tensor:
    """``Σ_m d_m(q_b, c_n)^norm`` for every query and every candidate, (B, N).

    The best form there is: fused kernels on a GPU, tiles that stay in cache on a CPU, else the plain
    form. With ``compiled`` the pointwise work of a tile is one loop (see ``can_compile``).
    """
    device = query.vector.device
    with torch.autocast(device.type, enabled=False):
        if device.type != "cpu":
            if supports(finish, query.vector.dtype, device):
                from golde.kernels.triton.distance import fused_pairwise

                return fused_pairwise(query, candidate, finish, norm)
            if torch.is_grad_enabled():  # ranking scores far more pairs at once, which need blocks
                return pairwise_reference(query, candidate, finish, norm)
        inputs = (query.vector, candidate.vector, *query.scalars, *candidate.scalars)
        return _blocked(finish, norm, compiled, len(query.scalars), *inputs)


def _values(finish: Finish, norm: int, x: Tensor, query: Scalars, candidate: Scalars) -> Tensor:
    """The pointwise work of a tile, forward: (M, b, n) to (b, n)."""
    return _power(finish.value(x, query, candidate), norm).sum(0)


def _gradients(
    finish: Finish, norm: int, grad: Tensor, x: Tensor, query: Scalars, candidate: Scalars
) -> tuple[Tensor, Scalars, Scalars]:
    """The pointwise work of a tile, backward; gradients of scalars are summed over their pairs."""
    if norm == 2:
        grad = 2 * grad * finish.value(x, query, candidate)
    grad_x, to_query, to_candidate = finish.gradient(grad, x, query, candidate)
    return grad_x, tuple(g.sum(2) for g in to_query), tuple(g.sum(1) for g in to_candidate)


@cache
def _compiled() -> tuple[Callable[..., Tensor], Callable[..., tuple[Tensor, Scalars, Scalars]]]:
    """Both compiled; only when first needed, because the compiler takes a second to import."""
    return torch.compile(_values, dynamic=True), torch.compile(_gradients, dynamic=True)


@cache
def can_compile() -> bool:
    """Whether ``torch.compile`` works here (it needs a C++ compiler); tried once, on a small case."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _compiled()[0](Root(), 1, torch.rand(2, 3, 4), (), ())
    except Exception:  # whatever is missing: the eager version works everywhere
        return False
    return True


class _Blocked(torch.autograd.Function):
    """The same, a tile at a time so that intermediates stay in cache, recomputed in backward."""

    @staticmethod
    def forward(
        ctx: Any,
        finish: Finish,
        norm: int,
        compiled: bool,
        split: int,
        q: Tensor,
        c: Tensor,
        *scalars: Tensor,
    ) -> Tensor:
        ctx.save_for_backward(q, c, *scalars)
        ctx.finish, ctx.norm, ctx.compiled, ctx.split = finish, norm, compiled, split
        values = _compiled()[0] if compiled else _values
        out = q.new_empty(q.shape[1], c.shape[1])
        down, over = _cut(finish, compiled, split, q, c, *scalars)
        for queries, own in down:
            for candidates, theirs in over:
                x = torch.bmm(own.vector, theirs.vector.mT)  # (M, b, n)
                sides = _broadcast(own.scalars, theirs.scalars)
                out[queries, candidates] = values(finish, norm, x, *sides)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        gradients = _compiled()[1] if ctx.compiled else _gradients
        q, c, *scalars = ctx.saved_tensors
        down, over = _cut(ctx.finish, ctx.compiled, ctx.split, q, c, *scalars)
        # Transposed: a product whose long side is last is up to five times as quick on a CPU, and so is
        # one that is added to what lies in one piece; hence a sum for each span.
        grads_q, grads_c = (
            [part.vector.new_zeros(part.vector.mT.shape) for _, part in side]
            for side in (down, over)
        )
        grad_query = [torch.zeros_like(s) for s in scalars[: ctx.split]]
        grad_candidate = [torch.zeros_like(s) for s in scalars[ctx.split :]]
        for (queries, own), grad_q in zip(down, grads_q, strict=True):
            for (candidates, theirs), grad_c in zip(over, grads_c, strict=True):
                x = torch.bmm(own.vector, theirs.vector.mT)
                sides = _broadcast(own.scalars, theirs.scalars)
                grad = grads[0][queries, candidates]  # compiled code is quicker than with a copy
                grad_x, to_query, to_candidate = gradients(ctx.finish, ctx.norm, grad, x, *sides)
                grad_q.baddbmm_(theirs.vector.mT, grad_x.mT)
                grad_c.baddbmm_(own.vector.mT, grad_x)
                for total, part in zip(grad_query, to_query, strict=True):
                    total[:, queries] += part
                for total, part in zip(grad_candidate, to_candidate, strict=True):
                    total[:, candidates] += part
        grad_q, grad_c = torch.cat(grads_q, 2), torch.cat(grads_c, 2)
        return None, None, None, None, grad_q.mT, grad_c.mT, *grad_query, *grad_candidate


def _broadcast(query: Scalars, candidate: Scalars) -> tuple[Scalars, Scalars]:
    """Query scalars as columns and candidate scalars as rows of a tile."""
    return tuple(s.unsqueeze(2) for s in query), tuple(s.unsqueeze(1) for s in candidate)


def _cut(
    finish: Finish, compiled: bool, split: int, q: Tensor, c: Tensor, *scalars: Tensor
) -> tuple[list[tuple[slice, Core]], list[tuple[slice, Core]]]:
    """Both sides in spans, with all that a pair needs of them; every tile is one span of each.

    Each lies in memory of its own, a whole side as well, because code is compiled anew for other strides.
    """
    sides = finish.sides(_detached(scalars[:split]), _detached(scalars[split:]))
    down, over = (
        [(at, Core(_own(side[:, at]), tuple(_own(s[:, at]) for s in of_side))) for at in spans]
        for side, of_side, spans in zip((q, c), sides, _tiles(q, c, compiled), strict=True)
    )
    return down, over


def _own(part: Tensor) -> Tensor:
    return part.clone(memory_format=torch.contiguous_format)


def _detached(scalars: Sequence[Tensor]) -> Scalars:
    """The compiler looks at the gradient of what it is given, and warns where that is no leaf."""
    return tuple(s.detach() for s in scalars)


_blocked: Callable[..., Tensor] = _Blocked.apply


def _tiles(q: Tensor, c: Tensor, compiled: bool) -> tuple[list[slice], list[slice]]:
    """The spans of queries and of candidates that every tile is one pair of; at least one of each."""
    elements = BLOCK_ELEMENTS * (COMPILED_BLOCKS if compiled else 1)
    if q.device.type != "cpu":
        elements = DEVICE_BLOCK_ELEMENTS
    (M, B, _), N = q.shape, c.shape[1]
    pairs = max(LEAST_PAIRS, elements // max(1, M))
    side = min(TILE_SIDE, isqrt(pairs))
    wide = max(1, min(N, pairs // max(1, min(B, side))))
    return _spans(B, pairs // wide), _spans(N, wide)


def _spans(length: int, most: int) -> list[slice]:
    """Equally long but for the last: hardly ever is that of length 1, for which code is compiled anew."""
    unit = LANES if most >= LANES else 1
    count = max(1, -(-length // (most // unit * unit)))
    step = max(1, -(-length // (count * unit))) * unit
    return [slice(start, min(start + step, length)) for start in range(0, max(1, length), step)]


def _power(distance: Tensor, norm: int) -> Tensor:
    return distance if norm == 1 else distance.square()
