"""``exp(L · tanh(x / L))`` on a GPU, in one kernel each way; the reference is ``golde.geometry.positive``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from golde.kernels.triton.language import exp2, kernel, tl
from golde.kernels.triton.memory import new
from golde.kernels.triton.pointwise import LOG2_E, one_minus

BLOCK = 1024


@kernel
def positive_kernel(
    free, grad, found, count, limit,
    BACKWARD: tl.constexpr, BLOCK: tl.constexpr, SCALE: tl.constexpr = LOG2_E,
):  # fmt: skip
    """The value, or with ``BACKWARD`` the gradient: the derivative is ``value · (1 − tanh²)``."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(free + at, mask=at < count, other=0.0)
    twice = 2 * tl.abs(x) / limit
    e = exp2(-twice * SCALE)
    tanh = tl.where(x < 0, -1.0, 1.0) * one_minus(e, twice) / (1 + e)
    value = exp2(limit * tanh * SCALE)
    if BACKWARD:
        value *= (1 - tanh * tanh) * tl.load(grad + at, mask=at < count, other=0.0)
    tl.store(found + at, value, mask=at < count)


def launch_positive(free: Tensor, limit: float, grad: Tensor | None) -> Tensor:
    """Values of contiguous free parameters or, under ``grad``, their gradients."""
    found = new(free, *free.shape)
    count = free.numel()
    positive_kernel[(-(-count // BLOCK),)](
        free, free if grad is None else grad, found, count, limit,
        BACKWARD=grad is not None, BLOCK=BLOCK, num_warps=4,
    )  # fmt: skip
    return found


class _Positive(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, free: Tensor, limit: float) -> Tensor:
        free = free.contiguous()
        ctx.save_for_backward(free)
        ctx.limit = limit
        return launch_positive(free, limit, None)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (free,) = ctx.saved_tensors
        return launch_positive(free, ctx.limit, grads[0].contiguous()), None


fused_positive: Callable[[Tensor, float], Tensor] = _Positive.apply
"""``(free, L)`` to ``exp(L · tanh(free / L))``, float32."""
