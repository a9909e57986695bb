"""``Orth(U, w)`` on a GPU: launchers, autograd function, public function.

The reference is ``golde.geometry.orth_matrix``; kernels and their derivation are in ``orth_kernels``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from golde.kernels.triton.memory import new
from golde.kernels.triton.orth_kernels import orth_backward_kernel, orth_kernel

REGISTERS = 200
"""At most, for a thread of the backward kernel: ten programs then share a multiprocessor, not eight."""


# Launchers.


def launch_orth(U: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """The maps (L, K, K) of reflections U (L, n, K) under weights (L, K), both contiguous, and W as U."""
    L, rows, K = U.shape
    G, W = new(U, L, K, K), new(U, L, rows, K)
    block = _block(rows, K)
    orth_kernel[(L,)](U, w, G, W, ROWS=rows, K=K, BLOCK=block, num_warps=_warps(block))
    return G, W


def launch_orth_backward(
    U: Tensor, w: Tensor, G: Tensor, W: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of U and w."""
    L, rows, K = U.shape
    to_U, to_w = new(U, L, rows, K), new(U, L, K)
    block = _block(rows, K)
    orth_backward_kernel[(L,)](
        U, w, G, W, grad, to_U, to_w,
        ROWS=rows, K=K, BLOCK=block, num_warps=_warps(block), maxnreg=REGISTERS,
    )  # fmt: skip
    return to_U, to_w


def _block(rows: int, K: int) -> int:
    """What U and G are padded to, either way; products take no less than 16."""
    return max(16, 1 << (max(rows, K) - 1).bit_length())


def _warps(block: int) -> int:
    return 1 if block <= 32 else 4


# Autograd.


class _Orth(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, U: Tensor, w: Tensor) -> Tensor:
        U, w = U.contiguous(), w.contiguous()
        G, W = launch_orth(U, w)
        ctx.save_for_backward(U, w, G, W)
        return G

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        U, w, G, W = ctx.saved_tensors
        return launch_orth_backward(U, w, G, W, grads[0].contiguous())


_orth: Callable[..., Tensor] = _Orth.apply


def fused_orth(U: Tensor, w: Tensor) -> Tensor:
    """``Orth(U, w)`` for U (..., n, K), w > 0 (..., K), in float32, n and K at most 64: (..., K, K)."""
    *batch, rows, K = U.shape
    count = math.prod(batch)
    maps = _orth(U.reshape(count, rows, K), w.expand(*batch, K).reshape(count, K))
    return maps.view(*batch, K, K)
