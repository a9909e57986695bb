"""The rows of a step, brought from host memory to the device one step ahead and taken back one step later.

While a step computes on the rows that are *here*, two copies go on beside it: rows that the step before has
moved go back to host memory (*going*), and those of the step after come in (*coming*). At the end of the
step all move up: what was here is going, what was coming is here. The one thing to be careful of is a row
that two steps in a row need: it came in before the first of them moved it, so at the change it is taken from
what was here instead. A row of three steps ago is back in host memory before it is read, because a step
writes before it reads.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from golde.training.host_table import HostTable
from golde.training.row_adam import DrawnRowsAdam

SETTLED = 1 << 14
"""Rows at least that are settled at a time, where there are as many."""


class Staging:
    """Moves rows between host memory and the table of an ``adam``, whose first ``positions`` rows they fill.

    Shapes are fixed and nothing waits for the device where kernels move the rows, so that all but
    ``flush`` and ``settle`` can be captured.
    """

    def __init__(self, host: HostTable, adam: DrawnRowsAdam, positions: int) -> None:
        self.host, self.adam = host, adam
        self._coming = [table[:positions].clone() for table in adam.kept]
        self._going = [table[:positions].clone() for table in adam.kept]
        none = torch.full((positions,), host.entities, device=host.device)
        self._entity, self._next_entity, self._gone = none, none.clone(), none.clone()
        self.slot = torch.zeros_like(none)  # (positions,): the row of each entity of the draw
        self._next_slot = self.slot.clone()
        self._settled = True

    def read_ahead(self, ids: Tensor) -> None:
        """Bring in the rows of entities, as many as there are positions at most; they may repeat."""
        none = self.host.entities
        entity, slot = distinct(pad(ids, (0, len(self.slot) - len(ids)), value=none), none)
        self._next_entity.copy_(entity)
        self._next_slot.copy_(slot)
        self.host.read(self._next_entity, self._coming)

    def write_back(self) -> None:
        """Take back the rows that were here before these."""
        self.host.write(self._gone, self._going)

    def move_up(self) -> None:
        """What is here goes, what was coming is here; what both have is newer in the former."""
        count = len(self._entity)
        place = torch.searchsorted(self._entity, self._next_entity).clamp_max(count - 1)
        both = self._entity.index_select(0, place) == self._next_entity
        for here, coming, going in zip(self.adam.kept, self._coming, self._going, strict=True):
            going.copy_(here[:count])
            stays = both.view(-1, *[1] * (going.dim() - 1))
            here[:count] = torch.where(stays, going.index_select(0, place), coming)
        self._gone.copy_(self._entity)
        self._entity.copy_(self._next_entity)
        self.slot.copy_(self._next_slot)

    def moved(self) -> None:
        """A step has moved rows: they are no longer settled."""
        self._settled = False

    def flush(self) -> None:
        """Have all rows in host memory as they are now; what is here does not count from then on."""
        self.write_back()
        self.forget()

    def forget(self) -> None:
        """Neither what is here nor what was before is of any entity."""
        for entity in (self._entity, self._gone):
            entity.fill_(self.host.entities)

    def settle(self) -> None:
        """Flush, and bring every row up to date; the processor can read them after that."""
        if self._settled:
            return
        self.flush()
        here, entities = self.adam.kept, self.host.entities
        if self.adam.defers:
            for start in range(0, entities, len(here[0])):
                stop = min(start + len(here[0]), entities)
                for table, row in zip(self.host.tensors, here, strict=True):
                    row[: stop - start].copy_(table[start:stop], non_blocking=True)
                self.adam.settle()
                for table, row in zip(self.host.tensors, here, strict=True):
                    table[start:stop].copy_(row[: stop - start], non_blocking=True)
        _wait(self.host.device)
        self._settled = True


def distinct(ids: Tensor, none: int) -> tuple[Tensor, Tensor]:
    """The different ids in ascending order, then ``none``, and which of them each is; (n,) both.

    As ``torch.unique``, but of a size known beforehand.
    """
    ordered, order = ids.sort(stable=True)
    place = torch.zeros_like(ids)
    place[1:] = (ordered[1:] != ordered[:-1]).cumsum(0)
    entity = torch.full_like(ids, none).scatter_(0, place, ordered)
    return entity, torch.empty_like(ids).scatter_(0, order, place)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
