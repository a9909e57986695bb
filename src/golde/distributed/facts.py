"""The facts that a process keeps: those whose answer it owns.

Every fact is asked both ways and kept by the owner of each answer, so that what tells a candidate from a
known answer lies where the candidate does. Sorted by answer, the facts of a process are a range of all: the
place of a fact among them does not depend on the number of processes.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from golde.distributed.world import World
from golde.training.sampling import directed


class FactShare(NamedTuple):
    """Directed facts ``first..first + n`` of ``total``, by answer, then entity, then direction."""

    facts: Tensor  # (3, n): entity, direction, answer
    first: int
    total: int

    @classmethod
    def of(cls, triples: Tensor, entities: int, relations: int, world: World) -> FactShare:
        """The share of this process in triples that all of them have."""
        facts, owned = directed(triples, relations), world.share(entities)
        facts = facts[:, (facts[2] >= owned.start) & (facts[2] < owned.stop)]
        for key in (1, 0, 2):
            facts = facts[:, facts[key].argsort(stable=True)]
        counts = world.collect(torch.tensor(facts.shape[1]))
        first, total = int(counts[: world.rank].sum()), int(counts.sum())
        return cls(facts, first, total)
