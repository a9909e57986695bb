"""One step of training on a table in host memory.

The rows, moments and counts of the entities that a step draws lie on the device as a small table of their
own, and are trained as the whole one would be. What a step draws follows from (seed, step), so the rows of
the next one are on their way while this one computes: see ``golde.training.staging``.

On a GPU the copies have a stream of their own. It begins when the rows of the step are in place, and the
step ends when it has ended: one fork, one join, nothing else to wait for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.utils._pytree import tree_leaves, tree_map

from golde.config import TrainingConfig
from golde.models import Model
from golde.training.dense_adam import State, dense_adam
from golde.training.host_table import HostTable
from golde.training.replay import Replay
from golde.training.row_adam import FusedRowAdam, drawn_rows_adam
from golde.training.sampling import Draw, Sampler
from golde.training.staging import SETTLED, Staging
from golde.training.step import step_loss
from golde.training.update import Outcome

MOMENTS = ("exp_avg", "exp_avg_sq")


class HostUpdate:
    """The steps of one run, as ``golde.training.update.Update``, but ``model.entity`` is in host memory."""

    def __init__(
        self, model: Model, sampler: Sampler, config: TrainingConfig, *, capture: bool
    ) -> None:
        self.model, self.sampler, self.config = model, sampler, config
        device, table = sampler.device, model.entity.detach()
        positions = 2 * sampler.batch_size + sampler.negatives
        rows = max(positions, min(len(table), SETTLED))
        here = torch.zeros(rows, table.shape[1], dtype=table.dtype, device=device)
        self.adam = drawn_rows_adam(here, config, len(table))
        by_kernels = isinstance(self.adam, FusedRowAdam)
        beside = (_of_every_row(one, len(table)) for one in self.adam.kept[1:])
        self.host = HostTable((table, *beside), device, by_kernels=by_kernels)
        model.entity.data = self.host.tensors[0]
        self.staging = Staging(self.host, self.adam, positions)
        dense = dict(model.named_parameters())
        del dense["entity"]
        self.capture = (
            capture and by_kernels
        )  # else the processor moves rows, and has to see their ids
        self.dense = dense_adam(dense, config, device, capture=self.capture)
        self._copies = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._replay: Replay[Outcome] = Replay()
        self._draw: Draw | None = None  # on a GPU in the same memory all along
        self._ahead: int | None = None  # the step that the draw and the rows here are for

    @property
    def batch_size(self) -> int:
        return self.sampler.batch_size

    def __call__(self, step: int, rate: float) -> Outcome:
        """Make step ``step`` at the given learning rate."""
        if self.adam.full:
            self.settle()
            self.adam.begin(self.adam.taken)
        if self._ahead != step:
            self._prepare(step)
        self.sampler.seek(step + 1)
        self.dense.advance(rate)
        self.adam.advance(rate)
        outcome = self._replay(self._step) if self.capture else self._step()
        self.staging.moved()
        self._ahead = step + 1
        return outcome

    def rehearse(self) -> None:
        """Have the kernels of a step compiled before the first, where it is made of kernels on a GPU."""
        if self._copies is not None and self.host.by_kernels:
            from golde.kernels.triton.rehearsal import rehearsal

            with rehearsal():
                self._prepare(0)
                self._step()
            self.staging.forget()
            self._ahead = None

    def settle(self) -> None:
        """Bring the entity table up to date; to be called before anything but a step reads it."""
        self.staging.settle()
        self._ahead = None

    def state(self) -> State:
        """What Adam keeps of each parameter it has moved, by name."""
        self.settle()
        moments = dict(zip(MOMENTS, self.host.tensors[1:], strict=False))
        return {**self.dense.state(), "entity": {"step": self.adam.taken.float(), **moments}}

    def load(self, state: State) -> None:
        """Put back what ``state`` returned."""
        self.staging.forget()  # what is there is of other steps
        self._ahead = None
        dense = dict(state)
        if "entity" in dense:
            kept = dense.pop("entity")
            for tensor, name in zip(self.host.tensors[1:], (*MOMENTS, "step"), strict=False):
                tensor.copy_(kept[name])  # no row has missed any of the steps taken so far
            empty = dict(zip(MOMENTS, self.adam.kept[1:], strict=False))
            self.adam.load({"step": kept["step"], **empty})
        self.dense.load(dense)

    def _prepare(self, step: int) -> None:
        """Draw for a step and have its rows here, without having come from the step before."""
        self.staging.flush()
        draw = self.sampler.seek(step).draw()
        self.staging.read_ahead(draw.entities)
        self.staging.move_up()
        self._hold(draw)

    def _step(self) -> Outcome:
        draw = self._draw
        assert draw is not None
        with self._beside():
            self.staging.write_back()
            following = self.sampler.draw()
            self.staging.read_ahead(following.entities)
        self.dense.zero_grad()
        rows = self.adam.rows(self.staging.slot[: len(draw.entities)])
        loss = step_loss(self.model, rows, draw, self.config)
        loss.backward()
        assert rows.grad is not None
        norm, scale, found_inf = self.dense.clip(self.adam.fold(rows.grad))
        self.dense.step(scale, found_inf)
        self.adam.step(scale, found_inf)
        if self._copies is not None:
            torch.cuda.current_stream().wait_stream(self._copies)
        self.staging.move_up()
        self._hold(following)
        return Outcome(loss.detach(), norm)

    @contextmanager
    def _beside(self) -> Iterator[None]:
        """On a GPU, beside what comes next; what came before has ended."""
        if self._copies is None:
            yield
            return
        self._copies.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._copies):
            yield

    def _hold(self, draw: Draw) -> None:
        if self._copies is None:  # a draw of another size each time
            self._draw = draw
            return
        if self._draw is None:
            self._draw = tree_map(torch.clone, draw)
            return
        for held, new in zip(tree_leaves(self._draw), tree_leaves(draw), strict=True):
            held.copy_(new)


def _of_every_row(fresh: torch.Tensor, entities: int) -> torch.Tensor:
    """What is kept of each of the entities at the start, in host memory, from a table where it is so."""
    return fresh[:1].cpu().expand(entities, *fresh.shape[1:]).contiguous()
