"""Numbering names that no process has all of.

Each process brings the distinct names that it read, in order of first appearance. Sorted, all names are
divided into ranges, and the owner of a range finds out who met a name first. Ids go on from process to
process: they are those that one process would have given, reading everything in order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from golde.distributed.world import World

SAMPLES = 8
"""Names that a process proposes as ends of a range, for each range."""


class NameShare(NamedTuple):
    """Of all names those that a process met before the others."""

    names: list[str]  # in order of their ids
    edges: Tensor  # (size + 1,): where the ids of each process begin
    places: Tensor  # where each of the names stands when all are sorted
    ordered: list[str]  # the range of the sorted names that this process owns

    def owner(self, id: Tensor) -> Tensor:
        """The process that met each of some names first."""
        return torch.searchsorted(self.edges, id, right=True) - 1


def number_names(names: Sequence[str], world: World) -> tuple[Tensor, NameShare]:
    """The ids of the distinct names that this process read, and those that are its own."""
    order = sorted(range(len(names)), key=names.__getitem__)
    ranked = [names[i] for i in order]
    cuts = [0, *(bisect_left(ranked, end) for end in _ends(ranked, world)), len(ranked)]
    told = deliver_texts([ranked[a:b] for a, b in pairwise(cuts)], world)

    first: dict[str, int] = {}  # who met each name first
    for source, some in enumerate(told):
        for name in some:
            first.setdefault(name, source)
    ordered = sorted(first)
    before = int(world.collect(torch.tensor(len(ordered)))[: world.rank].sum())
    place = {name: before + i for i, name in enumerate(ordered)}
    replies = [
        torch.tensor([[first[name] == source, place[name]] for name in some], dtype=torch.int64)
        for source, some in enumerate(told)
    ]
    is_new, places = _unsorted(_pairs(world.deliver([r.view(-1, 2) for r in replies])), order).T

    counts = world.collect(is_new.sum()).cumsum(0)
    edges = torch.cat((counts.new_zeros(1), counts))
    new = is_new.bool()
    ids = torch.full((len(names),), -1).masked_scatter(
        new, torch.arange(int(edges[world.rank]), int(edges[world.rank + 1]))
    )
    in_order = ids[torch.tensor(order, dtype=torch.int64)]
    widths = [b - a for a, b in pairwise(cuts)]
    id_of: dict[str, int] = {}
    for some, given in zip(told, world.deliver(in_order.split(widths)), strict=True):
        id_of |= {name: id for name, id in zip(some, given.tolist(), strict=True) if id >= 0}
    found = world.deliver(
        [torch.tensor([id_of[name] for name in some], dtype=torch.int64) for some in told]
    )
    mine = [names[i] for i in new.nonzero()[:, 0].tolist()]
    return _unsorted(torch.cat(found), order), NameShare(mine, edges, places[new], ordered)


def merge_names(names: Sequence[str], world: World) -> list[str]:
    """Few names, such as those of relations, numbered likewise and told to all."""
    told = deliver_texts([names] * world.size, world)
    return list(dict.fromkeys(name for some in told for name in some))


def deliver_texts(parcels: Sequence[Sequence[str]], world: World) -> list[list[str]]:
    """``World.deliver`` for texts."""
    coded = [[text.encode("utf-8", "surrogatepass") for text in parcel] for parcel in parcels]
    lengths = world.deliver(
        [torch.tensor([len(c) for c in some], dtype=torch.int64) for some in coded]
    )
    letters = world.deliver(
        [torch.from_numpy(np.frombuffer(b"".join(some), np.uint8).copy()) for some in coded]
    )
    return [list(_texts(*found)) for found in zip(lengths, letters, strict=True)]


def _texts(lengths: Tensor, letters: Tensor) -> Iterable[str]:
    whole, start = letters.numpy().tobytes(), 0
    for length in lengths.tolist():
        yield whole[start : start + length].decode("utf-8", "surrogatepass")
        start += length


def _ends(ranked: list[str], world: World) -> list[str]:
    """Names that divide all of them into ranges of about the same size, the same in every process."""
    proposed = ranked[:: max(1, len(ranked) // (SAMPLES * world.size))]
    sample = sorted(name for some in deliver_texts([proposed] * world.size, world) for name in some)
    if not sample:
        return [""] * (world.size - 1)
    return [sample[i * len(sample) // world.size] for i in range(1, world.size)]


def _pairs(told: list[Tensor]) -> Tensor:
    return torch.cat(told).view(-1, 2)


def _unsorted(sorted_: Tensor, order: list[int]) -> Tensor:
    """What was found for sorted names, in the order that they had."""
    return torch.empty_like(sorted_).index_copy_(0, torch.tensor(order, dtype=torch.int64), sorted_)
