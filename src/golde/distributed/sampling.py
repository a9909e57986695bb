"""Batches that all processes agree on, and of their negatives those that each owns.

Which facts are in a batch and which entities are drawn follows from (seed, step) alone. A fact is told to the
others by the process that keeps it, and a candidate is compared with known facts by the one that owns it.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import torch
from torch import Tensor

from golde.data.known import KnownFacts
from golde.distributed.facts import FactShare
from golde.distributed.world import World
from golde.kernels.counter import permuted, random_below, random_bits
from golde.training.sampling import NEGATIVES, SHUFFLING, Batch, Candidates


class ShardDraw(NamedTuple):
    """All that a step draws, as one process sees it."""

    batch: Batch  # the same for all
    candidates: Candidates  # those it owns, (n,), masked (B, n)
    own_masked: Tensor  # (B,): the query's own entity is a known answer, or another's
    heads: Tensor  # (h,): queries whose entity it owns
    answers: Tensor  # (a,): queries whose answer it owns
    rows: Tensor  # (h + a + n,): which of its rows the step needs, in that order


class ShardSampler:
    """Draws the batch and the negatives of the step that ``seek`` was told."""

    def __init__(
        self,
        share: FactShare,
        entities: int,
        relations: int,
        world: World,
        *,
        batch_size: int,
        negatives: int,
        answers: bool = False,
        subsampling: bool,
        seed: int,
        device: torch.device,
    ) -> None:
        self.facts, self.first, self.total = share.facts.to(device), share.first, share.total
        entity, direction, answer = self.facts
        self.known = KnownFacts.of_queries(entity, direction, answer, entities, relations)
        self.entities, self.relations, self.world = entities, relations, world
        self.owned = world.share(entities)
        self.batch_size = min(batch_size, self.total)
        self.takes_all = negatives == 0 or negatives >= entities
        self.negatives, self.answers = negatives, answers and not self.takes_all
        self.subsampling, self.seed, self.device = subsampling, seed, device
        self.step = 0

    def seek(self, step: int) -> Self:
        """Draw for step ``step`` from now on."""
        self.step = step
        return self

    def draw(self) -> ShardDraw:
        """What the step needs of this process; all of them draw at the same time."""
        batch, loop = self._batch()
        candidates = self._candidates(batch)
        heads, answers = (
            self._is_owned(ids).nonzero()[:, 0] for ids in (batch.entity, batch.answer)
        )
        ids = torch.cat((batch.entity[heads], batch.answer[answers], candidates.entity))
        masked = loop | ~self._is_owned(batch.entity)
        return ShardDraw(batch, candidates, masked, heads, answers, ids - self.owned.start)

    def _batch(self) -> tuple[Batch, Tensor]:
        """The batch, and which of its queries are known to lead to their own entity."""
        place = self.step * self.batch_size + torch.arange(self.batch_size, device=self.device)
        epoch, index = place // self.total, place % self.total
        local = permuted(self.total, self.seed, SHUFFLING, epoch, index) - self.first
        kept = ((local >= 0) & (local < self.facts.shape[1])).nonzero()[:, 0]
        facts = self.facts.new_zeros(3, self.batch_size)
        facts[:, kept] = self.facts[:, local[kept]]
        entity, direction, answer = self.world.add_up(facts)
        opposite = (direction + self.relations) % (2 * self.relations)
        counts = self.known.counts(entity, direction) + self.known.counts(answer, opposite)
        counts = self.world.add_up(counts) if self.subsampling else torch.zeros_like(counts)
        weight = (
            (counts + 6).float().cpu().rsqrt().to(self.device)
        )  # devices round roots differently
        weight = weight / weight.sum(dtype=torch.float64)
        loop = self.known.contains(entity, direction, entity)
        return Batch(entity, direction, answer, weight), loop

    def _candidates(self, batch: Batch) -> Candidates:
        """Of the shared negatives, drawn alike by all, those that this process owns."""
        if self.takes_all:
            chosen = torch.arange(self.owned.start, self.owned.stop, device=self.device)
        else:
            place = torch.arange(self.negatives, device=self.device)
            bits = random_bits(self.seed, NEGATIVES, self.step * self.negatives + place)
            chosen = random_below(self.entities, bits)
            chosen = torch.cat((chosen, batch.answer)) if self.answers else chosen
            chosen = chosen[self._is_owned(chosen)].unique()
        rows = batch.entity.unsqueeze(1), batch.direction.unsqueeze(1)
        return Candidates(chosen, self.known.contains(*rows, chosen))

    def _is_owned(self, entity: Tensor) -> Tensor:
        return (entity >= self.owned.start) & (entity < self.owned.stop)
