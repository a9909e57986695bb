"""Filtered ranks of queries, in bounded memory whatever the number of entities.

The score matrix (queries × entities) is visited in blocks. What a block contributes is a reduction
over its candidates, a maximum for the true score and sums for the counts, so the candidate axis may
be split over blocks, and over devices, without changing a rank.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache

import torch
from torch import Tensor

from golde.data.known import KnownFacts
from golde.errors import GoldeError
from golde.progress import Progress, silent

Scorer = Callable[[Tensor, Tensor, int, int], Tensor]
"""``score(entity (B,), direction (B,), start, stop) -> (B, stop - start)``: how plausible candidate
entities ``start..stop`` are as answers, higher is better. A direction below R asks for tails, one
from R to 2R for heads."""

MEMORY_MB = {"cpu": 64.0, "cuda": 2048.0}
"""Blocks of this size stay small enough on a CPU for the allocator to reuse their memory; larger ones
are slower, because every block then touches fresh pages. A GPU wants few and large ones."""

_BYTES_A_SCORE = 32  # scores as they come, masked, one row a query, compared, and some to spare
_FEWEST_ROWS = 8  # with fewer queries a block, splitting the candidates is the better choice
_MOST_COLUMNS = 1 << 24  # counts are summed in float32, exact up to here


class EvaluationError(GoldeError):
    """A request that has no honest figure as its answer."""


class NonFiniteScoreError(EvaluationError):
    """A NaN or infinite score: it has no rank, and giving it one would flatter the model."""

    def __init__(self, query: str, candidate: str, value: float) -> None:
        super().__init__(
            f"the score of candidate {candidate} for {query} is {value}; ranks need finite scores "
            "(the model may have diverged: train again with a lower learning rate)"
        )


Namer = Callable[[int, int, int], tuple[str, str]]
"""(entity, direction, candidate) in words: the query and the candidate, for error messages."""


def _numbers(entity: int, direction: int, candidate: int) -> tuple[str, str]:
    return f"the query (entity {entity}, direction {direction})", str(candidate)


@dataclass(frozen=True, eq=False)
class Ranks:
    """What ranking found for each of n queries, on the CPU, in the order they were asked."""

    entity: Tensor  # (n,)
    direction: Tensor  # (n,)
    answer: Tensor  # (n,)
    better: Tensor  # (n,) candidates that score above the answer
    ties: Tensor  # (n,) other candidates that score exactly like it
    candidates: Tensor  # (n,) candidates left after filtering, the answer among them

    def __len__(self) -> int:
        return len(self.answer)

    def __getitem__(self, which: Tensor | slice) -> Ranks:
        return Ranks(*(getattr(self, field.name)[which] for field in fields(self)))

    @property
    def optimistic(self) -> Tensor:
        """1 + better: every tie is decided for the answer."""
        return (1 + self.better).double()

    @property
    def pessimistic(self) -> Tensor:
        """1 + better + ties: every tie is decided against the answer."""
        return (1 + self.better + self.ties).double()

    @property
    def realistic(self) -> Tensor:
        """1 + better + ties / 2: the mean rank over all ways of deciding the ties."""
        return 1 + self.better + self.ties / 2.0


def both_sides(triples: Tensor, relations: int) -> tuple[Tensor, Tensor, Tensor]:
    """The 2n queries (entity, direction, answer) of n triples: first all tails, then all heads."""
    head, relation, tail = triples.unbind(1)
    return (
        torch.cat([head, tail]),
        torch.cat([relation, relation + relations]),
        torch.cat([tail, head]),
    )


def rank_queries(
    score: Scorer,
    entity: Tensor,
    direction: Tensor,
    answer: Tensor,
    filters: KnownFacts,
    *,
    entities: int,
    self_filter: bool = False,
    memory_mb: float | None = None,
    name: Namer = _numbers,
    progress: Progress = silent,
) -> Ranks:
    """Rank each answer among all entities, known facts other than the answer left out.

    Work happens on the device of ``entity``. With ``self_filter`` the query's own entity is no
    candidate either, unless it is the answer. Queries reach the scorer sorted by direction, then
    entity, and an (entity, direction) asked several times in a block is scored once.
    """
    if memory_mb is None:
        memory_mb = _memory_mb(entity.device)
    rows, spans = _blocks(entities, memory_mb)
    filters = filters.to(entity.device)
    order = torch.argsort(direction * entities + entity, stable=True)
    found = torch.empty(3, len(entity), dtype=torch.int64, device=entity.device)
    scratch = torch.empty(min(rows, len(entity)) * spans[0][1], device=entity.device)
    with torch.no_grad():
        for start in range(0, len(order), rows):
            chosen = order[start : start + rows]
            block = _Block(score, entity[chosen], direction[chosen], answer[chosen], entities, name)
            found[:, chosen] = block.rank(filters, self_filter, spans, scratch)
            progress(min(start + rows, len(order)), len(order))
    better, ties, candidates = found.cpu()
    return Ranks(entity.cpu(), direction.cpu(), answer.cpu(), better, ties, candidates)


def _memory_mb(device: torch.device) -> float:
    """The usual size of a block, but little of what a GPU has left: scoring needs some as well."""
    if device.type != "cuda":
        return MEMORY_MB["cpu"]
    free, _ = torch.cuda.mem_get_info(device)
    return min(MEMORY_MB["cuda"], free / 2**20 / 16)


def _blocks(entities: int, memory_mb: float) -> tuple[int, list[tuple[int, int]]]:
    """How many queries to take at once, and the spans their candidates are cut into."""
    scores = max(int(memory_mb * 2**20 / _BYTES_A_SCORE), 1)
    rows = max(scores // entities, min(_FEWEST_ROWS, scores))
    columns = min(max(scores // rows, 1), entities, _MOST_COLUMNS)
    return rows, [(at, min(at + columns, entities)) for at in range(0, entities, columns)]


class _Block:
    """A few queries against all candidates, one span of candidates at a time.

    Queries with the same entity and direction share a row of scores; only their answers differ.
    """

    def __init__(
        self,
        score: Scorer,
        entity: Tensor,
        direction: Tensor,
        answer: Tensor,
        entities: int,
        name: Namer,
    ) -> None:
        self.score, self.answer, self.entities, self.name = score, answer, entities, name
        rows, self.row = torch.unique_consecutive(
            direction * entities + entity, return_inverse=True
        )  # (U,), (B,)
        self.entity, self.direction = rows % entities, rows // entities

    def rank(
        self,
        filters: KnownFacts,
        self_filter: bool,
        spans: list[tuple[int, int]],
        scratch: Tensor,
    ) -> Tensor:
        """(3, B): how many candidates score above the answer, tie with it, and take part."""
        # The second pass goes backwards over the spans, so what was scored last is not scored
        # again; with one span, nothing is.
        scores = lru_cache(maxsize=1)(self._scores)
        truth = torch.full(self.answer.shape, -torch.inf, device=self.answer.device)
        for start, stop in spans:
            inside = (self.answer >= start) & (self.answer < stop)
            if inside.any():
                truth = torch.maximum(truth, self._true_scores(scores(start, stop), start, inside))
        row, column = self._excluded(filters, self_filter)
        above = torch.zeros_like(self.answer)
        equal = torch.zeros_like(self.answer)
        for start, stop in reversed(spans):
            inside = (column >= start) & (column < stop)
            place = row[inside], column[inside] - start
            block = scores(start, stop)
            block = block.index_put(place, block.new_tensor(-torch.inf))  # a copy: it is not ours
            if len(self.row) > len(block):
                block = block.index_select(0, self.row)
            mask = scratch[: block.numel()].view(block.shape)
            above += _count(torch.gt, block, truth, mask)
            equal += _count(torch.eq, block, truth, mask)
        # The answer takes part, also where it was excluded as a known fact or as the query entity.
        entity, direction = self.entity[self.row], self.direction[self.row]
        excluded = filters.contains(entity, direction, self.answer)
        if self_filter:
            excluded = excluded | (entity == self.answer)
        back = excluded.long()
        others = self.entities - torch.bincount(row, minlength=len(self.entity))[self.row]
        return torch.stack([above, equal - (1 - back), others + back])

    def _scores(self, start: int, stop: int) -> Tensor:
        """(U, stop - start), checked."""
        block = self.score(self.entity, self.direction, start, stop)
        expected = (len(self.entity), stop - start)
        if tuple(block.shape) != expected or not block.is_floating_point():
            raise EvaluationError(
                f"a scorer returned {block.dtype} of shape {tuple(block.shape)}; "
                f"asked for candidates {start}..{stop} it must return floats of shape {expected}"
            )
        low, high = torch.aminmax(block)
        if not torch.isfinite(torch.stack([low, high])).all():
            row, column = torch.isfinite(block).logical_not().nonzero()[0].tolist()
            query = int(self.entity[row]), int(self.direction[row])
            raise NonFiniteScoreError(*self.name(*query, start + column), float(block[row, column]))
        return block

    def _true_scores(self, block: Tensor, start: int, inside: Tensor) -> Tensor:
        """(B,): the scores of the answers in this span, −∞ for answers elsewhere."""
        column = (self.answer - start).clamp(0, block.shape[1] - 1)
        return block[self.row, column].where(inside, -torch.inf)

    def _excluded(self, filters: KnownFacts, self_filter: bool) -> tuple[Tensor, Tensor]:
        """Row and entity of every known fact and, with ``self_filter``, loop; each listed once."""
        row, column = filters.answers(self.entity, self.direction)
        if self_filter:
            known = filters.contains(self.entity, self.direction, self.entity)
            own = known.logical_not().nonzero()[:, 0]
            row, column = torch.cat([row, own]), torch.cat([column, self.entity[own]])
        return row, column


def _count(compare: Callable[..., Tensor], block: Tensor, truth: Tensor, mask: Tensor) -> Tensor:
    """Per query, how many scores compare true with the true score."""
    # Comparing into a reused float buffer is several times faster on CPU than summing booleans.
    return compare(block, truth[:, None], out=mask).sum(1).long()
