"""The most plausible facts that a graph does not hold, found without being asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError
from golde.evaluation.calibration import Array, Ids
from golde.inference.calibration import Calibration
from golde.inference.heads import Heads
from golde.inference.predict import checked_top
from golde.inference.queries import Prediction
from golde.inference.search import block_shape, diverged, non_finite
from golde.models import Model
from golde.progress import Progress, silent

ORDERS = ("probability", "score")

MOST_FACTS = 1_000_000
"""How many facts are found where no number is given: memory holds them all."""


@dataclass(frozen=True)
class Completion:
    """Facts that were found, and what there is to say of the search."""

    facts: list[Prediction]
    queries: int  # (head, relation) pairs that were asked
    best: Prediction | None  # the most plausible of all missing facts, also where it is not wanted


def complete(
    model: Model,
    graph: KnowledgeGraph,
    top: int | None = 1000,
    *,
    heads: Heads | None = None,
    relations: Sequence[str] | None = None,
    per_relation: bool = False,
    by: str | None = None,
    calibration: Calibration | None = None,
    min_probability: float | None = None,
    progress: Progress = silent,
) -> Completion:
    """The ``top`` most plausible facts in no split, best first; or so many of each relation.

    ``heads`` says which heads are asked for their tails, those of the right kind that lack an answer unless
    told otherwise; all entities are candidates. A fact from an entity to itself counts only where train has
    such facts of the relation.

    Scores are those of the forward direction: minus a distance (and plus biases, where the model has
    them), so they are compared across queries as they are. With a ``calibration`` the order is by
    probability, then by score, unless ``by`` is "score", and facts below ``min_probability`` are left out.
    ``top`` may then be None: all of them.
    """
    if top is None and min_probability is None:
        raise GoldeError("top is None; give a number, or a min_probability for all facts above it")
    if by not in (None, *ORDERS):
        raise GoldeError(f"by is {by!r}; it must be one of {', '.join(ORDERS)}")
    most = MOST_FACTS if top is None else checked_top(top)
    heads = heads or Heads(graph)
    names = graph.relations
    wanted = range(len(names)) if relations is None else names.ids(relations).unique().tolist()
    asked = {r: count for r in wanted if (count := len(heads.of(r)))}
    queries, done = sum(asked.values()), 0
    least = None
    if min_probability is not None:
        if calibration is None:
            raise GoldeError("min_probability needs a calibration; there are no probabilities yet")
        least = calibration.least_scores(min_probability)  # (R,)
    found, best = _Facts.none(), _Facts.none()
    for r in asked:
        search = _Search(model, graph, r, most, None if least is None else least[r])
        ids = heads.of(r)
        for block in ids.split(block_shape(len(ids), len(graph.entities))[0]):
            search.visit(block)
            done += len(block)
            progress(done, queries)
        here, best_here = (facts.judged(calibration) for facts in (search.found, search.best))
        best = best.beside(best_here).first(1)
        found = found.beside(here)
        found = found if per_relation else found.first(most, by_score=by == "score")
        if top is None and len(found.scores) >= most:
            raise GoldeError(
                f"{most:,} facts or more have a probability of at least {min_probability:g}; "
                "say how many you want (--top N), or raise the probability"
            )
    return Completion(found.predictions(graph), queries, next(iter(best.predictions(graph)), None))


@dataclass(frozen=True)
class _Facts:
    """Facts by their ids, with scores and, of a calibrated run, probabilities; on the CPU."""

    ids: Ids  # (n, 3)
    scores: Array  # (n,)
    probabilities: Array | None = None  # (n,)

    @classmethod
    def none(cls) -> _Facts:
        """Nothing to begin with, to which facts with or without probabilities can be added."""
        nothing = np.empty(0)
        return cls(np.empty((0, 3), dtype=np.int64), nothing, nothing)

    def judged(self, calibration: Calibration | None) -> _Facts:
        """The same with their probabilities, if there is a calibration."""
        if calibration is None:
            return self
        return replace(self, probabilities=calibration.probabilities(self.scores, self.ids[:, 1]))

    def beside(self, other: _Facts) -> _Facts:
        """These, then those of another relation."""
        chances = None
        if self.probabilities is not None and other.probabilities is not None:
            chances = np.concatenate([self.probabilities, other.probabilities])
        scores = np.concatenate([self.scores, other.scores])
        return _Facts(np.concatenate([self.ids, other.ids]), scores, chances)

    def first(self, most: int, *, by_score: bool = False) -> _Facts:
        """The best of them by probability, then by score; of equals the lower relation, head, tail."""
        head, relation, tail = self.ids.T
        keys = [tail, head, relation, -self.scores]
        if self.probabilities is not None and not by_score:
            keys.append(-self.probabilities)
        order = np.lexsort(keys)[:most]
        chances = None if self.probabilities is None else self.probabilities[order]
        return _Facts(self.ids[order], self.scores[order], chances)

    def predictions(self, graph: KnowledgeGraph) -> list[Prediction]:
        """All of them in words."""
        chances = [None] * len(self.scores)
        if self.probabilities is not None:
            chances = self.probabilities.tolist()
        return [
            Prediction(*named(graph, fact), score, probability=chance)
            for fact, score, chance in zip(
                self.ids.tolist(), self.scores.tolist(), chances, strict=True
            )
        ]


class _Search:
    """The best facts of one relation seen so far, as scores and pairs of a head and a tail."""

    def __init__(
        self, model: Model, graph: KnowledgeGraph, relation: int, top: int, least: Tensor | None
    ) -> None:
        self.model, self.graph, self.relation, self.top = model, graph, relation, top
        self.device = model.device
        self.least = None if least is None else least.view(1, 1).to(self.device)
        self.scores = torch.empty(0, dtype=model.entity.dtype, device=self.device)
        self.pairs = torch.empty(0, 2, dtype=torch.int64, device=self.device)
        self.best_score, self.best_pair = self.scores, self.pairs
        facts = graph.train[graph.train[:, 1] == relation]
        self.loops = bool((facts[:, 0] == facts[:, 2]).any())

    @torch.no_grad()
    def visit(self, head: Tensor) -> None:
        """Score all tails of a block of heads and keep what is good enough."""
        row, tail = self._excluded(head)
        row, tail, head = (ids.to(self.device) for ids in (row, tail, head))
        relation = torch.full_like(head, self.relation)
        _, columns = block_shape(len(head), len(self.graph.entities))
        for part in torch.arange(len(self.graph.entities), device=self.device).split(columns):
            scores = self.model.score(head, relation, part)
            start, stop = int(part[0]), int(part[-1]) + 1
            if (at := non_finite(scores)) is not None:
                fact = [int(head[at[0]]), self.relation, int(part[at[1]])]
                raise diverged(named(self.graph, fact), float(scores[at]))
            here = (tail >= start) & (tail < stop)
            scores[row[here], tail[here] - start] = -torch.inf
            if self.least is not None:
                self._remember(scores, head, part)
                scores[scores < self.least] = -torch.inf
            b, n = (scores >= self._bar(scores)).nonzero().unbind(1)
            self._keep(scores[b, n], torch.stack([head[b], part[n]], 1))

    @property
    def found(self) -> _Facts:
        """What was kept, best first."""
        return self._facts(self.scores, self.pairs)

    @property
    def best(self) -> _Facts:
        """The best one of all that were seen, if any were."""
        if self.least is None:
            return self._facts(self.scores[:1], self.pairs[:1])
        return self._facts(self.best_score, self.best_pair)

    def _facts(self, scores: Tensor, pairs: Tensor) -> _Facts:
        head, tail = pairs.cpu().unbind(1)
        ids = torch.stack([head, torch.full_like(head, self.relation), tail], 1)
        return _Facts(ids.numpy(), scores.double().cpu().numpy())

    def _excluded(self, head: Tensor) -> tuple[Tensor, Tensor]:
        """Known facts, and loops where the relation has none."""
        row, tail = self.graph.known().answers(head, torch.tensor(self.relation))
        if self.loops:
            return row, tail
        return torch.cat([row, torch.arange(len(head))]), torch.cat([tail, head])

    def _remember(self, scores: Tensor, head: Tensor, part: Tensor) -> None:
        """The best score so far, wanted or not."""
        place = int(scores.argmax())
        b, n = divmod(place, scores.shape[1])
        best = scores[b, n].view(1)
        if torch.isfinite(best) and (not len(self.best_score) or best > self.best_score):
            self.best_score = best.clone()
            self.best_pair = torch.stack([head[b], part[n]]).view(1, 2)

    def _bar(self, scores: Tensor) -> float:
        """The least score that may still be among the best; any but −∞, the mark of the excluded."""
        lowest = float(torch.finfo(scores.dtype).min)
        if len(self.scores) >= self.top:
            return float(self.scores[-1])
        if scores.numel() > self.top:
            return max(lowest, float(scores.flatten().topk(self.top, sorted=False).values.min()))
        return lowest

    def _keep(self, scores: Tensor, pairs: Tensor) -> None:
        """Merge, and trim to the best; of equal scores the lower head, then the lower tail comes first."""
        scores, pairs = torch.cat([self.scores, scores]), torch.cat([self.pairs, pairs])
        if len(scores) > self.top:  # sort only what can stay
            good = scores >= scores.topk(self.top, sorted=False).values.min()
            scores, pairs = scores[good], pairs[good]
        for column in (1, 0):
            order = pairs[:, column].argsort(stable=True)
            scores, pairs = scores[order], pairs[order]
        order = scores.argsort(descending=True, stable=True)[: self.top]
        self.scores, self.pairs = scores[order], pairs[order]


def named(graph: KnowledgeGraph, fact: Sequence[int]) -> tuple[str, str, str]:
    """A fact by its ids, in words."""
    head, relation, tail = fact
    return graph.entities[head], graph.relations[relation], graph.entities[tail]
