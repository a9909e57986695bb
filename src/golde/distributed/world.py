"""The processes that train together: who owns which rows, and what they tell each other.

Rows of a table are divided into contiguous ranges whose sizes differ by one at most, so that a run that goes
on with another number of processes finds its rows by slicing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor

from golde.errors import GoldeError


class FailedElsewhereError(GoldeError):
    """Another process met an error that this one need not repeat."""

    def __init__(self, rank: int) -> None:
        super().__init__(f"process {rank} failed; what it says tells why")


class World(ABC):
    """``size`` processes, of which this one is number ``rank``.

    All of them call the same methods in the same order, with tensors of the same shape and type, and get
    the same result, to the bit.
    """

    rank: int
    size: int

    def __init__(self) -> None:
        self.sent = 0  # bytes this process has put in, for whoever measures the traffic
        self.exchanges = 0  # it has come to, finished or not
        self.waits = False  # for the others, in one of them
        self.step = 0  # of training, for whoever watches that all get on

    def add_up(self, tensor: Tensor) -> Tensor:
        """The sum over all processes, in place."""
        with self._exchange(tensor.nbytes):
            return self._add_up(tensor)

    def collect(self, tensor: Tensor) -> Tensor:
        """What each process has, (size, *shape)."""
        with self._exchange(tensor.nbytes):
            return self._collect(tensor)

    def deliver(self, parcels: Sequence[Tensor]) -> list[Tensor]:
        """What each process has for this one, in order; ``parcels`` are rows (n, *shape) for each of them.

        They may differ in n, and lie on the CPU.
        """
        with self._exchange(sum(parcel.nbytes for parcel in parcels)):
            return self._deliver(parcels)

    def ask(self, owner: Tensor, rows: Tensor, answer: Callable[[Tensor], Tensor]) -> Tensor:
        """For each row (n, …) what its owner answers (n, …).

        ``answer`` is called once, with all the rows that this process owns, ordered by who asks.
        """
        order = owner.argsort(stable=True)
        sizes = owner.bincount(minlength=self.size).tolist()
        asked = self.deliver(rows[order].split(sizes))
        answers = answer(torch.cat(asked)).split([len(some) for some in asked])
        found = torch.cat(self.deliver(answers))
        return torch.empty_like(found).index_copy_(0, order, found)

    @contextmanager
    def _exchange(self, sent: int) -> Iterator[None]:
        self.sent += sent
        self.exchanges += 1
        self.waits = True
        try:
            yield
        finally:
            self.waits = False

    def share(self, total: int) -> range:
        """The rows of a table of ``total`` that this process owns."""
        start, stop = (rank * total // self.size for rank in (self.rank, self.rank + 1))
        return range(start, stop)

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """What any process may fail at: if one does, all do, instead of waiting for it.

        The first that knows why says so.
        """
        failed: GoldeError | None = None
        try:
            yield
        except GoldeError as error:
            failed = error
        knows_why = failed is not None and not isinstance(failed, FailedElsewhereError)
        told = self.collect(torch.tensor([failed is not None, knows_why]).long())  # (size, 2)
        if told[:, 0].any():
            first = int(told[:, 1].argmax())
            raise (
                failed if failed is not None and first == self.rank else FailedElsewhereError(first)
            )

    @abstractmethod
    def _add_up(self, tensor: Tensor) -> Tensor: ...

    @abstractmethod
    def _collect(self, tensor: Tensor) -> Tensor: ...

    @abstractmethod
    def _deliver(self, parcels: Sequence[Tensor]) -> list[Tensor]: ...


class Processes(World):
    """Those of the default process group of ``torch.distributed``."""

    def __init__(self) -> None:
        super().__init__()
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def _add_up(self, tensor: Tensor) -> Tensor:
        dist.all_reduce(tensor)
        return tensor

    def _collect(self, tensor: Tensor) -> Tensor:
        found = tensor.new_empty(self.size, *tensor.shape)
        dist.all_gather(list(found.unbind()), tensor.contiguous())
        return found

    def _deliver(self, parcels: Sequence[Tensor]) -> list[Tensor]:
        sizes = [len(parcel) for parcel in parcels]
        coming = self._collect(torch.tensor(sizes))[:, self.rank].tolist()
        found = parcels[0].new_empty(sum(coming), *parcels[0].shape[1:])
        dist.all_to_all_single(found, torch.cat(list(parcels)), coming, sizes)
        return list(found.split(coming))
