"""``Σ_m d_m(q_b, c_n)^norm`` on a GPU: launchers, autograd function, public function.

The reference is ``golde.kernels.pairwise_reference``; kernels and their derivation are in ``kernels``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from golde.kernels.finish import Finish, Geodesic
from golde.kernels.pairwise import Core
from golde.kernels.triton.blocks import (
    WHOLE,
    Blocks,
    Configuration,
    configuration,
    stretch,
    width,
)
from golde.kernels.triton.kernels import (
    CANDIDATE_SIDES,
    QUERY_SIDES,
    backward_kernel,
    forward_kernel,
    pack_kernel,
    paired_kernel,
    slopes_kernel,
)

PRECISIONS = ("ieee", "tf32x3", "tf32")
"""Of the products: float32; three TF32 products, nearly as exact; one, which is not."""

NARROW = 2**31 - 1
"""The largest offset that 32 bits hold."""

PACK_ROWS = 64
PAIRED_ROWS = 32


class Packed(NamedTuple):
    """One side in padded blocks; ``sides`` is empty for a finish without scalars."""

    forms: Tensor  # (3 or 1, M, padded rows, padded numbers): as they are, then in halves if wanted
    sides: Tensor  # (M, 5 or 2, padded rows)

    @property
    def vectors(self) -> Tensor:
        """As they are, (M, padded rows, padded numbers)."""
        return self.forms[0]

    @property
    def halves(self) -> tuple[Tensor, Tensor]:
        """High and low; without halves, both as they are."""
        return self.forms[-2 if len(self.forms) > 1 else 0], self.forms[-1]


# Launchers.


def launch_pack(
    vectors: Tensor, scalars: Sequence[Tensor], chosen: Configuration, precision: str
) -> Packed:
    """One side, padded, with what the finish needs of it; scalars are contiguous."""
    M, rows, C = vectors.shape
    padded = -(-rows // chosen.multiple) * chosen.multiple
    across = width(C)
    kinds = {0: 0, 1: CANDIDATE_SIDES, 2: QUERY_SIDES}[len(scalars)]
    packed = new_packed(vectors, M, padded, across, kinds, precision)
    block = min(PACK_ROWS, chosen.multiple)
    if M * padded:
        first, second = [*scalars, vectors, vectors][:2]
        with _on(vectors.device):
            pack_kernel[(padded // block * M,)](
                vectors, first, second, *packed,
                M, rows, padded, C, *vectors.stride(), across,
                SCALARS=len(scalars), PRECISION=precision, BLOCK=block, BLOCK_C=min(across, WHOLE),
            )  # fmt: skip
    return packed


def new_packed(
    like: Tensor, M: int, padded: int, across: int, sides: int, precision: str
) -> Packed:
    """Room for one side."""
    forms = 3 if precision == "tf32x3" else 1
    return Packed(_new(like, forms, M, padded, across), _new(like, M, sides, padded))


def launch_forward(
    query: Packed,
    candidate: Packed,
    norm: int,
    weight: float,
    out: Tensor,
    *,
    accumulate: bool,
    precision: str,
    blocks: Blocks,
) -> None:
    """Write ``weight · Σ_m d_m^norm`` to the contiguous table ``out`` (B, N), or add it there."""
    B, N = out.shape
    (M, rows_q, across), rows_c = query.vectors.shape, candidate.vectors.shape[1]
    programs = -(-B // blocks.rows) * -(-N // blocks.columns)
    if programs == 0:
        return
    with _on(out.device):
        forward_kernel[(programs,)](
            *query.halves, *candidate.halves, query.sides, candidate.sides, out, weight,
            M, B, N, rows_q, rows_c,
            GEODESIC=bool(query.sides.numel()), NORM=norm, ACCUMULATE=accumulate,
            WIDE=_wide(query, candidate), PRECISION=precision, WIDTH=across,
            BLOCK_C=min(across, WHOLE), **_launch(blocks),
        )  # fmt: skip


class Parts(NamedTuple):
    """Gradients as the backward kernel leaves them: those of queries in parts to be added up."""

    to_q: Tensor  # (parts, M, padded rows, padded numbers)
    to_c: Tensor  # (M, padded rows, padded numbers)
    to_query: Tensor  # (parts, M, 2, padded rows), if there are scalars
    to_candidate: Tensor  # (M, padded rows), if there are scalars


def launch_parts(
    query: Packed,
    candidate: Packed,
    norm: int,
    weight: float,
    grad: Tensor,
    *,
    precision: str,
    blocks: Blocks,
) -> Parts:
    """Gradients of both sides, padded, for core vectors of at most ``WHOLE`` numbers."""
    (M, rows_q, across), rows_c = query.vectors.shape, candidate.vectors.shape[1]
    geodesic = bool(query.sides.numel())
    each = stretch(rows_c // blocks.columns, M, query.vectors.numel())
    parts = -(-(rows_c // blocks.columns) // each)
    to_q, to_c = _new(grad, parts, M, rows_q, across), _new(grad, M, rows_c, across)
    to_query = _new(grad, parts, M, 2, rows_q) if geodesic else to_q
    to_candidate = _new(grad, M, rows_c) if geodesic else to_c
    with _on(grad.device):
        backward_kernel[(M * parts,)](
            query.vectors, candidate.vectors, query.sides, candidate.sides, grad,
            to_q, to_c, to_query, to_candidate, weight, M, rows_q, rows_c, each,
            GEODESIC=geodesic, NORM=norm, WIDE=_wide(query, candidate), PRECISION=precision,
            WIDTH=across, **_launch(blocks),
        )  # fmt: skip
    return Parts(to_q, to_c, to_query, to_candidate)


def launch_backward(
    query: Packed,
    candidate: Packed,
    norm: int,
    weight: float,
    grad: Tensor,
    *,
    precision: str,
    blocks: Blocks,
) -> tuple[list[Tensor], list[Tensor]]:
    """The same added up, core vectors first."""
    found = launch_parts(query, candidate, norm, weight, grad, precision=precision, blocks=blocks)
    of_query, of_candidate = [found.to_q.sum(0)], [found.to_c]
    if query.sides.numel():
        of_query += found.to_query.sum(0).unbind(1)
        of_candidate += [found.to_candidate]
    return of_query, of_candidate


def launch_long_backward(
    query: Packed,
    candidate: Packed,
    norm: int,
    weight: float,
    grad: Tensor,
    *,
    precision: str,
    blocks: Blocks,
) -> tuple[list[Tensor], list[Tensor]]:
    """The same for core vectors of any length, one component at a time."""
    (M, rows_q, across), rows_c = query.vectors.shape, candidate.vectors.shape[1]
    down, over = rows_q // blocks.rows, rows_c // blocks.columns
    of_query, of_candidate = [_new(grad, M, rows_q, across)], [_new(grad, M, rows_c, across)]
    sums: list[Tensor] = []
    geodesic = bool(query.sides.numel())
    if geodesic:
        of_query += [_new(grad, M, rows_q), _new(grad, M, rows_q)]
        of_candidate += [_new(grad, M, rows_c)]
        sums = [_new(grad, over, rows_q), _new(grad, over, rows_q), _new(grad, down, rows_c)]
    slopes = _new(grad, rows_q, rows_c)
    totals = [*of_query[1:], *of_candidate[1:]]
    for m in range(M):
        halves = (side[m] for side in (*query.halves, *candidate.halves))
        with _on(grad.device):
            slopes_kernel[(down * over,)](
                *halves, query.sides[m], candidate.sides[m], grad, slopes,
                *(sums or [slopes] * 3), weight, rows_q, rows_c,
                GEODESIC=geodesic, NORM=norm, WIDE=_wide(query, candidate), PRECISION=precision,
                WIDTH=across, BLOCK_C=WHOLE, **_launch(blocks),
            )  # fmt: skip
        torch.matmul(slopes, candidate.vectors[m], out=of_query[0][m])
        torch.matmul(slopes.T, query.vectors[m], out=of_candidate[0][m])
        for total, parts in zip(totals, sums, strict=True):
            torch.sum(parts, 0, out=total[m])
    return of_query, of_candidate


def launch_paired(
    q: Tensor, c: Tensor, scalars: Sequence[Tensor], norm: int, grad: Tensor | None
) -> list[Tensor]:
    """``d_m^norm`` of each query with its own candidate, (M, B), or under ``grad`` (B,) all gradients."""
    M, B, C = q.shape
    if grad is None:
        found = [_new(q, M, B)]
        targets = [found[0]] * 6
    else:
        found = [_new(q, M, B, C), _new(q, M, B, C), *(_new(q, M, B) for _ in scalars)]
        targets = [found[0], *found, *[found[0]] * 5][:6]
    if M * B:
        with _on(q.device):
            paired_kernel[(-(-B // PAIRED_ROWS) * M,)](
                q, c, *(scalars or [q] * 3), q if grad is None else grad, *targets,
                M, B, C, *q.stride(), *c.stride(),
                GEODESIC=bool(scalars), NORM=norm, BACKWARD=grad is not None,
                WIDTH=width(C), BLOCK=PAIRED_ROWS, BLOCK_C=min(width(C), WHOLE), num_warps=2,
            )  # fmt: skip
    return found


def _new(like: Tensor, *shape: int) -> Tensor:
    """Memory that the caller writes to the last number."""
    return like.new_empty(shape)


def _wide(query: Packed, candidate: Packed) -> bool:
    """Whether an offset into a table or a component may be too large for 32 bits."""
    rows_q, rows_c = query.vectors.shape[1], candidate.vectors.shape[1]
    across = query.vectors.shape[2]
    return max(rows_q * rows_c, max(rows_q, rows_c) * across) > NARROW


def _launch(blocks: Blocks) -> dict[str, int]:
    return {
        "BLOCK_B": blocks.rows,
        "BLOCK_N": blocks.columns,
        "num_warps": blocks.warps,
        "num_stages": blocks.stages,
    }


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
        of_query = 2 if isinstance(finish, Geodesic) else 0  # so many scalars
        scalars = tuple(s.contiguous() for s in scalars)
        query = launch_pack(q, scalars[:of_query], chosen, precision)
        candidate = launch_pack(c, scalars[of_query:], chosen, precision)
        ctx.save_for_backward(*query, *candidate)
        ctx.settings = norm, weight, precision, chosen
        ctx.C = q.shape[2]
        out = _new(q, q.shape[1], c.shape[1]) if onto is None else onto
        if onto is not None:
            ctx.mark_dirty(onto)
        launch_forward(
            query, candidate, norm, weight, out,
            accumulate=onto is not None, precision=precision, blocks=chosen.forward,
        )  # fmt: skip
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        saved = ctx.saved_tensors
        query, candidate = Packed(*saved[:2]), Packed(*saved[2:])
        norm, weight, precision, chosen = ctx.settings
        (B, N), C = grads[0].shape, ctx.C
        rows_q, rows_c = query.vectors.shape[1], candidate.vectors.shape[1]
        if not rows_q * rows_c:
            of_query, of_candidate = (
                [torch.zeros_like(side.vectors), *torch.zeros_like(side.sides).unbind(1)[:count]]
                for side, count in ((query, 2), (candidate, 1))
            )
        else:
            grad = torch.nn.functional.pad(grads[0], (0, rows_c - N, 0, rows_q - B)).contiguous()
            launch = launch_long_backward if C > WHOLE else launch_backward
            blocks = chosen.slopes if C > WHOLE else chosen.backward
            with torch.autocast(grad.device.type, enabled=False):
                of_query, of_candidate = launch(
                    query, candidate, norm, weight, grad, precision=precision, blocks=blocks
                )
        to_q, *to_query = of_query
        to_c, *to_candidate = of_candidate
        onto = grads[0] if ctx.needs_input_grad[5] else None
        return (
            *(None,) * 5,
            onto,
            to_q[:, :B, :C],
            to_c[:, :N, :C],
            *(s[:, :B] for s in to_query),
            *(s[:, :N] for s in to_candidate),
        )


_fused: Callable[..., Tensor] = _Fused.apply


class _Paired(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, norm: int, q: Tensor, c: Tensor, *scalars: Tensor) -> Tensor:
        scalars = tuple(s.contiguous() for s in scalars)
        ctx.save_for_backward(q, c, *scalars)
        ctx.norm = norm
        return launch_paired(q, c, scalars, norm, None)[0].sum(0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        q, c, *scalars = ctx.saved_tensors
        return (None, *launch_paired(q, c, scalars, ctx.norm, grads[0].contiguous()))


_paired: Callable[..., Tensor] = _Paired.apply


def fused_paired(query: Core, candidate: Core, norm: int) -> Tensor:
    """``Σ_m d_m(q_b, c_b)^norm`` of query b with candidate b alone, (B,), where ``supports`` agrees."""
    return _paired(norm, query.vector, candidate.vector, *query.scalars, *candidate.scalars)


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
    chosen = blocks or configuration(C)
    return _fused(finish, norm, weight, precision, chosen, onto, q, c, *scalars)
