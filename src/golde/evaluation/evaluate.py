"""From a scorer and a graph to figures that carry their protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from golde.data.describe import CATEGORIES, relation_categories
from golde.data.graph import KnowledgeGraph
from golde.evaluation.baselines import Popularity, Rules
from golde.evaluation.metrics import (
    HITS,
    checked_hits,
    intervals,
    rank_table,
    resample,
    summarise,
    summarise_groups,
)
from golde.evaluation.protocol import Protocol
from golde.evaluation.ranking import (
    EvaluationError,
    Ranks,
    Scorer,
    both_sides,
    rank_queries,
)
from golde.progress import Progress, silent

Block = dict[str, Any]
"""Figures by name, possibly with smaller blocks inside."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Figures of one split under one protocol, and the ranks they came from."""

    protocol: Protocol
    ranks: Ranks  # all tail queries in the order of the split, then all head queries
    metrics: dict[str, Block]  # both, head, tail; ``count`` is the number of ranks behind a figure
    relations: dict[str, Block]
    categories: dict[str, Block]
    optimistic: dict[str, Block] | None = None  # both given only where ties exist
    pessimistic: dict[str, Block] | None = None
    baselines: dict[str, dict[str, Block]] = field(default_factory=dict)

    @property
    def mrr(self) -> float:
        """The figure models are chosen by: filtered MRR over both sides."""
        return float(self.metrics["both"]["mrr"])

    def as_dict(self) -> dict[str, Any]:
        """One object, ready for JSON."""
        result: dict[str, Any] = {"protocol": self.protocol.as_dict(), "metrics": self.metrics}
        if self.optimistic is not None:
            result |= {"optimistic": self.optimistic, "pessimistic": self.pessimistic}
        return result | {
            "relations": self.relations,
            "categories": self.categories,
            "baselines": self.baselines,
        }


def rank_triples(
    score: Scorer,
    graph: KnowledgeGraph,
    triples: Tensor,
    *,
    self_filter: bool = False,
    device: torch.device | str = "cpu",
    memory_mb: float | None = None,
    progress: Progress = silent,
) -> Ranks:
    """Filtered ranks of both sides of n triples: first their n tails, then their n heads."""
    entity, direction, answer = both_sides(triples.to(device), len(graph.relations))
    return rank_queries(
        score,
        entity,
        direction,
        answer,
        graph.known(),
        entities=len(graph.entities),
        self_filter=self_filter,
        memory_mb=memory_mb,
        name=lambda *ids: in_words(graph, *ids),
        progress=progress,
    )


def evaluate(
    score: Scorer,
    graph: KnowledgeGraph,
    split: str = "test",
    *,
    triples: Tensor | None = None,
    self_filter: bool = False,
    hits: Sequence[int] = HITS,
    baselines: bool = True,
    bootstrap: int = 1000,
    seed: int = 0,
    device: torch.device | str = "cpu",
    memory_mb: float | None = None,
    progress: Progress = silent,
) -> Evaluation:
    """Filtered ranking of both sides of every triple of a split, and the figures it gives.

    ``triples`` is a sample of the split to rank instead of all of it; the protocol then says so.
    The scorer is asked on ``device``; the two baselines are ranked beside it under the same
    protocol, on the CPU. ``bootstrap`` is the number of resamples behind the intervals, 0 for none.
    """
    triples = graph.split(split) if triples is None else triples
    if not len(triples):
        raise EvaluationError(
            f"{graph.name}: the {split} split is empty, there is nothing to rank; {_ways_out(graph, split)}"
        )
    hits = checked_hits(hits)
    rivals: dict[str, Scorer] = {}
    if baselines:
        rivals = {"popularity": Popularity(graph), "rules": Rules(graph)}

    def rank(scorer: Scorer, place: torch.device | str, turn: int) -> Ranks:
        return rank_triples(
            scorer,
            graph,
            triples,
            self_filter=self_filter,
            device=place,
            memory_mb=memory_mb,
            progress=lambda done, each: progress(turn * each + done, (1 + len(rivals)) * each),
        )

    ranks = rank(score, device, 0)
    others = {name: rank(rival, "cpu", i) for i, (name, rival) in enumerate(rivals.items(), 1)}
    return figures_of(
        ranks,
        graph,
        Protocol.of(graph, split, triples, self_filter=self_filter, resamples=bootstrap, seed=seed),
        hits=hits,
        others=others,
    )


