"""The processes that train together: who owns which rows, and what they tell each other.

Rows of a table are divided into contiguous ranges whose sizes differ by one at most, so that a run that goes
on with another number of processes finds its rows by slicing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor

from golde.errors import GoldeError


class World(ABC):
    """``size`` processes, of which this one is number ``rank``.

    All of them call the same methods in the same order, with tensors of the same shape and type, and get
    the same result, to the bit.
    """

    rank: int
    size: int

    def __init__(self) -> None:
        self.sent = 0  # bytes this process has put in, for whoever measures the traffic

    def add_up(self, tensor: Tensor) -> Tensor:
        """The sum over all processes, in place."""
        self.sent += tensor.nbytes
        return self._add_up(tensor)

    def collect(self, tensor: Tensor) -> Tensor:
        """What each process has, (size, *shape)."""
        self.sent += tensor.nbytes
        return self._collect(tensor)

    def share(self, total: int) -> range:
        """The rows of a table of ``total`` that this process owns."""
        start, stop = (rank * total // self.size for rank in (self.rank, self.rank + 1))
        return range(start, stop)

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """What any process may fail at: if one does, all do, instead of waiting for it."""
        failed: GoldeError | None = None
        try:
            yield
        except GoldeError as error:
            failed = error
        told = self.collect(torch.tensor(failed is not None, dtype=torch.int64)).tolist()
        if failed is not None:
            raise failed
        if any(told):
            raise GoldeError(f"process {told.index(1)} failed; what it says tells why")

    @abstractmethod
    def _add_up(self, tensor: Tensor) -> Tensor: ...

    @abstractmethod
    def _collect(self, tensor: Tensor) -> Tensor: ...


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
