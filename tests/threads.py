"""Processes that are threads of one, for tests of what they agree on: no start-up, and no network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, BrokenBarrierError
from typing import TypeVar

import torch
from torch import Tensor

from golde.distributed.world import FailedElsewhereError, World

_Result = TypeVar("_Result")


class Meeting:
    """Where threads put tensors and look at those of all."""

    def __init__(self, size: int) -> None:
        self.size, self.barrier = size, Barrier(size, timeout=60)
        self.table: list[Tensor] = [torch.empty(0)] * size
        self.parcels: list[list[Tensor]] = [[]] * size

    def exchange(self, rank: int, tensor: Tensor) -> list[Tensor]:
        self.table[rank] = tensor.detach().clone()
        self.barrier.wait()
        shapes = {(tuple(told.shape), told.dtype) for told in self.table}
        assert len(shapes) == 1, f"processes came with different tensors: {shapes}"
        found = list(self.table)
        self.barrier.wait()
        return found

    def hand_over(self, rank: int, parcels: Sequence[Tensor]) -> list[list[Tensor]]:
        assert len(parcels) == self.size
        assert len({(parcel.shape[1:], parcel.dtype) for parcel in parcels}) == 1
        self.parcels[rank] = [parcel.clone() for parcel in parcels]
        self.barrier.wait()
        found = list(self.parcels)
        self.barrier.wait()
        shapes = {(some[0].shape[1:], some[0].dtype) for some in found}
        assert len(shapes) == 1, f"processes came with different parcels: {shapes}"
        return found


class Thread(World):
    def __init__(self, rank: int, meeting: Meeting) -> None:
        super().__init__()
        self.rank, self.size, self.meeting = rank, meeting.size, meeting

    def _add_up(self, tensor: Tensor) -> Tensor:
        found = self.meeting.exchange(self.rank, tensor)
        return tensor.copy_(torch.stack(found).sum(0))

    def _collect(self, tensor: Tensor) -> Tensor:
        return torch.stack(self.meeting.exchange(self.rank, tensor))

    def _deliver(self, parcels: Sequence[Tensor]) -> list[Tensor]:
        return [parcels_of[self.rank] for parcels_of in self.meeting.hand_over(self.rank, parcels)]


def part_of(rows: Tensor, world: World) -> Tensor:
    """Of rows that a test has whole those that one process has."""
    share = world.share(len(rows))
    return rows[share.start : share.stop]


def together(size: int, work: Callable[[World], _Result]) -> list[_Result]:
    """What each of ``size`` processes returns; if one fails, the others are not waited for."""
    meeting = Meeting(size)

    def one(rank: int) -> _Result:
        try:
            return work(Thread(rank, meeting))
        except FailedElsewhereError:  # all others fail as well, each when it hears of it
            raise
        except BaseException:
            meeting.barrier.abort()
            raise

    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(one, rank) for rank in range(size)]
    errors = [error for future in futures if (error := future.exception()) is not None]
    heard_of = BrokenBarrierError, FailedElsewhereError
    for error in sorted(errors, key=lambda error: isinstance(error, heard_of)):
        raise error
    return [future.result() for future in futures]