def figures_of(
    ranks: Ranks,
    graph: KnowledgeGraph,
    protocol: Protocol,
    *,
    hits: Sequence[int] = HITS,
    others: Mapping[str, Ranks] = MappingProxyType({}),
) -> Evaluation:
    """The figures that ranks of both sides give, beside those of ``others`` ranked under one protocol."""
    named = graph.relations.names, relation_categories(graph)
    return figures_by_relation(ranks, *named, protocol, hits=hits, others=others)


def figures_by_relation(
    ranks: Ranks,
    relations: Sequence[str],
    of_relation: Sequence[str],
    protocol: Protocol,
    *,
    hits: Sequence[int] = HITS,
    others: Mapping[str, Ranks] = MappingProxyType({}),
) -> Evaluation:
    """The same, given the name and the category of each relation."""
    tied = bool(ranks.ties.any())
    metrics = _sides(ranks, ranks.realistic, hits)
    if protocol.resamples:
        found = _intervals(ranks, hits, protocol.resamples, protocol.seed)
        for side, ranges in found.items():
            metrics[side]["intervals"] = ranges
    return Evaluation(
        protocol,
        ranks,
        metrics,
        relations=_groups(ranks, torch.arange(len(relations)), relations, hits),
        categories=_groups(
            ranks, torch.tensor([*map(CATEGORIES.index, of_relation)]), CATEGORIES, hits
        ),
        optimistic=_sides(ranks, ranks.optimistic, hits) if tied else None,
        pessimistic=_sides(ranks, ranks.pessimistic, hits) if tied else None,
        baselines={name: _sides(one, one.realistic, hits) for name, one in others.items()},
    )


def _ways_out(graph: KnowledgeGraph, split: str) -> str:
    """What to do where a split is empty."""
    others = [other for other in ("test", "valid") if other != split and len(graph.split(other))]
    return "".join(f"rank the {other} split (--split {other}), or " for other in others) + (
        f"train on more facts (of a single file, --{split} SIZE holds some out) or on a folder with a "
        f"{split} file"
    )


def _sides(ranks: Ranks, rank: Tensor, hits: Sequence[int]) -> dict[str, Block]:
    """Figures over both sides and each alone; head figures answer (?, r, t)."""
    half = len(ranks) // 2
    parts = {"both": slice(None), "head": slice(half, None), "tail": slice(half)}
    return {side: {**summarise(rank[at], ranks.candidates[at], hits)} for side, at in parts.items()}


def _intervals(
    ranks: Ranks, hits: Sequence[int], resamples: int, seed: int
) -> dict[str, dict[str, list[float]]]:
    """95% intervals of each side. Triples are drawn, not queries: the two ranks of a triple are not
    independent, and pretending so would make the intervals too narrow."""
    tail, head = rank_table(ranks.realistic, ranks.candidates, hits).chunk(2)
    tail, head = resample(torch.cat([tail, head], dim=1), resamples, seed).chunk(2, dim=1)
    sums = {"both": tail + head, "head": head, "tail": tail}
    return {side: intervals(sum_, hits) for side, sum_ in sums.items()}


def _groups(
    ranks: Ranks, group: Tensor, names: Sequence[str], hits: Sequence[int]
) -> dict[str, Block]:
    """Figures of each group of relations, both sides together and each alone."""
    table = rank_table(ranks.realistic, ranks.candidates, hits)
    tails, heads = table.chunk(2)
    of_triple = group[ranks.direction[: len(tails)]]
    both, head, tail = (
        summarise_groups(part, of_triple, len(names), hits)
        for part in (tails + heads, heads, tails)
    )
    return {
        name: {**figures, "head": head[i], "tail": tail[i]}
        for i, (name, figures) in enumerate(zip(names, both, strict=True))
        if figures is not None
    }


def in_words(graph: KnowledgeGraph, entity: int, direction: int, candidate: int) -> tuple[str, str]:
    return named_query(graph.entities, graph.relations, entity, direction, candidate)


def named_query(
    entities: Sequence[str], relations: Sequence[str], entity: int, direction: int, candidate: int
) -> tuple[str, str]:
    """A query and one of its candidates, as an error tells them."""
    name, relation = entities[entity], relations[direction % len(relations)]
    asks_tail = direction < len(relations)
    query = f"({name}, {relation}, ?)" if asks_tail else f"(?, {relation}, {name})"
    return f"the query {query}", repr(entities[candidate])
