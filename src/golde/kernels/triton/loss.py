"""The self-adversarial loss of a step on a GPU, with its gradients in the same launch.

The reference is the plain form in ``golde.training.losses``. In plain operations the table of B×N scores
is walked over some ten times; here it is read once and its gradient written once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.autograd.graph import increment_version

from golde.kernels.triton.loss_kernels import adversarial_kernel, scale_kernel
from golde.kernels.triton.memory import new

HELD = 4096
"""Scores that a program holds in registers; longer rows are read twice."""

SCALED = 4096
"""Numbers that a program multiplies."""


def launch_adversarial(
    positive: Tensor,
    own: Tensor | None,
    shared: Tensor,
    own_masked: Tensor,
    masked: Tensor,
    weight: Tensor,
    margin: float,
    temperature: float,
) -> tuple[Tensor, Tensor]:
    """The term of every query (B,), and in one piece the gradients that ``_split`` tells apart."""
    B, N = shared.shape
    terms, gradients = new(shared, B), new(shared, B * N + 2 * B)
    to_shared, to_positive, to_own = _split(gradients, shared.shape)
    block = min(max(128, 1 << (N - 1).bit_length()), HELD)
    adversarial_kernel[(B,)](
        positive, positive if own is None else own, shared,
        own_masked.view(torch.uint8), masked.view(torch.uint8), weight,
        terms, to_positive, to_own, to_shared, N, margin, temperature,
        OWN=own is not None, BLOCK=block, num_warps=max(1, block // 512),
    )  # fmt: skip
    return terms, gradients


def launch_scale(values: Tensor, factor: Tensor) -> None:
    """Multiply contiguous ``values`` by one number on the device, in place."""
    scale_kernel[(-(-values.numel() // SCALED),)](
        values, factor, values.numel(), BLOCK=SCALED, num_warps=8
    )


def _split(gradients: Tensor, shape: torch.Size) -> tuple[Tensor, ...]:
    """Of the shared scores (B, N), the positive ones (B,) and the own ones (B,)."""
    B, N = shape
    shared, positive, own = gradients.split([B * N, B, B])
    return shared.view(shape), positive, own


class _Adversarial(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        positive: Tensor,
        own: Tensor | None,
        shared: Tensor,
        own_masked: Tensor,
        masked: Tensor,
        weight: Tensor,
        margin: float,
        temperature: float,
    ) -> Tensor:
        positive, shared, own_masked, masked, weight = (
            t.contiguous() for t in (positive, shared, own_masked, masked, weight)
        )
        ctx.shape, ctx.own = shared.shape, own is not None
        own = None if own is None else own.contiguous()
        terms, gradients = launch_adversarial(
            positive, own, shared, own_masked, masked, weight, margin, temperature
        )
        ctx.save_for_backward(gradients)
        return terms.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        (gradients,) = ctx.saved_tensors
        launch_scale(gradients, grads[0])
        increment_version(gradients)  # a second backward pass then fails instead of scaling twice
        to_shared, to_positive, to_own = _split(gradients, ctx.shape)
        return to_positive, to_own if ctx.own else None, to_shared, *(None,) * 5


fused_adversarial: Callable[..., Tensor] = _Adversarial.apply
"""``(positive, own or None, shared, own_masked, masked, weight, margin, temperature)`` to the loss.

``½ Σ_b w_b (−log σ(γ + s⁺_b) − Σ_n p_bn log σ(−γ − s_bn))`` with ``p_b = softmax(α s_b)`` over the shared
(B, N) and own (B,) scores that are not masked, held constant; all of them float32.
"""
