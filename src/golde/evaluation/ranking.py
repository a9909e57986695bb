"""Filtered ranks of queries, in bounded memory whatever the number of entities.

The score matrix (queries × entities) is visited in blocks. What a block contributes is a reduction
over its candidates, a maximum for the true score and sums for the counts, so the candidate axis may
be split over blocks, and over devices, without changing a rank. A scorer that can do so counts by itself,
as its scores come about; blocks are the reference, and what names a score that is not finite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from golde.data.known import KnownFacts, Ranges
from golde.errors import GoldeError
from golde.progress import Progress, silent

Scorer = Callable[[Tensor, Tensor, int, int], Tensor]
"""``score(entity (B,), direction (B,), start, stop) -> (B, stop - start)``: how plausible candidate
entities ``start..stop`` are as answers, higher is better. A direction below R asks for tails, one
from R to 2R for heads."""


@runtime_checkable
class CountingScorer(Protocol):
    """A scorer that ranks without handing out scores, in memory that it bounds itself."""

    def __call__(self, entity: Tensor, direction: Tensor, start: int, stop: int, /) -> Tensor: ...

    def count(
        self,
        entity: Tensor,
        direction: Tensor,
        row: Tensor,
        answer: Tensor,
        known: Ranges,
        *,
        own: bool,
    ) -> tuple[Tensor, Tensor]:
        """How many candidates score above the answer, and how many like it, (2, n).

        Queries are entity (B,) and direction (B,); that of answer i is ``row[i]``, in ascending order. Known
        answers do not count, nor with ``own`` does the query's own entity. The second tensor, (1,), is other
        than 0 where blocks have to tell, as for a score that is not finite. Nothing waits for the device.
        """


MEMORY_MB = {"cpu": 64.0, "cuda": 2048.0}
"""Blocks of this size stay small enough on a CPU for the allocator to reuse their memory; larger ones
are slower, because every block then touches fresh pages. A GPU wants few and large ones."""

_BYTES_A_SCORE = 32  # scores as they come, masked, one row a query, compared, and some to spare
_FEWEST_ROWS = 8  # with fewer queries a block, splitting the candidates is the better choice
_MOST_COLUMNS = 1 << 24  # counts are summed in float32, exact up to here
_ASKED_AT_ONCE = 1 << 13  # of a scorer that counts by itself


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
    entity, and an (entity, direction) asked several times in a block is scored once. Blocks take about
    ``memory_mb``.
    """
    order = torch.argsort(direction * entities + entity, stable=True)
    asked = Asked(
        entity[order],
        direction[order],
        answer[order],
        filters.to(entity.device),
        entities,
        self_filter,
    )
    found = None
    with torch.no_grad():
        if len(order) and isinstance(score, CountingScorer):
            found = _counted(score, asked, progress)
        if found is None:
            memory_mb = usual_memory_mb(entity.device) if memory_mb is None else memory_mb
            found = _in_blocks(score, asked, memory_mb, name, progress)
    better, ties, candidates = torch.empty_like(found).index_copy_(1, order, found).cpu()
    return Ranks(entity.cpu(), direction.cpu(), answer.cpu(), better, ties, candidates)


@dataclass(frozen=True, eq=False)
class Asked:
    """Queries by direction, then entity, with their answers and what their candidates are without."""

    entity: Tensor  # (B,)
    direction: Tensor  # (B,)
    answer: Tensor  # (B,)
    filters: KnownFacts
    entities: int
    self_filter: bool

    def __len__(self) -> int:
        return len(self.answer)

    def __getitem__(self, some: slice) -> Asked:
        ids = self.entity[some], self.direction[some], self.answer[some]
        return Asked(*ids, self.filters, self.entities, self.self_filter)

    def distinct(self) -> tuple[Tensor, Tensor, Tensor]:
        """Entities and directions that differ, (U,) each, and which of them every query has, (B,)."""
        keys, row = torch.unique_consecutive(
            self.direction * self.entities + self.entity, return_inverse=True
        )
        return keys % self.entities, keys // self.entities, row

    def left_out(self) -> Tensor:
        """(3, B): whether the answer is known, how many answers are, and whether the query entity is one."""
        query = self.entity, self.direction
        known = (
            self.filters.contains(*query, self.answer),
            self.filters.contains(*query, self.entity),
        )
        return torch.stack([known[0].long(), self.filters.counts(*query), known[1].long()])

    def outcome(self, counts: Tensor, left_out: Tensor) -> Tensor:
        """(3, B): how many candidates score above the answer, tie with it, and take part.

        ``counts`` (2, B) are of those not excluded that score above the answer and like it. The answer
        takes part, also where it was excluded as a known fact or as the query entity.
        """
        back, known, loop = left_out.unbind()
        if self.self_filter:
            back = back | (self.entity == self.answer)
            known = known + (1 - loop)
        above, equal = counts.unbind()
        return torch.stack([above, equal - (1 - back), self.entities - known + back])


