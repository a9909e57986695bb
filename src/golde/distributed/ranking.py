"""Filtered ranks where every process scores the candidates it owns.

Of a block of queries each process finds the answers it owns and counts among its candidates: the largest of
the true scores is the true score, and the sums of the counts are the counts.
"""

from __future__ import annotations

import torch
from torch import Tensor

from golde.data.known import KnownFacts
from golde.distributed.world import World
from golde.evaluation.ranking import (
    Asked,
    Block,
    Namer,
    NonFiniteScoreError,
    Ranks,
    block_shape,
    spans_of,
    usual_memory_mb,
)
from golde.models import Model


class ElsewhereError(NonFiniteScoreError):
    """Another process found a score that is not finite."""

    def __init__(self) -> None:
        super().__init__("a query", "of another process", torch.nan)


@torch.no_grad()
def rank_sharded(
    model: Model,
    entity: Tensor,
    direction: Tensor,
    answer: Tensor,
    filters: KnownFacts,
    world: World,
    *,
    entities: int,
    name: Namer,
    self_filter: bool = False,
    memory_mb: float | None = None,
) -> Ranks:
    """The ranks of queries that all processes ask, as ``rank_queries``.

    ``model`` has the rows of this process, ``filters`` the known facts whose answer it owns.
    """
    memory_mb = usual_memory_mb(entity.device) if memory_mb is None else memory_mb
    rows, columns = block_shape(entities, memory_mb)
    owned = world.share(entities)
    order = torch.argsort(direction * entities + entity, stable=True)
    ids = entity[order], direction[order], answer[order]
    asked = Asked(*ids, filters, entities, self_filter)
    scratch = torch.empty(min(rows, len(asked)) * columns, device=entity.device)
    found = torch.empty(3, len(asked), dtype=torch.int64, device=entity.device)
    for start in range(0, len(asked), rows):
        some = asked[start : start + rows]
        block = Block(_Scorer(model, some, owned, world), some, spans_of(owned, columns), name)
        counts, left_out = _counted(block, some, scratch, world)
        found[:, start : start + rows] = some.outcome(counts, left_out)
    better, ties, candidates = torch.empty_like(found).index_copy_(1, order, found).cpu()
    return Ranks(entity.cpu(), direction.cpu(), answer.cpu(), better, ties, candidates)


def _counted(block: Block, asked: Asked, scratch: Tensor, world: World) -> tuple[Tensor, Tensor]:
    """What all processes count together. One that fails says so before any waits for its counts."""
    failed: NonFiniteScoreError | None = None
    truth = torch.full(asked.answer.shape, -torch.inf, device=asked.answer.device)
    counts = torch.zeros(2, len(asked), dtype=torch.int64, device=asked.answer.device)
    try:
        truth = block.truth()
    except NonFiniteScoreError as error:
        failed = error
    truth = world.collect(truth.double()).amax(0)  # whatever type a process without candidates has
    try:
        if failed is None:
            counts = block.counts(truth, scratch)
    except NonFiniteScoreError as error:
        failed = error
    failures = torch.full_like(counts[:1], failed is not None)
    told = world.add_up(torch.cat((counts, asked.left_out(), failures)))
    if failed is not None:
        raise failed
    if told[-1].any():
        raise ElsewhereError
    return told[:2], told[2:5]


class _Scorer:
    """Scores of the distinct queries of a block against candidates that this process owns."""

    def __init__(self, model: Model, asked: Asked, owned: range, world: World) -> None:
        entity, self.direction, _ = asked.distinct()
        here = ((entity >= owned.start) & (entity < owned.stop)).nonzero()[:, 0]
        rows = entity[here] - owned.start
        mine = model.with_biases(model.entity[rows], rows)
        heads = mine.new_zeros(len(entity), mine.shape[1]).index_copy_(0, here, mine)
        self.model, self.owned, self.heads = model, owned, world.add_up(heads)

    def __call__(self, entity: Tensor, direction: Tensor, start: int, stop: int) -> Tensor:
        ids = torch.arange(start, stop, device=entity.device)
        rows = ids - self.owned.start
        candidates = self.model.with_biases(self.model.entity[rows], rows)
        loops = ids == entity.unsqueeze(1)
        return self.model.score_between(self.heads, candidates, direction, loops)
