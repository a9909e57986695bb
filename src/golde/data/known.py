"""Which facts are known, asked for a whole batch of queries at once."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

_LAST = torch.iinfo(torch.int64).max


class Ranges(NamedTuple):
    """Known answers of B queries: those of query b are ``codes[first[b]:last[b]] − base[b]``, in order."""

    first: Tensor  # (B,)
    last: Tensor  # (B,)
    base: Tensor  # (B,)
    codes: Tensor


class KnownFacts:
    """All known answers of every query, in three sorted arrays.

    A query is (entity, direction): direction d < R asks for the tails of (entity, d, ?), direction
    d >= R for the heads of (?, d - R, entity). Distinct queries are kept as sorted ``keys``
    ``entity * 2R + direction``; the answers of the i-th lie in ``codes[offsets[i]:offsets[i + 1]]``
    as ``i * (E + 1) + answer``, so that ``codes`` is sorted as a whole and one binary search tells
    whether a fact is known. One place more than there are entities keeps -1, should someone ask
    for it, from being the last answer of another query. Neither number can overflow: 2RE stays
    below 2^63 for any graph that fits a machine, and i is less than twice the number of facts.
    Both arrays end in the largest integer, so that a search always lands inside them, also in an
    empty graph.
    """

    def __init__(self, triples: Tensor, entities: int, relations: int) -> None:
        head, relation, tail = triples.unbind(1)
        asked = torch.cat([head, tail]), torch.cat([relation, relation + relations])
        self._index(*asked, torch.cat([tail, head]), entities, relations)

    @classmethod
    def of_queries(
        cls, entity: Tensor, direction: Tensor, answer: Tensor, entities: int, relations: int
    ) -> KnownFacts:
        """Of facts that are asked one way only, (n,) each."""
        known = object.__new__(cls)
        known._index(entity, direction, answer, entities, relations)
        return known

    def _index(
        self, entity: Tensor, direction: Tensor, answer: Tensor, entities: int, relations: int
    ) -> None:
        self.stride, self.relations = entities + 1, relations
        keys, row = torch.unique(self._key(entity, direction), return_inverse=True)  # (Q,), (n,)
        codes = torch.unique(row * self.stride + answer)  # (Z,)
        self.keys = torch.cat([keys, keys.new_tensor([_LAST])])  # (Q + 1,)
        self.codes = torch.cat([codes, codes.new_tensor([_LAST])])  # (Z + 1,)
        starts = torch.arange(len(keys) + 2, device=answer.device) * self.stride
        self.offsets = torch.searchsorted(self.codes, starts)  # (Q + 2,)

    def answers(self, entity: Tensor, direction: Tensor) -> tuple[Tensor, Tensor]:
        """Every known answer of a batch of queries, as (position in the batch, answer) pairs.

        Pairs come ordered by position and, within one, by answer.
        """
        first, last, base, codes = self.ranges(entity, direction)
        row, index = in_turn(first, last)
        return row, codes[index] - base[row]

    def contains(self, entity: Tensor, direction: Tensor, answer: Tensor) -> Tensor:
        """Whether each answer is known; the three arguments broadcast against each other."""
        place, found = self._find(entity, direction)
        code = (place * self.stride + answer).contiguous()
        return (self.codes[torch.searchsorted(self.codes, code)] == code) & found

    def counts(self, entity: Tensor, direction: Tensor) -> Tensor:
        """How many answers of each query are known."""
        return self._counts(*self._find(entity, direction))

    def about(self, entity: int) -> tuple[Tensor, Tensor]:
        """Direction and answer of every fact about one entity, by direction; of one with itself twice."""
        first = entity * 2 * self.relations
        start, stop = torch.searchsorted(
            self.keys, self.keys.new_tensor([first, first + 2 * self.relations])
        ).tolist()
        place, index = in_turn(self.offsets[start:stop], self.offsets[start + 1 : stop + 1])
        place += start
        return self.keys[place] - first, self.codes[index] - place * self.stride

    def ranges(self, entity: Tensor, direction: Tensor) -> Ranges:
        """The known answers of each query where they are, none of them copied."""
        place, found = self._find(entity, direction)
        first = self.offsets[place]
        last = first + self._counts(place, found)
        return Ranges(first, last, place * self.stride, self.codes)

    def places(self, entity: Tensor, direction: Tensor) -> Tensor:
        """Where each query stands, or would stand, among ``keys``."""
        return self._find(entity, direction)[0]

    def to(self, device: torch.device | str) -> KnownFacts:
        """The same index on another device."""
        moved = object.__new__(KnownFacts)
        moved.stride, moved.relations = self.stride, self.relations
        moved.keys, moved.codes = self.keys.to(device), self.codes.to(device)
        moved.offsets = self.offsets.to(device)
        return moved

    def _key(self, entity: Tensor, direction: Tensor) -> Tensor:
        return entity * (2 * self.relations) + direction

    def _find(self, entity: Tensor, direction: Tensor) -> tuple[Tensor, Tensor]:
        """Where each query is, or would be, among ``keys``, and whether it is there."""
        key = self._key(entity, direction).contiguous()
        place = torch.searchsorted(self.keys, key)
        return place, self.keys[place] == key

    def _counts(self, place: Tensor, found: Tensor) -> Tensor:
        return (self.offsets[place + 1] - self.offsets[place]) * found


def in_turn(start: Tensor, stop: Tensor) -> tuple[Tensor, Tensor]:
    """Every number of the ranges ``start[i]..stop[i]``, one range after another, as (i, number) pairs."""
    size = stop - start
    which = torch.repeat_interleave(size)
    before = size.cumsum(0) - size
    return which, torch.arange(len(which), device=which.device) + (start - before)[which]