def _counted(score: CountingScorer, asked: Asked, progress: Progress) -> Tensor | None:
    """The outcome of all queries as the scorer counts, or None where it leaves them to blocks.

    The device is waited for twice: before anything is scored, for how many queries differ, and at the end.
    """
    entity, direction, row = asked.distinct()
    starts = range(0, len(asked), _ASKED_AT_ONCE)
    stops = [min(start + _ASKED_AT_ONCE, len(asked)) for start in starts]
    edges = row[[*starts, *(stop - 1 for stop in stops)]].view(2, -1).T.tolist()
    found, doubts = [], []
    for start, stop, (first, last) in zip(starts, stops, edges, strict=True):
        some = asked[start:stop]
        queries = entity[first : last + 1], direction[first : last + 1]
        counts, doubt = score.count(
            *queries,
            row[start:stop] - first,
            some.answer,
            asked.filters.ranges(*queries),
            own=asked.self_filter,
        )
        found.append(some.outcome(counts.long(), some.left_out()))
        doubts.append(doubt)
        progress(stop, len(asked))
    return None if torch.cat(doubts).any() else torch.cat(found, 1)


def _in_blocks(
    score: Scorer, asked: Asked, memory_mb: float, name: Namer, progress: Progress
) -> Tensor:
    """The outcome of all queries, block by block."""
    rows, columns = block_shape(asked.entities, memory_mb)
    spans = spans_of(range(asked.entities), columns)
    found = torch.empty(3, len(asked), dtype=torch.int64, device=asked.answer.device)
    scratch = torch.empty(min(rows, len(asked)) * columns, device=asked.answer.device)
    for start in range(0, len(asked), rows):
        some = asked[start : start + rows]
        block = Block(score, some, spans, name)
        counts = block.counts(block.truth(), scratch)
        found[:, start : start + rows] = some.outcome(counts, some.left_out())
        progress(min(start + rows, len(asked)), len(asked))
    return found


def usual_memory_mb(device: torch.device) -> float:
    """The usual size of a block, but little of what a GPU has left: scoring needs some as well."""
    if device.type != "cuda":
        return MEMORY_MB["cpu"]
    free, _ = torch.cuda.mem_get_info(device)
    return min(MEMORY_MB["cuda"], free / 2**20 / 16)


def block_shape(entities: int, memory_mb: float) -> tuple[int, int]:
    """How many queries to take at once, and against how many candidates."""
    scores = max(int(memory_mb * 2**20 / _BYTES_A_SCORE), 1)
    rows = max(scores // entities, min(_FEWEST_ROWS, scores))
    return rows, min(max(scores // rows, 1), entities, _MOST_COLUMNS)


def spans_of(candidates: range, columns: int) -> list[tuple[int, int]]:
    """The candidates cut into spans of so many."""
    start, stop = candidates.start, candidates.stop
    return [(at, min(at + columns, stop)) for at in range(start, stop, columns)]


class Block:
    """A few queries against candidates, one span of them at a time.

    Queries with the same entity and direction share a row of scores; only their answers differ.
    """

    def __init__(
        self, score: Scorer, asked: Asked, spans: list[tuple[int, int]], name: Namer
    ) -> None:
        self.score, self.answer, self.spans, self.name = score, asked.answer, spans, name
        self.filters, self.self_filter = asked.filters, asked.self_filter
        self.entity, self.direction, self.row = asked.distinct()  # (U,), (U,), (B,)
        self._newest = lru_cache(maxsize=1)(self._scores)

    def truth(self) -> Tensor:
        """(B,): the score of each answer, −∞ where it is in none of the spans."""
        truth = torch.full(self.answer.shape, -torch.inf, device=self.answer.device)
        for start, stop in self.spans:
            inside = (self.answer >= start) & (self.answer < stop)
            if inside.any():
                scores = self._newest(start, stop)
                truth = torch.maximum(truth, self._true_scores(scores, start, inside))
        return truth

    def counts(self, truth: Tensor, scratch: Tensor) -> Tensor:
        """(2, B): how many candidates that are not excluded score above the answer, and like it.

        It goes backwards over the spans, so what was scored last is not scored again; with one span,
        nothing is.
        """
        row, column = self._excluded()
        above = torch.zeros_like(self.answer)
        equal = torch.zeros_like(self.answer)
        for start, stop in reversed(self.spans):
            inside = (column >= start) & (column < stop)
            place = row[inside], column[inside] - start
            block = self._newest(start, stop)
            block = block.index_put(place, block.new_tensor(-torch.inf))  # a copy: it is not ours
            if len(self.row) > len(block):
                block = block.index_select(0, self.row)
            mask = scratch[: block.numel()].view(block.shape)
            above += _count(torch.gt, block, truth, mask)
            equal += _count(torch.eq, block, truth, mask)
        return torch.stack([above, equal])

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

    def _excluded(self) -> tuple[Tensor, Tensor]:
        """Row and entity of every known fact and, with ``self_filter``, loop; each listed once."""
        row, column = self.filters.answers(self.entity, self.direction)
        if self.self_filter:
            known = self.filters.contains(self.entity, self.direction, self.entity)
            own = known.logical_not().nonzero()[:, 0]
            row, column = torch.cat([row, own]), torch.cat([column, self.entity[own]])
        return row, column


def _count(compare: Callable[..., Tensor], block: Tensor, truth: Tensor, mask: Tensor) -> Tensor:
    """Per query, how many scores compare true with the true score."""
    # Comparing into a reused float buffer is several times faster on CPU than summing booleans.
    return compare(block, truth[:, None], out=mask).sum(1).long()
