"""The best of many scores: exact, the same every time, in bounded memory."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from golde.data.known import Ranges
from golde.errors import GoldeError

SCORES_AT_ONCE = 1 << 21
"""Scores held at a time: a few MB, with the masks and indices beside them a few dozen."""

_FEWEST_ROWS = 8  # with fewer queries a block, cutting the candidates is the better choice
_MOST_ROWS = 1 << 12  # of queries handed at once to a scorer that searches by itself


@runtime_checkable
class SearchingScorer(Protocol):
    """A scorer that finds the best of all entities by itself, in memory that it bounds itself."""

    def top(
        self, entity: Tensor, direction: Tensor, k: int, known: Ranges
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Scores and ids of each query's k best, (B, min(k, E)), best first, the lower id among equals.

        Known answers score −∞. The third tensor, (1,), is other than 0 where blocks have to tell, as for a
        score that is not finite.
        """


def rows_at_once(queries: int, k: int) -> int:
    """How many queries to hand at once to a scorer that searches by itself."""
    return max(1, min(queries, _MOST_ROWS, SCORES_AT_ONCE // k))


def block_shape(queries: int, candidates: int) -> tuple[int, int]:
    """How many queries and how many candidates to score at a time."""
    rows = min(queries, max(_FEWEST_ROWS, SCORES_AT_ONCE // candidates))
    return rows, min(candidates, SCORES_AT_ONCE // max(rows, _FEWEST_ROWS))


def top_k(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k highest scores of each row, best first, and their columns, (B, min(k, N)) each.

    Of equal scores the one in the lower column comes first. ``torch.topk`` alone leaves open which of
    them it takes.
    """
    k = min(k, scores.shape[1])
    last = scores.topk(k, sorted=False).values.amin(1, keepdim=True)  # (B, 1)
    above, equal = scores > last, scores == last
    room = k - above.sum(1, keepdim=True)
    taken = above | (equal & (equal.cumsum(1) <= room))  # k in every row
    columns = taken.nonzero()[:, 1].view(-1, k)
    values, order = scores.gather(1, columns).sort(dim=1, descending=True, stable=True)
    return values, columns.gather(1, order)


def merge(
    best: tuple[Tensor, Tensor], more: tuple[Tensor, Tensor], k: int
) -> tuple[Tensor, Tensor]:
    """The k best of two sorted results of ``top_k``, the second from later columns."""
    values = torch.cat([best[0], more[0]], 1)
    columns = torch.cat([best[1], more[1]], 1)
    values, order = values.sort(dim=1, descending=True, stable=True)
    return values[:, :k], columns.gather(1, order)[:, :k]


def non_finite(scores: Tensor) -> tuple[int, int] | None:
    """Row and column of a score that is NaN or infinite, if there is one."""
    low, high = torch.aminmax(scores)
    if torch.isfinite(low + high):  # a NaN or an infinity in either stays one in the sum
        return None
    row, column = torch.isfinite(scores).logical_not().nonzero()[0].tolist()
    return row, column


def diverged(fact: tuple[str, str, str], score: float) -> GoldeError:
    """The error for a fact without a score."""
    return GoldeError(
        f"the score of ({', '.join(fact)}) is {score}; the model has diverged: "
        "train again with a lower training.learning_rate"
    )
