"""``Σ_m d_m(q_b, c_n)^norm`` on a GPU: launchers, autograd function, public function.

The reference is ``golde.kernels.pairwise_reference``; kernels and their derivation are in
``distance_kernels``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from golde.kernels.finish import Finish, Geodesic
from golde.kernels.pairwise import Core
from golde.kernels.triton.blocks import (
    LARGE_SHARED,
    WHOLE,
    Blocks,
    Configuration,
    configuration,
    division,
    kept,
    rounded_up,
    width,
)
from golde.kernels.triton.distance_kernels import (
    CANDIDATE_SIDES,
    QUERY_SIDES,
    backward_kernel,
    forward_kernel,
    pack_kernel,
    paired_kernel,
    slopes_kernel,
    sum_kernel,
)
from golde.kernels.triton.memory import new

PRECISIONS = ("ieee", "tf32x3", "tf32")
"""Of the products: float32; three TF32 products, nearly as exact; one, which is not."""

NARROW = 2**31 - 1
"""The largest offset that 32 bits hold."""

PACK_ROWS = 64
"""Rows that a program packs."""

SUMMED = 1024
"""Numbers of the parts of a gradient that a program adds up."""

PAIRED_ROWS = 32
"""Queries that a program takes with their own candidates."""


class Packed(NamedTuple):
    """One side in padded blocks; ``sides`` is empty for a finish without scalars."""

    vectors: Tensor  # (M, padded rows, padded numbers)
    split: Tensor  # (2, M, padded rows, padded numbers): high and low halves; empty if not wanted
    sides: Tensor  # (M, 5 or 2, padded rows)

    @property
    def geodesic(self) -> bool:
        """Whether this is for the finish that has scalars."""
        return self.sides.shape[1] > 0

    @property
    def halves(self) -> tuple[Tensor, Tensor]:
        """High and low; where numbers are not split, both as they are."""
        if not len(self.split):
            return self.vectors, self.vectors
        high, low = self.split
        return high, low

    def without_halves(self) -> Packed:
        """What the backward pass needs of core vectors up to ``WHOLE``, which it splits on the way."""
        return self._replace(split=self.vectors[:0])


# Launchers.


def launch_pack(
    vectors: Tensor, scalars: Sequence[Tensor], multiple: int, precision: str
) -> Packed:
    """One side, rows padded to a multiple, with what the finish needs of it; scalars are contiguous."""
    M, rows, C = vectors.shape
    padded, across = rounded_up(rows, multiple), width(C)
    kinds = {0: 0, 1: CANDIDATE_SIDES, 2: QUERY_SIDES}[len(scalars)]
    packed = new_packed(vectors, M, padded, across, kinds, precision)
    block = min(PACK_ROWS, multiple)
    first, second = [*scalars, vectors, vectors][:2]
    pack_kernel[(padded // block * M,)](
        vectors, first, second, *packed,
        M, rows, padded, C, *vectors.stride(), across,
        SCALARS=len(scalars), PRECISION=precision, BLOCK=block, BLOCK_C=min(across, WHOLE),
        num_warps=4,
    )  # fmt: skip
    return packed


def new_packed(
    like: Tensor, M: int, padded: int, across: int, sides: int, precision: str
) -> Packed:
    """Room for one side."""
    halves = 2 if precision == "tf32x3" else 0
    return Packed(
        new(like, M, padded, across),
        new(like, halves, M, padded, across),
        new(like, M, sides, padded),
    )


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
    forward_kernel[(programs,)](
        *query.halves, *candidate.halves, query.sides, candidate.sides, out, weight,
        M, B, N, rows_q, rows_c,
        GEODESIC=query.geodesic, NORM=norm, ACCUMULATE=accumulate,
        WIDE=_wide(query, candidate), PRECISION=precision, WIDTH=across,
        BLOCK_C=min(across, WHOLE), **_launch(blocks),
    )  # fmt: skip


class Gradients(NamedTuple):
    """Of both sides, padded; without scalars the last two are empty."""

    to_q: Tensor  # (M, padded rows, kept numbers)
    to_c: Tensor  # (M, padded rows, kept numbers)
    to_query: Tensor  # (M, 2, padded rows)
    to_candidate: Tensor  # (M, padded rows)


def new_gradients(query: Packed, candidate: Packed, numbers: int) -> Gradients:
    """Room for them, with so many numbers a row."""
    q, c = query.vectors, candidate.vectors
    return Gradients(
        new(q, *q.shape[:2], numbers),
        new(c, *c.shape[:2], numbers),
        new(q, len(q), 2 * query.geodesic, q.shape[1]),
        new(c, len(c), query.geodesic * c.shape[1]),
    )


def launch_backward(
    query: Packed,
    candidate: Packed,
    norm: int,
    weight: float,
    grad: Tensor,
    *,
    core: int,
    precision: str,
    blocks: Blocks,
) -> Gradients:
    """Gradients of both sides, for core vectors of ``core`` numbers, ``WHOLE`` at most."""
    (M, rows_q, across), rows_c = query.vectors.shape, candidate.vectors.shape[1]
    geodesic, numbers = query.geodesic, kept(core)
    found = new_gradients(query, candidate, numbers)
    if not rows_q * rows_c:
        return Gradients(*(t.zero_() for t in found))
    tiles = rows_c // blocks.columns
    each, together = division(tiles, M, rows_q * numbers)
    parts = -(-tiles // each)
    for start in range(0, M, together):
        some = slice(start, start + together)
        count = len(query.vectors[some])
        to_q, to_query = (
            new(grad, parts, count, rows_q, numbers),
            new(grad, parts, count, 2, rows_q),
        )
        backward_kernel[(count * parts,)](
            query.vectors[some], candidate.vectors[some], query.sides[some], candidate.sides[some],
            grad, to_q, found.to_c[some], to_query, found.to_candidate[some], weight,
            count, rows_q, rows_c, each,
            GEODESIC=geodesic, NORM=norm, WIDE=_wide(query, candidate), PRECISION=precision,
            WIDTH=across, KEPT=numbers, **_launch(blocks),
        )  # fmt: skip
        _add_up(to_q, found.to_q[some])
        if geodesic:
            _add_up(to_query, found.to_query[some])
    return found


def _add_up(parts: Tensor, total: Tensor) -> None:
    """Write ``Σ_i parts[i]`` to ``total``; both are contiguous."""
    count = total.numel()
    sum_kernel[(-(-count // SUMMED),)](
        parts, total, count, len(parts), BLOCK=SUMMED, UNROLL=8, num_warps=4
    )


def launch_long_backward(
    query: Packed,
    candidate: Packed,
    norm: int,
    grad: Tensor,
    *,
    precision: str,
    blocks: Blocks,
) -> Gradients:
    """The same for core vectors of any length, one component at a time."""
    (M, rows_q, across), rows_c = query.vectors.shape, candidate.vectors.shape[1]
    down, over = rows_q // blocks.rows, rows_c // blocks.columns
    geodesic = query.geodesic
    found = new_gradients(query, candidate, across)
    slopes = new(grad, rows_q, rows_c)
    by_tile = [new(grad, over * geodesic, rows_q) for _ in range(2)]
    by_tile += [new(grad, down * geodesic, rows_c)]
    for m in range(M):
        halves = (side[m] for side in (*query.halves, *candidate.halves))
        slopes_kernel[(down * over,)](
            *halves, query.sides[m], candidate.sides[m], grad, slopes, *by_tile, rows_q, rows_c,
            GEODESIC=geodesic, NORM=norm, WIDE=_wide(query, candidate), PRECISION=precision,
            WIDTH=across, BLOCK_C=WHOLE, **_launch(blocks),
        )  # fmt: skip
        torch.matmul(slopes, candidate.vectors[m], out=found.to_q[m])
        torch.matmul(slopes.T, query.vectors[m], out=found.to_c[m])
        if geodesic:
            for parts, total in zip(
                by_tile, (*found.to_query[m], found.to_candidate[m]), strict=True
            ):
                torch.sum(parts, 0, out=total)
    return found


def launch_paired(
    q: Tensor, c: Tensor, scalars: Sequence[Tensor], norm: int, grad: Tensor | None
) -> list[Tensor]:
    """``d_m^norm`` of each query with its own candidate, (M, B), or under ``grad`` (B,) all gradients."""
    M, B, C = q.shape
    if grad is None:
        found = [new(q, M, B)]
        targets = [found[0]] * 6
    else:
        found = [new(q, M, B, C), new(q, M, B, C), *(new(q, M, B) for _ in scalars)]
        targets = [found[0], *found, *[found[0]] * 5][:6]
    paired_kernel[(-(-B // PAIRED_ROWS) * M,)](
        q, c, *(scalars or [q] * 3), q if grad is None else grad, *targets,
        M, B, C, *q.stride(), *c.stride(),
        GEODESIC=bool(scalars), NORM=norm, BACKWARD=grad is not None,
        WIDTH=width(C), BLOCK=PAIRED_ROWS, BLOCK_C=min(width(C), WHOLE), num_warps=2,
    )  # fmt: skip
    return found


def padded(grad: Tensor, rows: int, columns: int) -> Tensor:
    """An incoming gradient with zeros up to so many rows and columns, contiguous; no copy without need."""
    more = rows - grad.shape[0], columns - grad.shape[1]
    return pad(grad, (0, more[1], 0, more[0])) if any(more) else grad.contiguous()


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


@cache
def shared_memory(device: torch.device) -> int:
    """Bytes of shared memory that one program may use."""
    if device.type != "cuda":
        return LARGE_SHARED
    about = torch.cuda.get_device_properties(device)
    return int(getattr(about, "shared_memory_per_block_optin", about.shared_memory_per_block))


# Autograd.


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        finish: Finish,
        norm: int,
        precision: str,
        chosen: Configuration,
        q: Tensor,
        c: Tensor,
        *scalars: Tensor,
    ) -> Tensor:
        of_query = 2 if isinstance(finish, Geodesic) else 0  # so many scalars
        scalars = tuple(s.contiguous() for s in scalars)
        query = launch_pack(q, scalars[:of_query], chosen.multiple, precision)
        candidate = launch_pack(c, scalars[of_query:], chosen.multiple, precision)
        out = new(q, q.shape[1], c.shape[1])
        launch_forward(
            query, candidate, norm, 1.0, out,
            accumulate=False, precision=precision, blocks=chosen.forward,
        )  # fmt: skip
        if q.shape[2] <= WHOLE:
            query, candidate = query.without_halves(), candidate.without_halves()
        ctx.save_for_backward(*query, *candidate)
        ctx.settings = norm, precision, chosen
        ctx.C = q.shape[2]
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        saved = ctx.saved_tensors
        query, candidate = Packed(*saved[:3]), Packed(*saved[3:])
        norm, precision, chosen = ctx.settings
        (B, N), C = grads[0].shape, ctx.C
        grad = padded(grads[0], query.vectors.shape[1], candidate.vectors.shape[1])
        if C <= WHOLE:
            found = launch_backward(
                query, candidate, norm, 1.0, grad,
                core=C, precision=precision, blocks=chosen.backward,
            )  # fmt: skip
        else:
            with torch.autocast(grad.device.type, enabled=False):
                found = launch_long_backward(
                    query, candidate, norm, grad, precision=precision, blocks=chosen.slopes
                )
        scalars = []
        if query.geodesic:
            to_root, to_a = found.to_query.unbind(1)
            scalars = [to_root[:, :B], to_a[:, :B], found.to_candidate[:, :N]]
        return *(None,) * 4, found.to_q[:, :B, :C], found.to_c[:, :N, :C], *scalars


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
    blocks: Configuration | None = None,
) -> Tensor:
    """``Σ_m d_m(q_b, c_n)^norm`` for every query and candidate, (B, N), where ``supports`` agrees.

    ``blocks`` overrides the choice of ``configuration``.
    """
    q, c = query.vector, candidate.vector
    scalars = (*query.scalars, *candidate.scalars)
    M, _, C = q.shape
    if precision not in PRECISIONS:
        raise ValueError(f"precision is {precision!r}; it must be one of {', '.join(PRECISIONS)}")
    if norm not in (1, 2):
        raise ValueError(f"norm is {norm}; it must be 1 or 2")
    kinds = {t.dtype for t in (q, c, *scalars)}
    if kinds != {torch.float32}:
        raise ValueError(f"inputs are {kinds}; the fused kernels take float32 only")
    if (c.shape[0], c.shape[2]) != (M, C):
        raise ValueError(f"queries are {tuple(q.shape)}, candidates {tuple(c.shape)}")
    chosen = blocks or configuration(
        C, geodesic=isinstance(finish, Geodesic), shared=shared_memory(q.device)
    )
    return _fused(finish, norm, precision, chosen, q, c, *scalars)
