"""Batches and negatives as pure functions of (seed, step), so that resuming needs no random state.

On a GPU nothing here waits for the device and every shape is fixed, so that a step can be captured.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import torch
from torch import Tensor

from golde.data.known import KnownFacts
from golde.kernels.triton import has_triton
from golde.training.counter import random_below, random_bits


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


class Draw(NamedTuple):
    """All that a step draws."""

    batch: Batch
    candidates: Candidates
    own_masked: Tensor  # (B,): the query's own entity is a known answer

    @property
    def entities(self) -> Tensor:
        """Whose rows the step needs, (2B + N,): the entities asked about, their answers, the candidates."""
        return torch.cat((self.batch.entity, self.batch.answer, self.candidates.entity))


def directed(triples: Tensor, relations: int) -> Tensor:
    """Every fact asked both ways: columns entity, direction, answer as (3, 2n)."""
    head, relation, tail = triples.unbind(1)
    asks_tail = torch.stack((head, relation, tail))
    asks_head = torch.stack((tail, relation + relations, head))
    return torch.cat((asks_tail, asks_head), 1)


class Sampler:
    """Draws the batch and the negatives of the step that ``seek`` was told."""

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
        self.step = torch.zeros((), dtype=torch.int64, device=device)
        self._start = torch.zeros_like(self.step)  # where the batch begins in its epoch
        self._epoch = -1
        # The order of the epoch, and as much of the next as a batch can reach into.
        self._order = torch.zeros(
            facts.shape[1] + self.batch_size, dtype=torch.int64, device=device
        )
        self.seek(0)

    def seek(self, step: int) -> Self:
        """Draw for step ``step`` from now on."""
        total = self.facts.shape[1]
        epoch, start = divmod(step * self.batch_size, total)
        if epoch != self._epoch:
            self._order[:total] = self._permutation(epoch)
            self._order[total:] = self._permutation(epoch + 1)[: self.batch_size]
            self._epoch = epoch
        self.step.fill_(step)
        self._start.fill_(start)
        return self

    def draw(self) -> Draw:
        """Everything at once."""
        batch = self.batch()
        return Draw(batch, self.candidates(batch), self.own_masked(batch))

    def batch(self) -> Batch:
        """The next batch of an endless stream of reshuffled epochs."""
        rows = self._order[self._start + torch.arange(self.batch_size, device=self.device)]
        entity, direction, answer = self.facts[:, rows]
        if self.weights is None:
            weight = torch.full((len(rows),), 1.0 / len(rows), device=self.device)
        else:
            weight = self.weights[rows]
            weight = weight / weight.sum()
        return Batch(entity, direction, answer, weight)

    def candidates(self, batch: Batch) -> Candidates:
        """The shared negatives of the step: uniform, or all entities when as many are wanted."""
        if self.takes_all:
            chosen = torch.arange(self.entities, device=self.device)
            repeated = torch.zeros(self.entities, dtype=torch.bool, device=self.device)
        else:
            place = torch.arange(self.negatives, device=self.device)
            bits = random_bits(self.seed, 1, self.step * self.negatives + place)
            chosen = random_below(self.entities, bits).sort().values
            repeated = torch.zeros(self.negatives, dtype=torch.bool, device=self.device)
            repeated[1:] = chosen[1:] == chosen[:-1]
        return Candidates(chosen, self._masked(batch, chosen, repeated))

    def own_masked(self, batch: Batch) -> Tensor:
        """Whether each query's own entity is a known answer, (B,)."""
        return self.known.contains(batch.entity, batch.direction, batch.entity)

    def _masked(self, batch: Batch, chosen: Tensor, repeated: Tensor) -> Tensor:
        """Which candidates are repeated or known answers of which queries, (B, N)."""
        query = batch.entity, batch.direction
        if self.device.type == "cuda" and has_triton():
            from golde.kernels.triton.negatives import known_pairs

            return known_pairs(*self.known.ranges(*query), self.known.codes, chosen, repeated)
        if self.device.type != "cpu":  # a search a pair: more work, but of a size known beforehand
            rows = batch.entity.unsqueeze(1), batch.direction.unsqueeze(1)
            return self.known.contains(*rows, chosen) | repeated
        masked = repeated.expand(len(batch.entity), -1).clone()
        if self.takes_all:
            row, column = self.known.answers(*query)
        else:
            row, column = self._known_pairs(batch, chosen)
        masked[row, column] = True
        return masked

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
        total = self.facts.shape[1]
        place = torch.arange(total, device=self.device)
        return random_bits(self.seed, 0, epoch * total + place).argsort()


def _ranges(start: Tensor, stop: Tensor) -> tuple[Tensor, Tensor]:
    """Every number of the ranges ``start[i]..stop[i]`` one after another, as (i, number) pairs."""
    size = stop - start
    which = torch.repeat_interleave(size)
    before = size.cumsum(0) - size
    return which, torch.arange(len(which), device=which.device) + (start - before)[which]
