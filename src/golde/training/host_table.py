"""A table of all entities in host memory, of which some rows at a time go to the device and back.

On a machine with a GPU the memory is pinned, which is what lets the GPU read and write it by itself and
lets copies go on beside other work.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import torch
from torch import Tensor

from golde.errors import ConfigError

IN_PLACE = 1 << 26
"""Bytes from which memory is pinned where it lies: the allocator of pinned memory rounds up to the next power
of two. Less may share a page with something else, which can then not be pinned once more."""


class HostTable:
    """Tensors with a row for each of E entities: the parameter and what its optimiser keeps beside it.

    ``by_kernels``: rows are moved by the GPU, in the order of its stream; else by the processor, which waits
    for the ids.
    """

    def __init__(
        self, tensors: Sequence[Tensor], device: torch.device, *, by_kernels: bool
    ) -> None:
        self.device, self.by_kernels = device, by_kernels
        self.entities = len(tensors[0])
        self.tensors = tuple(tensors)
        if device.type == "cuda":
            large = [tensor for tensor in tensors if tensor.nbytes >= IN_PLACE]
            weakref.finalize(self, _unpin, large)  # which keeps their memory until then
            for tensor in large:
                _pin(tensor)
            self.tensors = tuple(t if t.nbytes >= IN_PLACE else t.pin_memory() for t in tensors)

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


def _pin(tensor: Tensor) -> None:
    """Pin memory where it lies."""
    runtime = torch.cuda.cudart()
    found = runtime.cudaHostRegister(tensor.data_ptr(), tensor.nbytes, 0)
    if found != runtime.cudaError.success:
        raise ConfigError(
            f"{tensor.nbytes / 1e9:,.1f} GB of host memory cannot be pinned ({found}), which "
            "training.entity_table = 'host' needs on a GPU; choose a smaller model, or raise what the "
            "system lets a process lock"
        )


def _unpin(tensors: list[Tensor]) -> None:
    torch.cuda.synchronize()  # nothing is under way to memory that is given back
    for tensor in tensors:
        torch.cuda.cudart().cudaHostUnregister(tensor.data_ptr())
