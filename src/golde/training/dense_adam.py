"""Adam for parameters that every step moves whole, those of relations and biases, and clipping for all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from golde.config import TrainingConfig
from golde.kernels.triton import has_triton

State = dict[str, dict[str, Tensor]]
"""By parameter, what ``torch.optim.Adam`` keeps of it: step, exp_avg and exp_avg_sq."""


class Clipping(NamedTuple):
    """How to take the gradients of a step, on the device."""

    norm: Tensor  # (): of all of them together
    scale: Tensor  # (): what they are divided by
    found_inf: Tensor  # (): one if the norm is not finite, and the step is skipped; else zero


class DenseAdam(ABC):
    """Owns the moments of named parameters. A step is, in this order,

        adam.advance(rate)
        adam.zero_grad()
        loss().backward()
        _, scale, found_inf = adam.clip(squares)  # of gradients that are not in here
        adam.step(scale, found_inf)

    All but ``advance`` can be captured. A parameter without a gradient sits the step out.
    """

    def __init__(self, parameters: Mapping[str, Tensor], gradient_clip: float) -> None:
        self.parameters, self.gradient_clip = parameters, gradient_clip

    def zero_grad(self) -> None:
        """Forget the gradients; what comes next need not be added to anything."""
        for parameter in self.parameters.values():
            parameter.grad = None

    @abstractmethod
    def advance(self, rate: float) -> None:
        """Go on to the next step, with this learning rate."""

    @abstractmethod
    def clip(self, squares: Tensor) -> Clipping:
        """How to take the gradients; ``squares`` add up to the squared norm of all others."""

    @abstractmethod
    def step(self, scale: Tensor, found_inf: Tensor) -> None:
        """Move them by their gradient over ``scale`` (); not at all if ``found_inf`` () is not zero."""

    @abstractmethod
    def state(self) -> State:
        """All that ``load`` needs, of parameters that can be moved."""

    @abstractmethod
    def load(self, state: State) -> None:
        """Go on from a ``state``, of this class or another."""


class FusedAdam(DenseAdam):
    """As kernels, for float32 on a GPU: three launches whatever the number of parameters."""

    def __init__(
        self, parameters: Mapping[str, Tensor], gradient_clip: float, device: torch.device
    ) -> None:
        from golde.kernels.triton.dense_adam import Tensors

        super().__init__({k: p for k, p in parameters.items() if p.numel()}, gradient_clip)
        self._tensors = Tensors.of(tuple(self.parameters.values()), device)

    def advance(self, rate: float) -> None:
        self._tensors.rate.fill_(rate)

    def clip(self, squares: Tensor) -> Clipping:
        return Clipping(*self._tensors.clip(self._gradients(), squares, self.gradient_clip))

    def step(self, scale: Tensor, found_inf: Tensor) -> None:
        self._tensors.update(self._gradients(), scale, found_inf)

    def state(self) -> State:
        return dict(zip(self.parameters, self._tensors.states(), strict=True))

    def load(self, state: State) -> None:
        for name, own in self.state().items():
            for key, value in state.get(name, {}).items():
                own[key].copy_(value)

    def _gradients(self) -> list[Tensor | None]:
        gradients = (p.grad for p in self.parameters.values())
        return [None if grad is None else grad.contiguous() for grad in gradients]


class TorchAdam(DenseAdam):
    """Torch's own, anywhere and in any precision."""

    def __init__(
        self,
        parameters: Mapping[str, Tensor],
        gradient_clip: float,
        device: torch.device,
        *,
        capture: bool,
    ) -> None:
        super().__init__(parameters, gradient_clip)
        self._capture = capture
        self._rate = torch.zeros((), device=device)
        # Captured, Adam reads its rate from memory at every replay.
        self._optimiser: Any = torch.optim.Adam(
            parameters.values(),
            lr=self._rate if capture else 0.0,
            fused=True,
            capturable=capture,
        )

    def advance(self, rate: float) -> None:
        if self._capture:
            self._rate.fill_(rate)
            return
        for group in self._optimiser.param_groups:
            group["lr"] = rate

    def clip(self, squares: Tensor) -> Clipping:
        gradients = [p.grad for p in self.parameters.values() if p.grad is not None]
        norm = (torch.nn.utils.get_total_norm(gradients).square() + squares.sum()).sqrt()
        scale = (norm / self.gradient_clip).clamp_min(1.0).float()
        return Clipping(norm, scale, (~norm.isfinite()).float())

    def step(self, scale: Tensor, found_inf: Tensor) -> None:
        # A fused optimiser divides by the one on the way, and leaves everything as it is under the
        # other: that is how gradient scaling talks to it.
        self._optimiser.grad_scale, self._optimiser.found_inf = scale, found_inf
        self._optimiser.step()

    def state(self) -> State:
        kept = self._optimiser.state
        return {name: kept[p] for name, p in self.parameters.items() if p in kept}

    def load(self, state: State) -> None:
        for name, kept in state.items():
            parameter = self.parameters[name]
            moved = {key: value.to(parameter.device) for key, value in kept.items()}
            self._optimiser.state[parameter] = moved


def dense_adam(
    parameters: Mapping[str, Tensor], config: TrainingConfig, device: torch.device, *, capture: bool
) -> DenseAdam:
    """The optimiser of parameters on ``device``; a step that is captured needs ``capture``."""
    if has_kernels(config, device):
        return FusedAdam(parameters, config.gradient_clip, device)
    return TorchAdam(parameters, config.gradient_clip, device, capture=capture)


def has_kernels(config: TrainingConfig, device: torch.device) -> bool:
    """Whether both optimisers are kernels."""
    return device.type == "cuda" and config.precision == "float32" and has_triton()
