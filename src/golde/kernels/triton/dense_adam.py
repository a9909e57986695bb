"""Adam for tensors that every step moves whole: the norm of their gradients, clipping, the step.

The reference is ``torch.optim.Adam``; the kernels are explained in ``dense_adam_kernels``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from golde.kernels.adam import BETA1, BETA2
from golde.kernels.triton.dense_adam_kernels import adam_kernel, clip_kernel, squares_kernel
from golde.kernels.triton.memory import new

BLOCK = 512
"""Numbers that a program moves."""

SUMMED = 8192
"""Numbers that are added up at a time, of those that the norm comes from."""

CORRECTED = 20_000
"""Steps after which neither bias correction differs from one in float32."""

Gradients = Sequence[Tensor | None]


def bias_corrections(device: torch.device) -> Tensor:
    """``1 / (1 − β₁^k)`` and ``1 / √(1 − β₂^k)`` for k = 1, 2, …, (CORRECTED, 2)."""
    k = torch.arange(1, CORRECTED + 1, dtype=torch.float64)
    return torch.stack((1 / (1 - BETA1**k), (1 - BETA2**k).rsqrt()), 1).float().to(device)


class Tensors(NamedTuple):
    """Parameters with their moments, and the steps they have been through.

    Who uses it sets ``rate``; all else is done by the kernels, in tensors of fixed shape and place, so that
    a step can be captured and replayed. A step is ``clip`` and then ``update`` with the same gradients.
    """

    parameters: tuple[Tensor, ...]  # T of them
    sizes: tuple[int, ...]
    exp_avg: Tensor  # (blocks, BLOCK): those of each tensor from a new block on
    exp_avg_sq: Tensor  # (blocks, BLOCK)
    steps: Tensor  # (T,): steps taken
    coefficients: Tensor  # (T, 2): step size and scale of √v of the step under way
    corrections: Tensor  # (CORRECTED, 2)
    rate: Tensor  # (): the learning rate of the step

    @classmethod
    def of(cls, parameters: Sequence[Tensor], device: torch.device) -> Tensors:
        """Tensors that have seen no step; the parameters are moved in place."""
        for p in parameters:
            if p.dtype != torch.float32 or not p.numel() or not p.is_contiguous():
                raise ValueError(
                    f"a parameter is {p.dtype} of shape {tuple(p.shape)} and strides {p.stride()}; "
                    "the kernels move contiguous float32 tensors that are not empty"
                )
        blocks = sum(-(-p.numel() // BLOCK) for p in parameters)
        return cls(
            parameters=tuple(p.detach() for p in parameters),
            sizes=tuple(p.numel() for p in parameters),
            exp_avg=torch.zeros(blocks, BLOCK, device=device),
            exp_avg_sq=torch.zeros(blocks, BLOCK, device=device),
            steps=torch.zeros(len(parameters), device=device),
            coefficients=torch.zeros(len(parameters), 2, device=device),
            corrections=bias_corrections(device),
            rate=torch.zeros((), device=device),
        )

    def clip(
        self, gradients: Gradients, others: Tensor, limit: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Norm, scale and ``found_inf`` (), of contiguous gradients and ``others`` (n,), squares as they are.

        The scale brings the norm down to ``limit``; ``found_inf`` is one where the norm is not finite. Else
        the step counts, for tensors that have a gradient. The order of all sums is fixed.
        """
        given = _given(gradients)
        blocks = len(self.exp_avg) if given else 0
        squares, clipping = new(self.rate, blocks), new(self.rate, 3)
        squares_kernel[(blocks,)](
            self._filled(gradients), self.sizes, squares, GIVEN=given, BLOCK=BLOCK, num_warps=4
        )
        clip_kernel[(1,)](
            squares, others, self.steps, self.coefficients, self.corrections, self.rate, clipping,
            blocks, len(others), limit, TENSORS=len(self.sizes), GIVEN=given, CORRECTED=CORRECTED,
            WIDTH=1 << (len(self.sizes) - 1).bit_length(), BLOCK=SUMMED, num_warps=16,
        )  # fmt: skip
        norm, scale, found_inf = clipping.unbind()
        return norm, scale, found_inf

    def update(self, gradients: Gradients, scale: Tensor, found_inf: Tensor) -> None:
        """Adam's step with the gradients that ``clip`` saw, taken as it said."""
        given = _given(gradients)
        if given:
            adam_kernel[(len(self.exp_avg),)](
                self.parameters, self._filled(gradients), self.sizes, self.exp_avg,
                self.exp_avg_sq, self.coefficients, scale, found_inf,
                GIVEN=given, BLOCK=BLOCK, num_warps=4,
            )  # fmt: skip

    def states(self) -> list[dict[str, Tensor]]:
        """What ``torch.optim.Adam`` keeps of each parameter, as it is kept here: to be written to as well."""
        blocks = [-(-size // BLOCK) for size in self.sizes]
        moments = zip(self.exp_avg.split(blocks), self.exp_avg_sq.split(blocks), strict=True)
        return [
            {
                "step": step,
                "exp_avg": m.flatten()[: p.numel()].view(p.shape),
                "exp_avg_sq": v.flatten()[: p.numel()].view(p.shape),
            }
            for p, step, (m, v) in zip(self.parameters, self.steps.unbind(), moments, strict=True)
        ]

    def _filled(self, gradients: Gradients) -> tuple[Tensor, ...]:
        """As many pointers as there are tensors."""
        both = zip(self.parameters, gradients, strict=True)
        return tuple(p if gradient is None else gradient for p, gradient in both)


def _given(gradients: Gradients) -> int:
    """Bit i is set if tensor i has a gradient."""
    return sum(1 << i for i, gradient in enumerate(gradients) if gradient is not None)
