"""Training facts, indexed for walking from one to the next."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from golde.data.graph import KnowledgeGraph
from golde.data.known import KnownFacts, in_turn


class Paths(NamedTuple):
    """Walks of two facts, ``(x, first, y)`` then ``(y, second, z)``."""

    which: Tensor  # (n,) the pair (x, z) each belongs to
    first: Tensor
    middle: Tensor
    second: Tensor


class Links:
    """The training facts; those from an entity to itself apart, for which every rule holds by accident."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self.entities, self.relations = len(graph.entities), len(graph.relations)
        loop = graph.train[:, 0] == graph.train[:, 2]
        self._loops, triples = graph.train[loop], graph.train[~loop]
        self.known = KnownFacts(triples, self.entities, self.relations)
        order = triples[:, 1].argsort(stable=True)
        self.triples = triples[order]
        self._starts = torch.searchsorted(
            self.triples[:, 1].contiguous(), torch.arange(self.relations + 1)
        )
        self._in_order = triples
        head, _, tail = triples.unbind(1)
        self._forward = torch.sort(head * self.entities + tail)  # codes, and whose they are
        self._backward = torch.sort(tail * self.entities + head)

    def facts(self, relation: int) -> Tensor:
        """The facts of one relation but those of an entity with itself, (n, 3)."""
        return self.triples[self._starts[relation] : self._starts[relation + 1]]

    def about(self, entity: int) -> Tensor:
        """The facts about one entity in the order of the graph, then those with itself, (n, 3)."""
        one = torch.tensor([entity])
        places = [
            which[slice(*map(int, self._range(codes, one)))]
            for codes, which in (self._forward, self._backward)
        ]
        facts = self._in_order[torch.cat(places).sort().values]
        return torch.cat([facts, self._loops[self._loops[:, 0] == entity]])

    def of(self, relation: int) -> Tensor:
        """The facts of one relation in the order of the graph, then its facts of one with itself, (n, 3)."""
        return torch.cat([self.facts(relation), self._loops[self._loops[:, 1] == relation]])

    def between(self, x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """Every relation that leads from x to z, as (position of the pair, relation) pairs."""
        codes, fact = self._forward
        code = (x * self.entities + z).contiguous()
        which, place = in_turn(
            torch.searchsorted(codes, code), torch.searchsorted(codes, code, right=True)
        )
        return which, self._in_order[fact[place], 1]

    def paths(self, x: Tensor, z: Tensor, most: int) -> Paths:
        """Every walk of two facts from x to z, found from the end with fewer facts.

        Where that has more than ``most`` facts, so many of them are looked at, evenly spread.
        """
        leaving, entering = self._range(self._forward[0], x), self._range(self._backward[0], z)
        from_x = leaving[1] - leaving[0] <= entering[1] - entering[0]
        found = []
        for chosen, (codes, fact), (start, stop) in (
            (from_x, self._forward, leaving),
            (~from_x, self._backward, entering),
        ):
            pairs = chosen.nonzero()[:, 0]
            near, place = _spread(start[pairs], stop[pairs], most)
            near = pairs[near]
            middle, step = codes[place] % self.entities, self._in_order[fact[place], 1]
            ends = (middle, z[near]) if chosen is from_x else (x[near], middle)
            at, other = self.between(*ends)
            steps = (step[at], other) if chosen is from_x else (other, step[at])
            found.append((near[at], steps[0], middle[at], steps[1]))
        return Paths(*(torch.cat(column) for column in zip(*found, strict=True)))

    def joined(
        self, first: int, second: int, most: int, generator: torch.Generator
    ) -> tuple[Tensor, Tensor, int]:
        """The ends x and z ≠ x of walks along two relations, each pair once, and how many walks there are.

        All of them, or those of ``most`` walks drawn at random.
        """
        x, _, y = self.facts(first).unbind(1)
        start, stop, base, codes = self.known.ranges(y, torch.tensor(second))
        ends = (stop - start).cumsum(0)
        total = int(ends[-1]) if len(ends) else 0
        number = torch.arange(total)
        if total > most:
            number = torch.randint(total, (most,), generator=generator)
        fact = torch.searchsorted(ends, number, right=True)
        place = start[fact] + number - (ends - (stop - start))[fact]
        pair = torch.unique(x[fact] * self.entities + codes[place] - base[fact])
        x, z = pair // self.entities, pair % self.entities
        return x[x != z], z[x != z], total

    def _range(self, codes: Tensor, entity: Tensor) -> tuple[Tensor, Tensor]:
        """Where the facts of each entity begin and end."""
        first = entity * self.entities
        return torch.searchsorted(codes, first), torch.searchsorted(codes, first + self.entities)


def _spread(start: Tensor, stop: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """``in_turn``, with at most so many of each range, evenly spread."""
    size = stop - start
    kept = size.clamp(max=most)
    which, number = in_turn(torch.zeros_like(kept), kept)
    return which, start[which] + number * size[which] // kept[which]
