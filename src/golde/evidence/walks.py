"""Walks along training facts: where a few facts in a row lead from an entity, and by which relations.

The directions that a walk takes, one after another, are its *body*. A walk never takes the same fact twice
in a row, and facts from an entity to itself are left out. An entity with many facts says little about those
it joins: a walk counts 1 / log(1 + facts) for every entity that it passes, as in the index of Adamic and
Adar, and where there are very many facts it ends (``MOST_FACTS``). The *strength* of a body between two
entities is 1 + log(1 + what its walks count).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from golde.data.known import in_turn
from golde.errors import ConfigError

MOST_FACTS = (1 << 62, 1000, 300, 100)
"""Of an entity that a walk leaves by its first, second, … fact; with more of them it does not."""

WALKS_AT_ONCE = 1 << 21
"""Walks held at a time, with some 100 bytes for each; those of one query are never parted."""

MOST_WALKS = 1 << 22
"""Of one entity; where more of them leave it, they are shorter."""

_MOST_BODIES = 1 << 40


def check_hops(hops: int, relations: int) -> None:
    """Refuse walks of another length, and those whose bodies could not be numbered."""
    if type(hops) is not int or not 0 <= hops <= len(MOST_FACTS):
        raise ConfigError(
            f"evidence.hops is {hops!r}; it must be 1 to {len(MOST_FACTS)}, or 0 for no evidence"
        )
    base = 2 * relations + 1
    if base**hops > _MOST_BODIES:
        fewer = max(n for n in range(hops) if base**n <= _MOST_BODIES)
        raise ConfigError(
            f"evidence.hops is {hops}, too many for {relations} relations; take {fewer}"
        )


class Reached(NamedTuple):
    """Where walks from B queries lead: every query with every end and body once, in this order, (n,) each."""

    query: Tensor
    end: Tensor
    body: Tensor  # digits of base 2R + 1, one more than each direction
    strength: Tensor  # float32

    def only(self, which: Tensor) -> Reached:
        """The rows of a mask (n,)."""
        return Reached(*(column[which] for column in self))

    def pairs(self, entities: int) -> tuple[Tensor, Tensor, Tensor]:
        """Every query with every end once, (p,) each, and which of them each row is about, (n,)."""
        pair, row_of = torch.unique_consecutive(
            self.query * entities + self.end, return_inverse=True
        )
        return pair // entities, pair % entities, row_of


class Walks:
    """The training facts of a graph, to be walked both ways on the device that they are on."""

    def __init__(self, triples: Tensor, entities: int, relations: int, hops: int) -> None:
        self.entities, self.relations, self.hops = entities, relations, hops
        self.base = 2 * relations + 1
        check_hops(hops, relations)
        self.triples = triples
        self.unmentioned = torch.ones(entities, dtype=torch.bool, device=triples.device)
        """Which entities no training fact is about, (E,)."""
        self.unmentioned[triples[:, [0, 2]].flatten()] = False
        triples = triples[triples[:, 0] != triples[:, 2]]
        self.facts = triples  # (T, 3) those that are walked
        head, relation, tail = triples.unbind(1)
        start = torch.cat([head, tail])
        direction = torch.cat([relation, relation + relations])
        order = (start * (2 * relations) + direction).argsort(stable=True)
        self._end = torch.cat([tail, head])[order]
        self._direction = direction[order]
        self._fact = order % max(1, len(triples))
        start = start[order]
        self._first = torch.searchsorted(start, torch.arange(entities + 1, device=start.device))
        self._facts_of = self._first.diff()
        counts = torch.stack([self._count(start, n) for n in range(hops + 1)])  # (hops + 1, E)
        self._hops_of = (counts <= MOST_WALKS).sum(0) - 1
        self._walks_from = counts.gather(0, self._hops_of.unsqueeze(0))[0]
        weighed = self._walks_from.double() * self._facts_of
        self.a_query = int(weighed.sum() / max(1, len(start)))
        """How many walks the entity of a fact has on average."""

    @property
    def device(self) -> torch.device:
        """Where the facts are, and all that is asked of them."""
        return self.triples.device

    def _count(self, start: Tensor, hops: int) -> Tensor:
        """How many walks of up to so many facts leave each entity, (E,), those counted that would go back."""
        onward = torch.zeros_like(self._facts_of)  # walks of the facts that are left
        for most in reversed(MOST_FACTS[:hops]):
            leads = torch.zeros_like(onward).index_add_(0, start, 1 + onward[self._end])
            onward = leads * (self._facts_of <= most)
        return onward

    def batches(self, entity: Tensor) -> Iterator[slice]:
        """Queries about these entities in a row, as many at a time as memory has room for."""
        room = self._walks_from[entity].cumsum(0).cpu()
        begin = 0
        while begin < len(entity):
            before = int(room[begin - 1]) if begin else 0
            end = int(torch.searchsorted(room, before + WALKS_AT_ONCE, right=True))
            yield slice(begin, max(end, begin + 1))
            begin = max(end, begin + 1)

    def reached(self, entity: Tensor, without: Tensor | None = None) -> Reached:
        """Where walks from entities (B,) lead, each without taking one fact (B,), −1 for none."""
        query = torch.arange(len(entity), device=self.device)
        place, body = entity, torch.zeros_like(query)
        counts = torch.ones_like(
            query, dtype=torch.float64
        )  # so that the order of a sum does not show
        without = torch.full_like(query, -1) if without is None else without
        last = torch.full_like(query, -1)
        found = []
        for hop, most in enumerate(MOST_FACTS[: self.hops]):
            first, number = self._first[place], self._facts_of[place]
            goes_on = (number <= most) & (self._hops_of[entity[query]] > hop)
            walk, step = in_turn(first, first + number * goes_on)
            fact = self._fact[step]
            taken = (fact != without[query[walk]]) & (fact != last[walk])
            walk, step, last = walk[taken], step[taken], fact[taken]
            if hop:
                counts = counts / number.log1p()  # of the entity that it passes
            query, place, counts = query[walk], self._end[step], counts[walk]
            body = body[walk] * self.base + self._direction[step] + 1
            found.append((query, place, body, counts))
        query, place, body, counts = (torch.cat(column) for column in zip(*found, strict=True))
        pair, row = torch.unique(query * self.entities + place, return_inverse=True)
        code, row = torch.unique(row * self.base**self.hops + body, return_inverse=True)
        counts = torch.zeros_like(code, dtype=torch.float64).index_add_(0, row, counts)
        row, body = code // self.base**self.hops, code % self.base**self.hops
        strength = 1 + counts.log1p().float()
        return Reached(pair[row] // self.entities, pair[row] % self.entities, body, strength)

    def directions(self, body: int) -> list[int]:
        """The directions of a body, in the order they are walked."""
        found = []
        while body:
            body, digit = divmod(body, self.base)
            found.append(digit - 1)
        return found[::-1]
