"""Sums over processes that gradients pass through.

Every process works out the same loss from the scores that it and the others found. What enters the sums is
therefore differentiated where it was computed, and only there.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from golde.distributed.world import World
from golde.training.losses import Adversarial


class _Summed(torch.autograd.Function):
    """The sum forward; backward each process keeps the gradient, which is the same for all."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, world: World) -> Tensor:
        return world.add_up(tensor.clone())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad, None


class _Shared(torch.autograd.Function):
    """Nothing forward; backward the sum of the gradients that the processes found."""

    @staticmethod
    def forward(ctx: Any, world: World, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.world = world
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        flat = ctx.world.add_up(torch.cat([grad.reshape(-1) for grad in grads]))
        parts = flat.split([grad.numel() for grad in grads])
        return None, *(part.view_as(grad) for part, grad in zip(parts, grads, strict=True))


def summed(tensor: Tensor, world: World) -> Tensor:
    """The sum over processes of which each contributes rows that the others leave at zero.

    What is computed from it must be computed alike by every process.
    """
    found: Tensor = _Summed.apply(tensor, world)  # type: ignore[no-untyped-call]
    return found


def shared(side: Any, world: World) -> Any:
    """Tensors, nested as they are, that all processes have and each uses in its own way."""
    tensors, form = tree_flatten(side)
    return tree_unflatten(_Shared.apply(world, *tensors), form)  # type: ignore[no-untyped-call]


def merged_adversarial(
    part: Adversarial, positive: Tensor, world: World
) -> tuple[Adversarial, Tensor]:
    """The reduction over all candidates, and the scores of all answers, each known to one process."""
    told = world.collect(torch.stack((part.log_weight, part.wrong.detach(), positive.detach())))
    whole = Adversarial.merge([Adversarial(weight, wrong) for weight, wrong, _ in told])
    share = torch.exp(part.log_weight - whole.log_weight.clamp_min(_least(positive)))
    wrong = _moved_by(whole.wrong, share, part.wrong)
    return Adversarial(whole.log_weight, wrong), _moved_by(told[:, 2].sum(0), 1.0, positive)


def merged_log_sum(part: Tensor, positive: Tensor, world: World) -> tuple[Tensor, Tensor]:
    """The same for the reduction that cross-entropy takes."""
    told = world.collect(torch.stack((part, positive)).detach())
    whole = torch.logsumexp(told[:, 0], 0)
    share = torch.exp(part.detach() - whole.clamp_min(_least(positive)))
    has_none = part == -torch.inf
    return (
        _moved_by(whole, share, part.masked_fill(has_none, 0.0)),
        _moved_by(told[:, 1].sum(0), 1.0, positive),
    )


def _moved_by(value: Tensor, slope: Tensor | float, part: Tensor) -> Tensor:
    """``value``, known from all processes, with the slope that it has in this one's part."""
    return value + slope * (part - part.detach())


def _least(tensor: Tensor) -> float:
    return torch.finfo(tensor.dtype).min
