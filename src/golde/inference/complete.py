"""The most plausible facts that a graph does not hold, found without being asked."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from golde.data.graph import KnowledgeGraph
from golde.inference.predict import checked_top
from golde.inference.queries import Prediction
from golde.inference.search import block_shape, diverged, non_finite
from golde.models import Model
from golde.progress import Progress, silent


def complete(
    model: Model,
    graph: KnowledgeGraph,
    top: int = 1000,
    *,
    relations: Sequence[str] | None = None,
    per_relation: bool = False,
    least: Tensor | None = None,
    progress: Progress = silent,
) -> list[Prediction]:
    """The ``top`` most plausible facts in no split, best first; or so many of each relation.

    Every (head, relation) that train shows is asked for its tails, all entities being candidates: an
    entity that heads facts of the relation is known to be of the right kind for it, while of the
    others the model has never been told that they are not (no country is the capital of anything).
    A fact from an entity to itself counts only where train has such facts of the relation.

    ``least`` (R,) is the lowest score of each relation that is wanted.

    Scores are those of the forward direction: minus a distance (and plus biases, where the model has
    them), so they are compared across queries as they are.
    """
    top = checked_top(top)
    names = graph.relations
    wanted = torch.arange(len(names)) if relations is None else names.ids(relations).unique()
    pairs = graph.train[:, [1, 0]].unique(dim=0)  # (relation, head), sorted
    pairs = pairs[torch.isin(pairs[:, 0], wanted)]
    groups = [pairs[pairs[:, 0] == r] for r in wanted] if per_relation else [pairs]
    found, done = [], 0
    for group in filter(len, groups):
        search = _Search(model, graph, top, least)
        for block in group.split(block_shape(len(group), len(graph.entities))[0]):
            search.visit(block[:, 1], block[:, 0])
            done += len(block)
            progress(done, len(pairs))
        found += search.predictions()
    return found


class _Search:
    """The best facts seen so far, as scores and rows of ids."""

    def __init__(self, model: Model, graph: KnowledgeGraph, top: int, least: Tensor | None) -> None:
        self.model, self.graph, self.top = model, graph, top
        self.device = model.entity.device
        self.least = None if least is None else least.to(self.device)  # (R,)
        self.scores = torch.empty(0, dtype=model.entity.dtype, device=self.device)
        self.facts = torch.empty(0, 3, dtype=torch.int64, device=self.device)
        train = graph.train
        self.loops = torch.zeros(len(graph.relations), dtype=torch.bool)
        self.loops[train[train[:, 0] == train[:, 2], 1]] = True

    @torch.no_grad()
    def visit(self, head: Tensor, relation: Tensor) -> None:
        """Score all tails of a block of queries and keep what is good enough."""
        row, tail = self._excluded(head, relation)
        row, tail, head, relation = (ids.to(self.device) for ids in (row, tail, head, relation))
        _, columns = block_shape(len(head), len(self.graph.entities))
        for part in torch.arange(len(self.graph.entities), device=self.device).split(columns):
            scores = self.model.score(head, relation, part)
            start, stop = int(part[0]), int(part[-1]) + 1
            if (at := non_finite(scores)) is not None:
                fact = torch.stack([head[at[0]], relation[at[0]], part[at[1]]])
                raise diverged(self._names(fact), float(scores[at]))
            here = (tail >= start) & (tail < stop)
            scores[row[here], tail[here] - start] = -torch.inf
            if self.least is not None:
                scores[scores < self.least[relation].unsqueeze(1)] = -torch.inf
            b, n = (scores >= self._bar()).nonzero().unbind(1)
            self._keep(scores[b, n], torch.stack([head[b], relation[b], part[n]], 1))

    def predictions(self) -> list[Prediction]:
        """What was kept, best first, in words."""
        rows = zip(self.facts.cpu(), self.scores.tolist(), strict=True)
        return [Prediction(*self._names(fact), score) for fact, score in rows]

    def _excluded(self, head: Tensor, relation: Tensor) -> tuple[Tensor, Tensor]:
        """Known facts, and loops where the relation has none."""
        row, tail = self.graph.known().answers(head, relation)
        own = self.loops[relation].logical_not().nonzero()[:, 0]
        return torch.cat([row, own]), torch.cat([tail, head[own]])

    def _bar(self) -> float:
        """The least score that may still be among the best; any but −∞, the mark of the excluded."""
        if len(self.scores) < self.top:
            return float(torch.finfo(self.scores.dtype).min)
        return float(self.scores[-1])

    def _keep(self, scores: Tensor, facts: Tensor) -> None:
        """Merge, and trim to the best; of equal scores the lower relation, head, tail comes first."""
        scores, facts = torch.cat([self.scores, scores]), torch.cat([self.facts, facts])
        if len(scores) > self.top:  # sort only what can stay
            good = scores >= scores.topk(self.top, sorted=False).values.min()
            scores, facts = scores[good], facts[good]
        for column in (2, 0, 1):
            order = facts[:, column].argsort(stable=True)
            scores, facts = scores[order], facts[order]
        order = scores.argsort(descending=True, stable=True)[: self.top]
        self.scores, self.facts = scores[order], facts[order]

    def _names(self, fact: Tensor) -> tuple[str, str, str]:
        head, relation, tail = fact.tolist()
        entities = self.graph.entities
        return entities[head], self.graph.relations[relation], entities[tail]
