"""One step of training: draw, score, differentiate, clip, and let Adam move the parameters."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from torch import Tensor

from golde.config import TrainingConfig
from golde.models import Model
from golde.training.dense_adam import State, dense_adam
from golde.training.replay import Replay
from golde.training.row_adam import FusedRowAdam, row_adam
from golde.training.sampling import Sampler
from golde.training.step import step_loss


class Outcome(NamedTuple):
    """Of one step, on the device: reading either waits for it."""

    loss: Tensor
    gradient_norm: Tensor


class Steps(Protocol):
    """What makes the steps of a run, in one process or in several."""

    config: TrainingConfig

    @property
    def batch_size(self) -> int: ...

    def __call__(self, step: int, rate: float) -> Outcome: ...

    def rehearse(self) -> None: ...

    def settle(self) -> None: ...

    def state(self) -> State: ...

    def load(self, state: State) -> None: ...


class Update:
    """The steps of one run.

    A step whose gradient is not finite moves nothing. On a GPU the step is captured once and then
    replayed as a whole, because launching its many small kernels would take longer than running them.
    Nothing waits for the device.
    """

    def __init__(
        self, model: Model, sampler: Sampler, config: TrainingConfig, *, capture: bool
    ) -> None:
        self.model, self.sampler, self.config = model, sampler, config
        self.capture = capture
        self.table = row_adam(model.entity, config, sampler.entities, capture=capture)
        dense = dict(model.named_parameters())
        del dense["entity"]
        self.dense = dense_adam(dense, config, sampler.device, capture=capture)
        self._replay: Replay[Outcome] = Replay()

    @property
    def batch_size(self) -> int:
        return self.sampler.batch_size

    def __call__(self, step: int, rate: float) -> Outcome:
        """Make step ``step`` at the given learning rate."""
        self.sampler.seek(step)
        self.dense.advance(rate)
        self.table.advance(rate)
        return self._replay(self._step) if self.capture else self._step()

    def rehearse(self) -> None:
        """Have the kernels of a step compiled before the first, where it is made of kernels on a GPU."""
        if self.sampler.device.type == "cuda" and isinstance(self.table, FusedRowAdam):
            from golde.kernels.triton.rehearsal import rehearsal

            with rehearsal():
                self._step()

    def settle(self) -> None:
        """Bring the entity table up to date; to be called before anything but a step reads it."""
        self.table.settle()

    def state(self) -> State:
        """What Adam keeps of each parameter it has moved, by name."""
        return {**self.dense.state(), "entity": self.table.state()}

    def load(self, state: State) -> None:
        """Put back what ``state`` returned."""
        dense = dict(state)
        if "entity" in dense:
            self.table.load(dense.pop("entity"))
        self.dense.load(dense)

    def _step(self) -> Outcome:
        self.dense.zero_grad()
        draw = self.sampler.draw()
        rows = self.table.rows(draw.entities)
        loss = step_loss(self.model, rows, draw, self.config)
        loss.backward()
        assert rows.grad is not None
        norm, scale, found_inf = self.dense.clip(self.table.fold(rows.grad))
        self.dense.step(scale, found_inf)
        self.table.step(scale, found_inf)
        return Outcome(loss.detach(), norm)
