"""One step of training: draw, score, differentiate, clip, and let Adam move the parameters."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from golde.config import TrainingConfig
from golde.geometry import gather
from golde.models import GoldE
from golde.training.row_adam import row_adam
from golde.training.sampling import Sampler
from golde.training.step import step_loss

EAGER_STEPS = 3
"""Steps before a capture: libraries choose their ways and allocate on first use, which it must not see."""


class Outcome(NamedTuple):
    """Of one step, on the device: reading either waits for it."""

    loss: Tensor
    gradient_norm: Tensor


class Update:
    """The steps of one run.

    A step whose gradient is not finite moves nothing. On a GPU the step is captured once and then
    replayed as a whole, because launching its many small kernels would take longer than running them.
    Nothing waits for the device.
    """

    def __init__(
        self, model: GoldE, sampler: Sampler, config: TrainingConfig, *, capture: bool
    ) -> None:
        self.model, self.sampler, self.config = model, sampler, config
        self.capture = capture
        self.rate = torch.zeros((), device=sampler.device)
        self.table = row_adam(model.entity, config)
        dense = [p for p in model.parameters() if self.table is None or p is not model.entity]
        # Captured, Adam reads its rate from memory at every replay.
        self.optimiser = torch.optim.Adam(
            dense, lr=self.rate if capture else 0.0, fused=True, capturable=capture
        )
        self._done = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._outcome: Outcome | None = None

    def __call__(self, step: int, rate: float) -> Outcome:
        """Make step ``step`` at the given learning rate."""
        self.sampler.seek(step)
        self._set_rate(rate)
        if self.table is not None:
            self.table.advance(rate)
        if not self.capture:
            return self._step()
        if self._graph is None:
            return self._first_steps()
        self._graph.replay()
        assert self._outcome is not None
        return self._outcome

    def settle(self) -> None:
        """Bring the entity table up to date; to be called before anything but a step reads it."""
        if self.table is not None:
            self.table.settle()

    def state(self) -> dict[str, dict[str, Tensor]]:
        """What Adam keeps of each parameter it has moved, by name."""
        names = {id(p): name for name, p in self.model.named_parameters()}
        found = {names[id(p)]: state for p, state in self.optimiser.state.items()}
        return found if self.table is None else found | {"entity": self.table.state()}

    def load(self, state: dict[str, dict[str, Tensor]]) -> None:
        """Put back what ``state`` returned."""
        parameters = dict(self.model.named_parameters())
        for name, kept in state.items():
            if self.table is not None and name == "entity":
                self.table.load(kept)
            else:
                device = parameters[name].device
                moved: dict[str, Any] = {key: value.to(device) for key, value in kept.items()}
                self.optimiser.state[parameters[name]] = moved

    def _set_rate(self, rate: float) -> None:
        if self.capture:
            self.rate.fill_(rate)
            return
        for group in self.optimiser.param_groups:
            group["lr"] = rate

    def _step(self) -> Outcome:
        self.optimiser.zero_grad()
        draw = self.sampler.draw()
        if self.table is None:
            rows = gather(self.model.entity, draw.entities)
        else:
            rows = self.table.rows(draw.entities)
        loss = step_loss(self.model, rows, draw, self.config)
        loss.backward()
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients)
        if self.table is not None:
            assert rows.grad is not None
            norm = (norm.square() + self.table.fold(rows.grad)).sqrt()
        # A fused optimiser divides by the one on the way, and leaves everything as it is under the
        # other: that is how gradient scaling talks to it.
        excess = (norm / self.config.gradient_clip).clamp_min(1.0).float()
        found_inf = (~norm.isfinite()).float()
        self.optimiser.grad_scale = excess  # type: ignore[attr-defined]
        self.optimiser.found_inf = found_inf  # type: ignore[attr-defined]
        self.optimiser.step()
        if self.table is not None:
            self.table.step(excess, found_inf)
        return Outcome(loss.detach(), norm)

    def _first_steps(self) -> Outcome:
        """As they are, beside the main stream as a capture asks for; then capture, which runs nothing."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            outcome = self._step()
            self._done += 1
            if self._done == EAGER_STEPS:
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, stream=stream):
                    self._outcome = self._step()
                self._graph = graph
        torch.cuda.current_stream().wait_stream(stream)
        return outcome
