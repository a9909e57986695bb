"""Figures from ranks. Every figure is a ratio of sums over queries, so one table of columns serves
the whole, each side, each relation, each category and every bootstrap resample alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from golde.evaluation.ranking import EvaluationError

HITS = (1, 3, 10)
Figures = dict[str, float]


def checked_hits(hits: Sequence[int]) -> tuple[int, ...]:
    """The cut-offs k in order, each once."""
    if bad := [k for k in hits if k < 1]:
        raise EvaluationError(f"hits@{bad[0]}: ranks start at 1; ask for hits@k with k ≥ 1")
    return tuple(sorted(set(hits)))


def rank_table(rank: Tensor, candidates: Tensor, hits: Sequence[int] = HITS) -> Tensor:
    """(n, 4 + len(hits)) in float64: 1, r, 1/r, the rank expected by chance, and r ≤ k for each k."""
    rank = rank.double()
    columns = [torch.ones_like(rank), rank, 1 / rank, (candidates.double() + 1) / 2]
    return torch.stack(columns + [(rank <= k).double() for k in hits], dim=1)


def measures(sums: Tensor, hits: Sequence[int] = HITS) -> dict[str, Tensor]:
    """Figures from column sums of a rank table, any leading shape.

    MR = Σr/n, MRR = Σ(1/r)/n, H@k = #(r ≤ k)/n, AMRI = 1 − Σ(r − 1) / Σ(E[r] − 1) with
    E[r] = (candidates + 1)/2 the rank of an answer placed at random: 1 is perfect, 0 is chance.
    """
    count, rank, reciprocal, chance, *hit = sums.unbind(-1)
    figures = {"mr": rank / count, "mrr": reciprocal / count}
    figures |= {f"hits@{k}": inside / count for k, inside in zip(hits, hit, strict=True)}
    # Where the answer is the only candidate left, perfect and chance are the same; call it chance.
    ratio = (rank - count) / (chance - count)
    figures["amri"] = torch.where(chance > count, 1 - ratio, 0.0)
    return figures


def summarise(rank: Tensor, candidates: Tensor, hits: Sequence[int] = HITS) -> Figures:
    """``count`` of ranks, then MR, MRR, hits@k and AMRI over all of them."""
    return _figures(rank_table(rank, candidates, hits).sum(0), hits)


def summarise_groups(
    table: Tensor, group: Tensor, groups: int, hits: Sequence[int] = HITS
) -> list[Figures | None]:
    """The summary of each group of rows of a rank table, None for a group without rows."""
    sums = torch.zeros(groups, table.shape[1], dtype=table.dtype).index_add_(0, group, table)
    return [_figures(row, hits) if row[0] > 0 else None for row in sums]


def _figures(sums: Tensor, hits: Sequence[int]) -> Figures:
    figures: Figures = {"count": int(sums[0])}
    return figures | {name: float(value) for name, value in measures(sums, hits).items()}


def resample(table: Tensor, resamples: int, seed: int = 0) -> Tensor:
    """(resamples, columns): column sums over rows drawn with replacement.

    The draws depend on the number of rows and the seed alone: two models ranked on the same split
    see the same resamples, so their differences may be compared pairwise.
    """
    random, rows = np.random.default_rng(seed), len(table)
    values = table.numpy()
    drawn = (random.integers(0, rows, rows, dtype=np.int32) for _ in range(resamples))
    sums = [np.bincount(which, minlength=rows) @ values for which in drawn]
    return torch.from_numpy(np.stack(sums))


def intervals(sums: Tensor, hits: Sequence[int] = HITS) -> dict[str, list[float]]:
    """The central 95% of each figure over resampled column sums (percentile bootstrap)."""
    edges = torch.tensor([0.025, 0.975], dtype=sums.dtype)
    return {
        name: torch.quantile(values, edges).tolist()
        for name, values in measures(sums, hits).items()
    }
