"""What a step of training does with the table of scores, on a GPU: reduce it in one pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from golde.kernels.triton.negatives_kernels import adversarial_kernel

COLUMNS = 1024


class _Adversarial(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, masked: Tensor, margin: float, temperature: float
    ) -> tuple[Tensor, Tensor]:
        scores, masked = scores.contiguous(), masked.contiguous()
        B, N = scores.shape
        top, total, wrong = (scores.new_empty(B) for _ in range(3))
        if B:
            adversarial_kernel[(B,)](
                scores, masked.view(torch.uint8), top, total, wrong, scores, scores, N, margin,
                temperature, BACKWARD=False, BLOCK=COLUMNS, num_warps=4,
            )  # fmt: skip
        ctx.save_for_backward(scores, masked, top, total)
        ctx.settings = margin, temperature
        log_weight = top + total.log()
        ctx.mark_non_differentiable(log_weight)
        return log_weight, wrong

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        scores, masked, top, total = ctx.saved_tensors
        margin, temperature = ctx.settings
        found = torch.empty_like(scores)
        if len(scores):
            adversarial_kernel[(len(scores),)](
                scores, masked.view(torch.uint8), top, total, top, grads[1].contiguous(), found,
                scores.shape[1], margin, temperature, BACKWARD=True, BLOCK=COLUMNS, num_warps=4,
            )  # fmt: skip
        return found, None, None, None


adversarial: Callable[..., tuple[Tensor, Tensor]] = _Adversarial.apply
"""``(scores (B, N), masked (B, N), margin, temperature)`` to ``log Σ exp(α s)`` and ``Σ p log σ(−γ − s)``.

``p = softmax(α s)`` over what is not masked is held constant. A query with nothing left has −∞ and 0.
"""
