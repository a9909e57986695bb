"""Batches and negatives as pure functions of (seed, step), so that resuming needs no random state.

On a GPU nothing here waits for the device and every shape is fixed, so that a step can be captured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import torch
from torch import Tensor

from golde.data.known import KnownFacts, in_turn
from golde.kernels.counter import random_below, random_bits, stream_start
from golde.kernels.triton.support import fuses

if TYPE_CHECKING:
    from golde.kernels.triton.draw import Source

SHUFFLING, NEGATIVES = 0, 1
"""The streams of random numbers."""

LEFT_OUT = 64
"""Repeated draws are left out so many at a time: code is compiled anew for some sizes, so there are few."""


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
    entities: Tensor  # (2B + N,), whose rows the step needs: batch.entity, batch.answer, candidates.entity


class _Asked(NamedTuple):
    """Queries by their answer."""

    keys: Tensor  # (2n,)
    offsets: Tensor  # (E + 1,): where those of an answer begin


def directed(triples: Tensor, relations: int) -> Tensor:
    """Every fact asked both ways: columns entity, direction, answer as (3, 2n)."""
    head, relation, tail = triples.unbind(1)
    asks_tail = torch.stack((head, relation, tail))
    asks_head = torch.stack((tail, relation + relations, head))
    return torch.cat((asks_tail, asks_head), 1)


class Sampler:
    """Draws the batch and the negatives of the step that ``seek`` was told.

    Batches are made of the facts ``asked``, all of ``train`` unless told otherwise; no fact of ``train`` is
    a negative.
    """

    def __init__(
        self,
        train: Tensor,
        entities: int,
        relations: int,
        *,
        asked: Tensor | None = None,
        batch_size: int,
        negatives: int,
        answers: bool = False,
        subsampling: bool,
        seed: int,
        device: torch.device,
    ) -> None:
        everything, known = directed(train, relations), KnownFacts(train, entities, relations)
        facts = everything if asked is None else directed(asked, relations)
        total = facts.shape[1]
        # Before the move: devices round roots differently.
        weights = _subsampling_weights(facts, known) if subsampling else torch.ones(total)
        self.facts, self.known = facts.to(device), known.to(device)
        self.weights = weights.to(device)  # (2n,)
        self.entities, self.relations = entities, relations
        self.seed, self.device = seed, device
        self.fixed_size = device.type != "cpu"  # of every shape, so that a step can be captured
        self.batch_size = min(batch_size, total)
        self.takes_all = negatives == 0 or negatives >= entities
        self.uniform = entities if self.takes_all else negatives
        self.answers = answers and not self.takes_all  # else they are there already
        self.negatives = self.uniform + self.answers * self.batch_size
        self.step = torch.zeros((), dtype=torch.int64, device=device)
        self._epoch = -1
        # The order of the epoch, and as much of the next as a batch can reach into.
        self._order = torch.zeros(total + self.batch_size, dtype=torch.int64, device=device)
        self._source = self._kernel_source() if fuses(self.weights) else None
        self._asked = None if self.fixed_size else self._by_answer(everything)
        self.seek(0)

    def seek(self, step: int) -> Self:
        """Draw for step ``step`` from now on."""
        total = self.facts.shape[1]
        epoch = step * self.batch_size // total
        if epoch != self._epoch:
            self._order[:total] = self._permutation(epoch)
            self._order[total:] = self._permutation(epoch + 1)[: self.batch_size]
            self._epoch = epoch
        self.step.fill_(step)
        return self

    def draw(self) -> Draw:
        """Everything at once; as kernels, which draw the same bit for bit, where there are any."""
        if self._source is not None:
            return self._fused_draw(self._source)
        batch = self.batch()
        candidates = self.candidates(batch)
        entities = torch.cat((batch.entity, batch.answer, candidates.entity))
        return Draw(batch, candidates, self.own_masked(batch), entities)

    def batch(self) -> Batch:
        """The next batch of an endless stream of reshuffled epochs."""
        begin = self.step * self.batch_size % self.facts.shape[1]
        rows = self._order[begin + torch.arange(self.batch_size, device=self.device)]
        entity, direction, answer = self.facts[:, rows]
        weight = self.weights[rows]
        # In double precision the sum is exact, so that no device finds another one.
        return Batch(entity, direction, answer, weight / weight.sum(dtype=torch.float64))

    def candidates(self, batch: Batch) -> Candidates:
        """The shared negatives of the step: all entities when as many are wanted, else uniform ones.

        If asked for, the answers of the batch are among them. One drawn several times counts once: its
        repeats are masked or, where sizes may vary, left out.
        """
        if self.takes_all:
            chosen = torch.arange(self.entities, device=self.device)
            return Candidates(chosen, self._are_known(batch, chosen))
        place = torch.arange(self.uniform, device=self.device)
        bits = random_bits(self.seed, NEGATIVES, self.step * self.uniform + place)
        chosen = random_below(self.entities, bits)
        if self.answers:
            chosen = torch.cat((chosen, batch.answer))
        chosen = chosen.sort().values
        repeated = torch.zeros_like(chosen, dtype=torch.bool)
        repeated[1:] = chosen[1:] == chosen[:-1]
        if not self.fixed_size:
            again = repeated.nonzero()[:, 0]
            kept = torch.ones_like(repeated)
            kept[again[: len(again) // LEFT_OUT * LEFT_OUT]] = False
            chosen, repeated = chosen[kept], repeated[kept]
        return Candidates(chosen, self._are_known(batch, chosen) | repeated)

    def own_masked(self, batch: Batch) -> Tensor:
        """Whether each query's own entity is a known answer, (B,)."""
        return self.known.contains(batch.entity, batch.direction, batch.entity)

    def _kernel_source(self) -> Source:
        """What the kernels look up at every step instead of searching for it."""
        from golde.kernels.triton.draw import Source

        entity, direction, _ = self.facts
        place = self.known.places(entity, direction)
        loop = self.known.contains(entity, direction, entity)
        return Source(self.facts, self.weights, place, loop, self._order, self.step)

    def _fused_draw(self, source: Source) -> Draw:
        from golde.kernels.triton.draw import draw, known_pairs

        B, N, known = self.batch_size, self.negatives, self.known
        start = stream_start(self.seed, NEGATIVES)
        drawn = draw(source, B, self.uniform, self.entities, start, answers=self.answers)
        entity, answer, chosen = drawn.entities.split([B, B, N])
        masked = known_pairs(drawn.place, known.offsets, known.codes, known.stride, chosen)
        batch = Batch(entity, drawn.direction, answer, drawn.weight)
        return Draw(batch, Candidates(chosen, masked), drawn.own_masked, drawn.entities)

    def _are_known(self, batch: Batch, chosen: Tensor) -> Tensor:
        """Which candidates are known answers of which queries, (B, N)."""
        if self._asked is None:  # a search a pair: more work, but of a size known beforehand
            rows = batch.entity.unsqueeze(1), batch.direction.unsqueeze(1)
            return self.known.contains(*rows, chosen)
        masked = torch.zeros(len(batch.entity), len(chosen), dtype=torch.bool)
        if self.takes_all:
            row, column = self.known.answers(batch.entity, batch.direction)
        else:
            row, column = self._known_pairs(self._asked, batch, chosen)
        masked[row, column] = True
        return masked

    def _by_answer(self, facts: Tensor) -> _Asked:
        entity, direction, answer = facts
        answer, order = answer.sort()
        offsets = torch.searchsorted(answer, torch.arange(self.entities + 1))
        return _Asked(self._key(entity, direction)[order], offsets)

    def _known_pairs(self, asked: _Asked, batch: Batch, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """Row and column of every candidate that is a known answer of a query.

        Asked of the candidates, as a few entities are in far fewer facts than a batch has answers.
        """
        column, fact = in_turn(asked.offsets[chosen], asked.offsets[chosen + 1])
        key = asked.keys[fact]
        keys, row = self._key(batch.entity, batch.direction).sort()
        first, past = (torch.searchsorted(keys, key, right=right) for right in (False, True))
        pair, place = in_turn(first, past)
        return row[place], column[pair]

    def _key(self, entity: Tensor, direction: Tensor) -> Tensor:
        return entity * (2 * self.relations) + direction

    def _permutation(self, epoch: int) -> Tensor:
        total = self.facts.shape[1]
        place = torch.arange(total, device=self.device)
        return random_bits(self.seed, SHUFFLING, epoch * total + place).argsort()


def _subsampling_weights(facts: Tensor, known: KnownFacts) -> Tensor:
    """``1/√(n(h,r) + n(t,r⁻¹) + 6)`` for every directed fact."""
    entity, direction, answer = facts
    opposite = (direction + known.relations) % (2 * known.relations)
    count = known.counts(entity, direction) + known.counts(answer, opposite)
    return (count + 6).float().rsqrt()
