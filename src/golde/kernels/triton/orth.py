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

from golde.kernels.triton.distance import _new, _on
from golde.kernels.triton.orth_kernels import orth_backward_kernel, orth_kernel

# Launchers.


def launch_orth(U: Tensor, w: Tensor) -> Tensor:
    """The maps (L, K, K) of reflections U (L, n, K) under weights (L, K), both contiguous."""
    L, rows, K = U.shape
    G = _new(U, L, K, K)
    if L:
        block = _block(K)
        with _on(U.device):
            orth_kernel[(L,)](U, w, G, rows, K, BLOCK=block, num_warps=_warps(block))
    return G


def launch_orth_backward(U: Tensor, w: Tensor, G: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of U and w."""
    L, rows, K = U.shape
    to_U, to_w = _new(U, L, rows, K), _new(U, L, K)
    if L:
        block = _block(K)
        with _on(U.device):
            orth_backward_kernel[(L,)](
                U, w, G, grad, to_U, to_w, rows, K, BLOCK=block, num_warps=_warps(block)
            )
    return to_U, to_w


def _block(K: int) -> int:
    return max(2, 1 << (K - 1).bit_length())


def _warps(block: int) -> int:
    return 1 if block <= 16 else 4


# Autograd.


class _Orth(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, U: Tensor, w: Tensor) -> Tensor:
        U, w = U.contiguous(), w.contiguous()
        G = launch_orth(U, w)
        ctx.save_for_backward(U, w, G)
        return G

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        U, w, G = ctx.saved_tensors
        return launch_orth_backward(U, w, G, grads[0].contiguous())


_orth: Callable[..., Tensor] = _Orth.apply


def fused_orth(U: Tensor, w: Tensor) -> Tensor:
    """``Orth(U, w)`` for U (..., n, K), w > 0 (..., K), in float32, K at most 64: (..., K, K)."""
    *batch, rows, K = U.shape
    count = math.prod(batch)
    maps = _orth(U.reshape(count, rows, K), w.expand(*batch, K).reshape(count, K))
    return maps.view(*batch, K, K)
