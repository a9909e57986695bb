"""The facts that a process keeps: those whose answer it owns.

Every fact is asked both ways and kept by the owner of each answer, so that what tells a candidate from a
known answer lies where the candidate does. Sorted by answer, the facts of a process are a range of all: the
place of a fact among them does not depend on the number of processes.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from golde.data.describe import averages, categories
from golde.distributed.world import World
from golde.training.sampling import directed


class FactShare(NamedTuple):
    """Directed facts ``first..first + n`` of ``total``, by answer, then entity, then direction."""

    facts: Tensor  # (3, n): entity, direction, answer
    first: int
    total: int

    @classmethod
    def of(cls, triples: Tensor, entities: int, relations: int, world: World) -> FactShare:
        """The share of this process in the facts that all of them have together, each (n, 3) of its own."""
        asked = directed(triples, relations).T.contiguous()  # (2n, 3)
        owner = owner_of(asked[:, 2], entities, world)
        order = owner.argsort(stable=True)
        parcels = asked[order].split(owner.bincount(minlength=world.size).tolist())
        facts = torch.cat(world.deliver(parcels)).T
        for key in (1, 0, 2):
            facts = facts[:, facts[key].argsort(stable=True)]
        counts = world.collect(torch.tensor(facts.shape[1]))
        first, total = int(counts[: world.rank].sum()), int(counts.sum())
        return cls(facts.contiguous(), first, total)


def owner_of(row: Tensor, total: int, world: World) -> Tensor:
    """Which process owns each of some rows of a table of ``total``."""
    starts = torch.tensor([rank * total // world.size for rank in range(1, world.size)])
    return torch.searchsorted(starts, row.contiguous(), right=True)


def categories_of(train: FactShare, relations: int, world: World) -> list[str]:
    """``golde.data.describe.relation_categories``, of facts that each process has a share of.

    All facts with an answer are with one process: its pairs of answer and direction are in no other.
    """
    _, direction, answer = train.facts
    pairs = torch.unique(answer * 2 * relations + direction) % (2 * relations)
    counts = torch.stack([d.bincount(minlength=2 * relations) for d in (direction, pairs)])
    facts, ends = world.add_up(counts).numpy()
    facts, tails, heads = facts[:relations], ends[:relations], ends[relations:]
    return categories(averages(facts, heads), averages(facts, tails))
