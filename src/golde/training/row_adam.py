"""Adam for a table of which a step draws a few rows.

What the rows that were not drawn do meanwhile is a choice:

- **Dense**: what Adam does to a parameter whose gradient is zero, in plain operations over the whole table.
- **Deferred**: the same, but nothing walks over them, and they may be kept elsewhere meanwhile. Adam goes on
  in the direction of the first moment while both moments decay; each row makes up for the steps it missed,
  one by one, when it is next drawn or when everything is settled: ``torch.optim.Adam`` over the whole table,
  to within rounding. A penalty that pulls on every entity at every step is part of what they make up for.
- **Lazy**: nothing. Value and moments wait, and decay only with steps that draw the row. That is another
  optimiser: a row moves less between draws, and the moments of a rare one remember its own last draws
  rather than fade. The bias corrections count all steps, as in ``torch.optim.SparseAdam``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from golde.config import TrainingConfig
from golde.kernels.adam import BETA1, BETA2, EPSILON, MOVING, NEGLIGIBLE, NEVER
from golde.training import dense_adam
from golde.training.regularisers import add_pull, pull

TURNS = 4096
"""Steps that missed rows can make up for; so often at least all of them do, which changes nothing."""


class RowAdam(ABC):
    """Owns the moments of one (E, D) parameter. A step is, in this order,

        table.advance(rate)
        rows = table.rows(ids)           # (n, D), a leaf; ids may repeat
        loss(rows).backward()
        squares = table.fold(rows.grad)  # what clipping needs to know
        table.step(scale, found_inf)

    All but ``advance`` can be captured: nothing waits for the device and no shape depends on the ids.
    ``settle`` comes before anything else reads the parameter.
    """

    def __init__(self, parameter: Tensor) -> None:
        self.parameter = parameter.detach()  # moved in place

    @abstractmethod
    def advance(self, rate: float) -> None:
        """Go on to the next step, with this learning rate."""

    @abstractmethod
    def rows(self, ids: Tensor) -> Tensor:
        """The rows ``ids`` (n,) as they are now, (n, D), to be differentiated by."""

    @abstractmethod
    def fold(self, grad: Tensor) -> Tensor:
        """Take the gradient (n, D) of ``rows``; returns what adds up to the squared norm of the table's."""

    @abstractmethod
    def step(self, scale: Tensor, found_inf: Tensor) -> None:
        """Move the rows by their gradient over ``scale`` (); not at all if ``found_inf`` () is not zero."""

    @abstractmethod
    def settle(self) -> None:
        """Bring every row up to date."""

    @abstractmethod
    def state(self) -> dict[str, Tensor]:
        """What ``torch.optim.Adam`` keeps of a parameter, of settled rows."""

    @abstractmethod
    def load(self, state: dict[str, Tensor]) -> None:
        """Go on from a ``state``, of this class or of ``torch.optim.Adam``."""


class DenseRowAdam(RowAdam):
    """The dense kind: torch's own Adam, anywhere and in any precision."""

    def __init__(self, parameter: Tensor, *, capture: bool, pull: float = 0.0) -> None:
        super().__init__(parameter)
        self.pull = pull
        self._adam = dense_adam.TorchAdam(
            {"entity": self.parameter}, torch.inf, parameter.device, capture=capture
        )

    def advance(self, rate: float) -> None:
        self._adam.advance(rate)

    def rows(self, ids: Tensor) -> Tensor:
        self._ids = ids
        return self.parameter.index_select(0, ids).requires_grad_()

    def fold(self, grad: Tensor) -> Tensor:
        self.parameter.grad = _added_up(grad, self._ids, len(self.parameter))
        norm: Tensor = torch.linalg.vector_norm(self.parameter.grad)
        return norm.square()

    def step(self, scale: Tensor, found_inf: Tensor) -> None:
        assert self.parameter.grad is not None
        if self.pull:
            # Beside what is clipped, and never divided by what it was clipped by.
            force = self.pull * scale.to(self.parameter.dtype)
            add_pull(self.parameter.grad, self.parameter, force)
        self._adam.step(scale, found_inf)
        self.parameter.grad = None

    def settle(self) -> None:
        """Nothing is ever due."""

    def state(self) -> dict[str, Tensor]:
        return self._adam.state().get("entity", {})

    def load(self, state: dict[str, Tensor]) -> None:
        self._adam.load({"entity": state})


