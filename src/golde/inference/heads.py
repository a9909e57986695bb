"""Which heads a relation is asked of when facts are sought that a graph lacks.

A *role* is a side of a relation, and its players are the entities that facts of any split show there. A role
leads to the relation r if at least a share s of its players head r:

    |players(role) ∩ heads(r)| ≥ s · |players(role)|

An entity is of the right kind for r if it plays a role that leads to r. The heads of r do: theirs is one.
Where r is (nearly) functional, with fewer than t tails a head, those that have a tail already are left out.
"""

from __future__ import annotations

import torch
from torch import Tensor

from golde.data.graph import KnowledgeGraph
from golde.data.known import in_turn
from golde.errors import GoldeError

RULES = ("kind", "known", "all")
"""Heads of the right kind that lack an answer, heads that the relation has, or all entities."""

SHARE = 0.5
"""s: no more, or a relation that half of its kind lack could never be filled."""

SEVERAL = 3.0
"""t, chosen on validation facts with s up to ½: ``benchmarks/complete_heads.py``."""


class Heads:
    """The heads to ask of each relation, by one of ``RULES``."""

    def __init__(
        self,
        graph: KnowledgeGraph,
        rule: str = "kind",
        *,
        share: float = SHARE,
        several: float = SEVERAL,
    ) -> None:
        if rule not in RULES:
            raise GoldeError(f"heads is {rule!r}; it must be one of {', '.join(RULES)}")
        self.rule, self.share, self.several = rule, share, several
        self.entities, self.relations = len(graph.entities), len(graph.relations)
        self._known = graph.known()
        key = self._known.keys[:-1]  # every entity with each of its roles, once
        entity, self._role = key // (2 * self.relations), key % (2 * self.relations)
        self._roles_of = torch.searchsorted(entity, torch.arange(self.entities + 1))
        order = self._role.argsort(stable=True)
        self._player = entity[order]
        self._players_of = torch.searchsorted(
            self._role[order], torch.arange(2 * self.relations + 1)
        )
        tails = self._known.offsets[: len(key) + 1].diff()  # of an entity that heads a relation
        facts = torch.zeros(2 * self.relations, dtype=torch.int64).index_add_(0, self._role, tails)
        self.functional = (facts < several * self._players_of.diff())[: self.relations]

    def of(self, relation: int) -> Tensor:
        """Ids of the heads to ask of a relation, ascending."""
        if self.rule == "all":
            return torch.arange(self.entities)
        heads = self._players(torch.tensor([relation]))
        if self.rule == "known":
            return heads
        asked: Tensor = self._players(self._leading_to(heads)).unique()
        if self.functional[relation]:
            asked = asked[self._known.counts(asked, torch.tensor(relation)) == 0]
        return asked

    def _leading_to(self, heads: Tensor) -> Tensor:
        """The roles of whose players a large enough share is among ``heads``."""
        _, place = in_turn(self._roles_of[heads], self._roles_of[heads + 1])
        shared = self._role[place].bincount(minlength=2 * self.relations)
        return ((shared > 0) & (shared >= self.share * self._players_of.diff())).nonzero()[:, 0]

    def _players(self, roles: Tensor) -> Tensor:
        """The players of some roles, one role after another."""
        _, place = in_turn(self._players_of[roles], self._players_of[roles + 1])
        return self._player[place]
