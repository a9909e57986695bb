"""Batches and negatives as pure functions of (seed, step), so that resuming needs no random state."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from golde.data.known import KnownFacts


class Batch(NamedTuple):
    """Facts as queries with their answer, and how much each counts (weights add up to one)."""

    entity: Tensor  # (B,)
    direction: Tensor  # (B,)
    answer: Tensor  # (B,)
    weight: Tensor  # (B,)


class Candidates(NamedTuple):
    """Negatives shared by a batch, and which of them each query must not be trained against."""

    entity: Tensor  # (N,), sorted
    masked: Tensor  # (B, N): a known fact, or a repeated draw


def directed(triples: Tensor, relations: int) -> Tensor:
    """Every fact asked both ways: columns entity, direction, answer as (3, 2n)."""
    head, relation, tail = triples.unbind(1)
    asks_tail = torch.stack((head, relation, tail))
    asks_head = torch.stack((tail, relation + relations, head))
    return torch.cat((asks_tail, asks_head), 1)


class Sampler:
    """Draws the batch and the negatives of any step."""

    def __init__(
        self,
        train: Tensor,
        entities: int,
        relations: int,
        *,
        batch_size: int,
        negatives: int,
        subsampling: bool,
        seed: int,
        device: torch.device,
    ) -> None:
        facts = directed(train, relations)
        self.known = KnownFacts(train, entities, relations).to(device)
        self.facts = facts.to(device)
        self.entities, self.relations = entities, relations
        self.seed, self.device = seed, device
        answer, order = self.facts[2].sort()
        self.asked = self._key(self.facts[0], self.facts[1])[order]  # (2n,) queries by their answer
        bounds = torch.arange(entities + 1, device=device)
        self.offsets = torch.searchsorted(answer, bounds)  # (E + 1,) where those of an answer begin
        self.batch_size = min(batch_size, facts.shape[1])
        self.takes_all = negatives == 0 or negatives >= entities
        self.negatives = entities if self.takes_all else negatives
        self.weights = self._subsampling_weights(relations) if subsampling else None
        self._epoch, self._order = -1, torch.empty(0, dtype=torch.int64, device=device)

    def batch(self, step: int) -> Batch:
        """Batch number ``step`` of an endless stream of reshuffled epochs."""
        total = self.facts.shape[1]
        position = step * self.batch_size
        pieces, wanted = [], self.batch_size
        while wanted:
            epoch, offset = divmod(position, total)
            piece = self._permutation(epoch)[offset : offset + wanted]
            pieces.append(piece)
            position, wanted = position + len(piece), wanted - len(piece)
        rows = torch.cat(pieces)
        entity, direction, answer = self.facts[:, rows]
        if self.weights is None:
            weight = torch.full((len(rows),), 1.0 / len(rows), device=self.device)
        else:
            weight = self.weights[rows]
            weight = weight / weight.sum()
        return Batch(entity, direction, answer, weight)

    def candidates(self, step: int, batch: Batch) -> Candidates:
        """The shared negatives of step ``step``: uniform, or all entities when as many are wanted."""
        if self.takes_all:
            chosen = torch.arange(self.entities, device=self.device)
            repeated = torch.zeros(self.entities, dtype=torch.bool, device=self.device)
            row, column = self.known.answers(batch.entity, batch.direction)
        else:
            generator = self._generator(1, step)
            drawn = torch.randint(self.entities, (self.negatives,), generator=generator)
            chosen = drawn.sort().values.to(self.device)
            repeated = torch.zeros(self.negatives, dtype=torch.bool, device=self.device)
            repeated[1:] = chosen[1:] == chosen[:-1]
            row, column = self._known_pairs(batch, chosen)
        masked = repeated.expand(len(batch.entity), -1).clone()
        masked[row, column] = True
        return Candidates(chosen, masked)

    def own_masked(self, batch: Batch) -> Tensor:
        """Whether each query's own entity is a known answer, (B,)."""
        return self.known.contains(batch.entity, batch.direction, batch.entity)

    def _known_pairs(self, batch: Batch, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """Row and column of every candidate that is a known answer of a query.

        Asked of the candidates, as a few entities are in far fewer facts than a batch has answers.
        """
        column, fact = _ranges(self.offsets[chosen], self.offsets[chosen + 1])
        key = self.asked[fact]
        keys, row = self._key(batch.entity, batch.direction).sort()
        first, past = (torch.searchsorted(keys, key, right=right) for right in (False, True))
        pair, place = _ranges(first, past)
        return row[place], column[pair]

    def _key(self, entity: Tensor, direction: Tensor) -> Tensor:
        return entity * (2 * self.relations) + direction

    def _subsampling_weights(self, relations: int) -> Tensor:
        """``1/√(n(h,r) + n(t,r⁻¹) + 6)`` for every directed fact."""
        entity, direction, answer = self.facts
        opposite = (direction + relations) % (2 * relations)
        count = self.known.counts(entity, direction) + self.known.counts(answer, opposite)
        return (count + 6).float().rsqrt()

    def _permutation(self, epoch: int) -> Tensor:
        if epoch != self._epoch:
            generator, total = self._generator(0, epoch), self.facts.shape[1]
            self._order = torch.randperm(total, generator=generator).to(self.device)
            self._epoch = epoch
        return self._order

    def _generator(self, stream: int, counter: int) -> torch.Generator:
        """A fresh generator for one counter of one stream: nothing depends on what was drawn before."""
        mixed = (self.seed * 1_000_003 + stream) * 0x9E3779B97F4A7C15 + counter * 0xBF58476D1CE4E5B9
        return torch.Generator().manual_seed(mixed % 2**63)


def _ranges(start: Tensor, stop: Tensor) -> tuple[Tensor, Tensor]:
    """Every number of the ranges ``start[i]..stop[i]`` one after another, as (i, number) pairs."""
    size = stop - start
    which = torch.repeat_interleave(size)
    before = size.cumsum(0) - size
    return which, torch.arange(len(which), device=which.device) + (start - before)[which]
