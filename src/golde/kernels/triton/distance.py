"""``Σ_m d_m(q_b, c_n)^norm`` on a GPU: launchers, autograd function, public function.

The reference is ``golde.kernels.pairwise_reference``; kernels and their derivation are in ``kernels``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from golde.kernels.finish import Finish, Geodesic
from golde.kernels.pairwise import Core
from golde.kernels.triton.blocks import WHOLE, Blocks, Configuration, configuration, width
from golde.kernels.triton.kernels import forward_kernel, gradients_kernel, slopes_kernel

PRECISIONS = ("ieee", "tf32x3", "tf32")
"""Of the products: float32; three TF32 products, nearly as exact; one, which is not."""

NARROW = 2**31 - 1
"""The largest offset that 32 bits hold."""


# Launchers. Scalars are contiguous here, vectors and the incoming gradient may have any strides. A
# finish without scalars passes the vectors' pointer in their place, and nothing is read through it.


def launch_forward(
    q: Tensor,
    c: Tensor,
    scalars: Sequence[Tensor],
    norm: int,
    weight: float,
    out: Tensor,
    *,
    accumulate: bool,
    precision: str,
    blocks: Blocks,
) -> None:
    """Write ``weight · Σ_m d_m^norm`` to the contiguous table ``out`` (B, N), or add it there."""
    (M, B, C), N = q.shape, c.shape[1]
    programs = -(-B // blocks.rows) * -(-N // blocks.columns)
    if programs == 0:
        return
    with _on(q.device):
        forward_kernel[(programs,)](
            q, c, *_three(scalars, q), out, weight, M, B, N, C, *q.stride(), *c.stride(),
            GEODESIC=bool(scalars), NORM=norm, ACCUMULATE=accumulate, PRECISION=precision,
            WIDE=_wide(q[:1], c[:1], out),
            **_pieces(C), **_launch(blocks, "BLOCK_B", "BLOCK_N"),
        )  # fmt: skip


def launch_gradients(
    q: Tensor,
    c: Tensor,
    scalars: Sequence[Tensor],
    norm: int,
    weight: float,
    grad: Tensor,
    *,
    of_queries: bool,
    precision: str,
    blocks: Blocks,
) -> list[Tensor]:
    """Gradients of one side, its core vectors first; these have at most ``WHOLE`` numbers."""
    own, other = (q, c) if of_queries else (c, q)
    M, rows, C = own.shape
    found = [_new(own)]
    if scalars:
        found += [_new(own, M, rows) for _ in range(2 if of_queries else 1)]
    programs = M * -(-rows // blocks.rows)
    if programs == 0:
        return found
    by_grad = grad.stride() if of_queries else grad.stride()[::-1]
    pieces = _pieces(C)
    if pieces.pop("PIECES") > 1:
        raise ValueError(f"core vectors of {C} numbers do not fit; at most {WHOLE} do")
    with _on(q.device):
        gradients_kernel[(programs,)](
            own, other, *_three(scalars, q), grad, *_three(found, found[0]),
            weight, M, rows, other.shape[1], C, *own.stride(), *other.stride(),
            *found[0].stride(), *by_grad,
            OF_QUERIES=of_queries, GEODESIC=bool(scalars), NORM=norm, PRECISION=precision,
            WIDE=_wide(q[:1], c[:1], found[0][:1], grad),
            **pieces, **_launch(blocks, "BLOCK_OWN", "BLOCK_OTHER"),
        )  # fmt: skip
    return found


def launch_long_gradients(
    q: Tensor,
    c: Tensor,
    scalars: Sequence[Tensor],
    norm: int,
    weight: float,
    grad: Tensor,
    *,
    precision: str,
    blocks: Blocks,
) -> tuple[list[Tensor], list[Tensor]]:
    """Gradients of both sides for core vectors of any length, one component at a time."""
    (M, B, C), N = q.shape, c.shape[1]
    down, across = -(-B // blocks.rows), -(-N // blocks.columns)
    to_query, to_candidate = [_new(q)], [_new(c)]
    sums: list[Tensor] = []
    if scalars:
        to_query += [_new(q, M, B), _new(q, M, B)]
        to_candidate += [_new(c, M, N)]
        sums = [_new(q, across, B), _new(q, across, B), _new(c, down, N)]
    slopes = _new(q, B, N)
    totals = [*to_query[1:], *to_candidate[1:]]
    for m in range(M):
        if down * across:
            with _on(q.device):
                slopes_kernel[(down * across,)](
                    q[m], c[m], *_three([s[m] for s in scalars], q), grad, slopes,
                    *_three(sums, slopes), weight, B, N, C,
                    *q.stride()[1:], *c.stride()[1:], *grad.stride(),
                    GEODESIC=bool(scalars), NORM=norm, PRECISION=precision,
                    WIDE=_wide(q[:1], c[:1], grad, slopes),
                    **_pieces(C), **_launch(blocks, "BLOCK_B", "BLOCK_N"),
                )  # fmt: skip
        torch.matmul(slopes, c[m], out=to_query[0][m])
        torch.matmul(slopes.T, q[m], out=to_candidate[0][m])
        for total, parts in zip(totals, sums, strict=True):
            torch.sum(parts, 0, out=total[m])
    return to_query, to_candidate


def _new(like: Tensor, *shape: int) -> Tensor:
    """Memory that the caller writes to the last number; without a shape, laid out as ``like`` is."""
    return like.new_empty(shape) if shape else torch.empty_like(like)


def _wide(*tensors: Tensor) -> bool:
    """Whether an element may lie too far from the first for 32 bits (blocks reach past the end)."""
    return any(
        sum((n + 128) * abs(by) for n, by in zip(t.shape, t.stride(), strict=True)) > NARROW
        for t in tensors
    )


def _pieces(C: int) -> dict[str, int]:
    return {"PIECES": -(-C // width(C)), "BLOCK_C": width(C)}


def _launch(blocks: Blocks, rows: str, columns: str) -> dict[str, int]:
    return {
        rows: blocks.rows,
        columns: blocks.columns,
        "num_warps": blocks.warps,
        "num_stages": blocks.stages,
    }


def _three(tensors: Sequence[Tensor], stand_in: Tensor) -> list[Tensor]:
    return [*tensors, *[stand_in] * (3 - len(tensors))]


def _on(device: torch.device) -> AbstractContextManager[object]:
    """Triton launches on the current device, which need not be the tensors'."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


