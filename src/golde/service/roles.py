"""Which roles fit an entity. A *role* is a side of a relation.

One fits an entity if at least half of the players of a role that the entity plays play it too:

    share(role) = max over roles q of the entity:  |players(q) ∩ players(role)| / |players(q)|
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from golde.data.graph import KnowledgeGraph
from golde.data.known import in_turn

SHARE = 0.5
SINGLE = 1.5
"""Where players of a role have fewer answers on average, one is enough: who has it lacks nothing."""
_KEPT = 1024  # roles q whose shares are remembered


class Role(NamedTuple):
    """A role that fits an entity."""

    relation: int
    missing: Literal["head", "tail"]
    share: float
    known: int


class Roles:
    """Who plays which roles in a graph; what is the same for all entities is worked out once.

    Role d < R is that of the heads of relation d, whose tails are missing; d ≥ R that of the tails of d − R.
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._known, self._relations = graph.known(), len(graph.relations)
        count = 2 * self._relations
        key = self._known.keys[:-1]  # every entity with each of its roles, once
        owner, role = key // count, key % count
        answers = self._known.offsets[: len(key) + 1].diff()
        self._players = role.bincount(minlength=count)
        self._facts = torch.zeros(count, dtype=torch.int64).index_add_(0, role, answers)
        self._role = role.to(torch.int32)
        self._start = torch.searchsorted(owner, torch.arange(len(graph.entities) + 1))
        order = role.argsort(stable=True)
        self._by_role = owner[order].to(torch.int32).split(self._players.tolist())
        self._shares = lru_cache(_KEPT)(self._also_played)

    def fitting(self, entity: int, *, filled: bool = False) -> list[Role]:
        """The roles that fit an entity, the most fitting first; what lacks nothing only if ``filled``."""
        R = self._relations
        own = slice(int(self._start[entity]), int(self._start[entity + 1]))
        played = self._role[own].long()
        answers = self._known.offsets[own.start : own.stop + 1].diff()
        has = torch.zeros(2 * R, dtype=torch.int64).index_add_(0, played, answers)
        share = torch.zeros(2 * R)
        for one in played.tolist():
            share = torch.maximum(share, self._shares(one))
        fits = share >= SHARE
        if not filled:
            fits &= ~((has > 0) & (self._facts < SINGLE * self._players))
        found = fits.nonzero()[:, 0]
        order = found[share[found].argsort(descending=True, stable=True)].tolist()
        return [
            Role(i % R, "tail" if i < R else "head", float(share[i]), int(has[i])) for i in order
        ]

    def _also_played(self, role: int) -> Tensor:
        """The share of a role's players that play each role, (2R,)."""
        players = self._by_role[role].long()
        _, place = in_turn(self._start[players], self._start[players + 1])
        return self._role[place].bincount(minlength=2 * self._relations) / len(players)