class DrawnRowsAdam(RowAdam):
    """An Adam that touches no row but those drawn: its table may be a part of one that is kept elsewhere.

    Rows come and go between steps. What a row takes with it is in ``kept``; the steps taken so far and their
    records stay here.
    """

    @property
    @abstractmethod
    def defers(self) -> bool:
        """Whether rows have steps to make up for."""

    @property
    @abstractmethod
    def kept(self) -> tuple[Tensor, ...]:
        """Tensors with a row each for every row of the table, which is the first of them."""

    @property
    @abstractmethod
    def taken(self) -> Tensor:
        """Steps taken so far, ()."""

    @property
    def full(self) -> bool:
        """Whether all rows must be settled and the records begun anew before the next step."""
        return False

    def begin(self, taken: Tensor) -> None:
        """Begin the records anew, when all rows have been through the steps taken so far."""


class FusedRowAdam(DrawnRowsAdam):
    """Deferred or lazy as kernels, for float32 on a GPU; they are explained in ``row_adam_kernels``."""

    def __init__(self, parameter: Tensor, *, lazy: bool, pull: float = 0.0) -> None:
        from golde.kernels.triton.row_adam import Table

        super().__init__(parameter)
        self.lazy = lazy
        self._table = Table.of(self.parameter, TURNS, pull)
        self._turns = 0  # made since the table's records began

    def advance(self, rate: float) -> None:
        if self.full:
            self.settle()
            self.begin(self.taken)
        self._table.turn.fill_(self._turns)
        self._table.rate.fill_(rate)
        self._turns += 1

    def rows(self, ids: Tensor) -> Tensor:
        self._drawn = self._table.gather(ids, lazy=self.lazy)
        return self._drawn.rows.requires_grad_()

    def fold(self, grad: Tensor) -> Tensor:
        self._grad = grad.contiguous()
        return self._table.fold(self._drawn.ids, self._grad)

    def step(self, scale: Tensor, found_inf: Tensor) -> None:
        self._table.update(self._drawn, self._grad, scale, found_inf, lazy=self.lazy)

    def settle(self) -> None:
        if not self.lazy:
            self._table.settle()

    def state(self) -> dict[str, Tensor]:
        self.settle()
        return {
            "step": self.taken.float(),
            "exp_avg": self._table.exp_avg,
            "exp_avg_sq": self._table.exp_avg_sq,
        }

    def load(self, state: dict[str, Tensor]) -> None:
        self._table.exp_avg.copy_(state["exp_avg"])
        self._table.exp_avg_sq.copy_(state["exp_avg_sq"])
        self._table.last.copy_(state["step"])
        self.begin(state["step"])

    @property
    def defers(self) -> bool:
        return not self.lazy

    @property
    def kept(self) -> tuple[Tensor, ...]:
        table = self._table
        moments = table.exp_avg, table.exp_avg_sq
        return (table.parameter, *moments, *(() if self.lazy else (table.last,)))

    @property
    def taken(self) -> Tensor:
        return self._table.taken[self._turns]

    @property
    def full(self) -> bool:
        return self._turns == TURNS

    def begin(self, taken: Tensor) -> None:
        self._table.taken[0].copy_(taken)
        self._table.turn.fill_(-1)
        self._table.stamp.fill_(-1)
        self._turns = 0