# Autograd.


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        finish: Finish,
        norm: int,
        weight: float,
        precision: str,
        chosen: Configuration,
        onto: Tensor | None,
        q: Tensor,
        c: Tensor,
        *scalars: Tensor,
    ) -> Tensor:
        scalars = tuple(s.contiguous() for s in scalars)
        ctx.save_for_backward(q, c, *scalars)
        ctx.settings = norm, weight, precision, chosen
        ctx.of_query = 2 if isinstance(finish, Geodesic) else 0  # so many scalars
        out = _new(q, q.shape[1], c.shape[1]) if onto is None else onto
        if onto is not None:
            ctx.mark_dirty(onto)
        launch_forward(
            q, c, scalars, norm, weight, out,
            accumulate=onto is not None, precision=precision, blocks=chosen.forward,
        )  # fmt: skip
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        q, c, *scalars = ctx.saved_tensors
        norm, weight, precision, chosen = ctx.settings
        wants_onto, wants_q, wants_c, *wants_scalars = ctx.needs_input_grad[5:]
        wants_queries = wants_q or any(wants_scalars[: ctx.of_query])
        wants_candidates = wants_c or any(wants_scalars[ctx.of_query :])
        to_query: Sequence[Tensor | None] = [None] * (1 + ctx.of_query)
        to_candidate: Sequence[Tensor | None] = [None] * (1 + len(scalars) - ctx.of_query)
        arguments = q, c, scalars, norm, weight, grads[0]
        if q.shape[2] > WHOLE:
            if wants_queries or wants_candidates:
                with torch.autocast(q.device.type, enabled=False):
                    to_query, to_candidate = launch_long_gradients(
                        *arguments, precision=precision, blocks=chosen.slopes
                    )
        else:
            if wants_queries:
                to_query = launch_gradients(
                    *arguments, of_queries=True, precision=precision, blocks=chosen.queries
                )
            if wants_candidates:
                to_candidate = launch_gradients(
                    *arguments, of_queries=False, precision=precision, blocks=chosen.candidates
                )
        found = (to_query[0], to_candidate[0], *to_query[1:], *to_candidate[1:])
        wanted = (wants_q, wants_c, *wants_scalars)
        onto = grads[0] if wants_onto else None
        return (None,) * 5 + (onto, *(g if w else None for g, w in zip(found, wanted, strict=True)))


_fused: Callable[..., Tensor] = _Fused.apply


def fused_pairwise(
    query: Core,
    candidate: Core,
    finish: Finish,
    norm: int,
    *,
    precision: str = "tf32x3",
    weight: float = 1.0,
    onto: Tensor | None = None,
    blocks: Configuration | None = None,
) -> Tensor:
    """``weight · Σ_m d_m(q_b, c_n)^norm`` for every query and candidate, (B, N), where ``supports`` agrees.

    ``onto`` is a contiguous table that the sum is added to in place, and that is then returned:
    several groups of components share one table. ``blocks`` overrides the choice of ``configuration``.
    """
    q, c = query.vector, candidate.vector
    scalars = (*query.scalars, *candidate.scalars)
    (M, B, C), N = q.shape, c.shape[1]
    if precision not in PRECISIONS:
        raise ValueError(f"precision is {precision!r}; it must be one of {', '.join(PRECISIONS)}")
    if norm not in (1, 2):
        raise ValueError(f"norm is {norm}; it must be 1 or 2")
    kinds = {t.dtype for t in (q, c, *scalars)} | ({onto.dtype} if onto is not None else set())
    if kinds != {torch.float32}:
        raise ValueError(f"inputs are {kinds}; the fused kernels take float32 only")
    if c.shape != (M, N, C):
        raise ValueError(f"queries are {tuple(q.shape)}, candidates {tuple(c.shape)}")
    if onto is not None and (onto.shape != (B, N) or not onto.is_contiguous()):
        raise ValueError(f"the sum can only be added to a contiguous ({B}, {N}) table")
    chosen = blocks or configuration(C, M)
    return _fused(finish, norm, float(weight), precision, chosen, onto, q, c, *scalars)
