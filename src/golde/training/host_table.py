"""A table of all entities in host memory, of which some rows at a time go to the device and back.

On a machine with a GPU the memory is pinned, which is what lets the GPU read and write it by itself and
lets copies go on beside other work. It is pinned where it lies: the allocator of pinned memory would round
a table up to the next power of two.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import torch
from torch import Tensor

from golde.errors import ConfigError


class HostTable:
    """Tensors with a row for each of E entities: the parameter and what its optimiser keeps beside it.

    ``by_kernels``: rows are moved by the GPU, in the order of its stream; else by the processor, which waits
    for the ids.
    """

    def __init__(
        self, tensors: Sequence[Tensor], device: torch.device, *, by_kernels: bool
    ) -> None:
        self.tensors, self.device, self.by_kernels = tuple(tensors), device, by_kernels
        self.entities = len(tensors[0])
        if device.type == "cuda":
            pin(self)

    def read(self, ids: Tensor, rows: Sequence[Tensor]) -> None:
        """Rows ``ids`` (n,) of every tensor into ``rows`` (n, …) on the device; an id of E stands for none.

        Ids ascend.
        """
        if self.by_kernels:
            from golde.kernels.triton.host_rows import read_rows

            for table, to in zip(self.tensors, rows, strict=True):
                read_rows(table, ids, to)
            return
        some = self._there(ids)
        for table, to in zip(self.tensors, rows, strict=True):
            to[: len(some)] = table.index_select(0, some).to(self.device)

    def write(self, ids: Tensor, rows: Sequence[Tensor]) -> None:
        """The other way; no two ids below E are the same."""
        if self.by_kernels:
            from golde.kernels.triton.host_rows import write_rows

            for table, of in zip(self.tensors, rows, strict=True):
                write_rows(table, ids, of)
            return
        some = self._there(ids)
        for table, of in zip(self.tensors, rows, strict=True):
            table.index_copy_(0, some, of[: len(some)].cpu())

    def _there(self, ids: Tensor) -> Tensor:
        return ids[ids < self.entities].cpu()


def pin(table: HostTable) -> None:
    """Pin the memory of a table until nobody has the table any more."""
    runtime = torch.cuda.cudart()
    pinned: list[Tensor] = []
    weakref.finalize(table, _release, pinned)  # it keeps the memory from being freed before
    for tensor in table.tensors:
        size = tensor.numel() * tensor.element_size()
        if size and int(runtime.cudaHostRegister(tensor.data_ptr(), size, 0)):
            raise ConfigError(
                f"{size / 1e9:,.1f} GB of host memory cannot be pinned, which "
                "training.entity_table = 'host' needs on a GPU; choose a smaller model, or raise what "
                "the system lets a process lock"
            )
        pinned.append(tensor)


def _release(pinned: list[Tensor]) -> None:
    torch.cuda.synchronize()  # nothing is under way to memory that is given back
    for tensor in pinned:
        torch.cuda.cudart().cudaHostUnregister(tensor.data_ptr())