class LazyRowAdam(DrawnRowsAdam):
    """The lazy kind in plain operations, anywhere and in any precision.

    Each position does the work of its row, and those that share one write the same result.
    """

    def __init__(self, parameter: Tensor) -> None:
        super().__init__(parameter)
        self._moments = torch.zeros_like(self.parameter), torch.zeros_like(self.parameter)
        self._rate = torch.zeros((), dtype=torch.float64, device=parameter.device)
        self._taken = torch.zeros((), device=parameter.device)
        # (E,) the last position of each row, while a step is folded; 0 else
        self._leaders = torch.zeros(len(parameter), dtype=torch.int64, device=parameter.device)

    def advance(self, rate: float) -> None:
        self._rate.fill_(rate)

    def rows(self, ids: Tensor) -> Tensor:
        self._ids = ids
        return self.parameter.index_select(0, ids).requires_grad_()

    def fold(self, grad: Tensor) -> Tensor:
        place = torch.arange(len(grad), device=grad.device)
        self._leaders.scatter_reduce_(0, self._ids, place, "amax")
        leader = self._leaders.index_select(0, self._ids)
        self._leaders.index_fill_(0, self._ids, 0)
        folded = torch.zeros_like(grad).index_add_(0, leader, grad)
        self._grad = folded.index_select(0, leader)
        return folded.square().sum()

    def step(self, scale: Tensor, found_inf: Tensor) -> None:
        k, g = self._taken.double() + 1, self._grad / scale
        p, m, v = (t.index_select(0, self._ids) for t in (self.parameter, *self._moments))
        new_m = BETA1 * m + (1 - BETA1) * g
        new_v = BETA2 * v + (1 - BETA2) * g * g
        denominator = new_v.sqrt() * (1 - BETA2**k).rsqrt() + EPSILON
        new_p = p - self._rate / (1 - BETA1**k) * (new_m / denominator)
        skipped = found_inf != 0
        for table, old, new in zip(
            (self.parameter, *self._moments), (p, m, v), (new_p, new_m, new_v), strict=True
        ):
            table.index_copy_(0, self._ids, torch.where(skipped, old, new))
        self._taken += 1 - found_inf

    def settle(self) -> None:
        """Nothing is ever due."""

    def state(self) -> dict[str, Tensor]:
        exp_avg, exp_avg_sq = self._moments
        return {"step": self._taken, "exp_avg": exp_avg, "exp_avg_sq": exp_avg_sq}

    def load(self, state: dict[str, Tensor]) -> None:
        self._taken.copy_(state["step"])
        for moment, name in zip(self._moments, ("exp_avg", "exp_avg_sq"), strict=True):
            moment.copy_(state[name])

    @property
    def defers(self) -> bool:
        return False

    @property
    def kept(self) -> tuple[Tensor, ...]:
        return self.parameter, *self._moments

    @property
    def taken(self) -> Tensor:
        return self._taken


class DeferredRowAdam(LazyRowAdam):
    """The deferred kind in plain operations: lazy steps of rows that make up for those they missed first.

    It waits for the device, to learn which steps were skipped and how many a row has missed.
    """

    def __init__(self, parameter: Tensor, *, pull: float = 0.0) -> None:
        super().__init__(parameter)
        self.pull = pull
        never = 0 if pull else NEVER  # those that are pulled move before they are drawn
        self._last = torch.full((len(parameter),), never, device=parameter.device)
        self._first = 0  # steps taken before the records began
        self._records: list[tuple[float, float]] = []  # of each taken since: size, scale of √v

    def advance(self, rate: float) -> None:
        if self.full:
            self.settle()
            self.begin(self.taken)
        super().advance(rate)

    def rows(self, ids: Tensor) -> Tensor:
        self._catch_up(ids.unique())
        return super().rows(ids)

    def step(self, scale: Tensor, found_inf: Tensor) -> None:
        if found_inf:
            return
        if self.pull:
            force = self.pull * scale.to(self.parameter.dtype)
            add_pull(self._grad, self.parameter.index_select(0, self._ids), force)
        super().step(scale, found_inf)
        k = int(self._taken)
        self._last.index_fill_(0, self._ids, k)
        self._records.append((float(self._rate) / (1 - BETA1**k), (1 - BETA2**k) ** -0.5))

    def settle(self) -> None:
        self._catch_up(torch.arange(len(self.parameter), device=self.parameter.device))

    def state(self) -> dict[str, Tensor]:
        self.settle()
        return super().state()

    def load(self, state: dict[str, Tensor]) -> None:
        super().load(state)
        self._last.copy_(state["step"])
        self.begin(state["step"])

    @property
    def defers(self) -> bool:
        return True

    @property
    def kept(self) -> tuple[Tensor, ...]:
        return *super().kept, self._last

    @property
    def full(self) -> bool:
        return len(self._records) == TURNS

    def begin(self, taken: Tensor) -> None:
        self._first, self._records = int(taken), []

    def _catch_up(self, ids: Tensor) -> None:
        """Make up for the steps that rows ``ids`` missed, the j-th of each at the same time.

        As the kernels do, and for the same reason: portions come to the same, to the bit.
        """
        now, last = int(self._taken), self._last.index_select(0, ids)
        due = (last != NEVER) & (last < now)
        missed, order = (now - last[due]).sort(descending=True)
        ids, begin = ids[due][order], (now - self._first) - missed  # where its first record is
        tables = self.parameter, *self._moments
        rows = p, m, v = [table.index_select(0, ids) for table in tables]
        records = p.new_tensor(self._records).view(-1, 2, 1)
        lacking = (len(missed) - missed.bincount().cumsum(0)).tolist()[:-1]  # by j: rows that do
        for j, n in enumerate(lacking):
            if self.pull:
                gradient = torch.zeros_like(p[:n])
                add_pull(gradient, p[:n], p.new_tensor(self.pull))
                m[:n] = BETA1 * m[:n] + (1 - BETA1) * gradient
                v[:n] = BETA2 * v[:n] + (1 - BETA2) * gradient * gradient
            else:
                m[:n] *= BETA1
                v[:n] *= BETA2
            if self.pull or j < MOVING:
                size, scale = records[begin[:n] + j].unbind(1)  # (n, 1)
                share = m[:n] / (v[:n].sqrt() * scale + EPSILON)
                negligible = (share.abs() <= NEGLIGIBLE) & (not self.pull)
                p[:n] -= size * share.masked_fill(negligible, 0.0)
        for table, new in zip(tables, rows, strict=True):
            table.index_copy_(0, ids, new)
        self._last.index_fill_(0, ids, now)


def drawn_rows_adam(parameter: Tensor, config: TrainingConfig, entities: int) -> DrawnRowsAdam:
    """The optimiser of a table of rows that are drawn among all ``entities``."""
    lazy, force = config.optimiser == "lazy-adam", pull(config, entities)
    if dense_adam.has_kernels(config, parameter.device):
        return FusedRowAdam(parameter, lazy=lazy, pull=force)
    return LazyRowAdam(parameter) if lazy else DeferredRowAdam(parameter, pull=force)


def row_adam(parameter: Tensor, config: TrainingConfig, entities: int, *, capture: bool) -> RowAdam:
    """The optimiser of a table of all ``entities`` or some; a step that is captured needs ``capture``."""
    lazy, force = config.optimiser == "lazy-adam", pull(config, entities)
    if dense_adam.has_kernels(config, parameter.device):
        return FusedRowAdam(parameter, lazy=lazy, pull=force)
    if lazy:
        return LazyRowAdam(parameter)
    return DenseRowAdam(parameter, capture=capture, pull=force)


def moves_rows(config: TrainingConfig, device: torch.device) -> bool:
    """Whether the table has no gradient of its own size."""
    staged = config.entity_table == "host"
    return staged or config.optimiser == "lazy-adam" or dense_adam.has_kernels(config, device)


def _added_up(grad: Tensor, ids: Tensor, rows: int) -> Tensor:
    """The gradient of a table from that of the rows drawn; in a fixed order on a CPU, else as is quickest."""
    if grad.device.type == "cpu":
        return torch.ops.aten.embedding_dense_backward(grad, ids, rows, -1, False)  # type: ignore[no-any-return]
    return grad.new_zeros(rows, grad.shape[1]).index_add_(0, ids, grad)
