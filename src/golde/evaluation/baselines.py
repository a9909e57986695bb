"""Two scorers that know nothing of geometry: what a model must beat to have learned anything.

They hold sparse sorted arrays on the CPU and form nothing larger than the block asked for."""

from __future__ import annotations

import torch
from torch import Tensor

from golde.data.graph import KnowledgeGraph
from golde.data.known import in_turn


class Popularity:
    """score(e, d, x) ∝ how many training facts have x as an answer in direction d, whatever e.

    Scaled to stay below 1, in float64 so that different counts stay different.
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        self.entities, relations = len(graph.entities), len(graph.relations)
        head, relation, tail = graph.train.unbind(1)
        answer = torch.cat([tail, head])
        direction = torch.cat([relation, relation + relations])
        # Sorted (direction, answer) pairs with their share: a sparse 2R × E table.
        self.key, count = torch.unique(direction * self.entities + answer, return_counts=True)
        self.share = count.double() / (len(answer) + 1)

    def __call__(self, entity: Tensor, direction: Tensor, start: int, stop: int) -> Tensor:
        asked, which = torch.unique(direction, return_inverse=True)
        first = torch.searchsorted(self.key, asked * self.entities + start)
        last = torch.searchsorted(self.key, asked * self.entities + stop)
        row, at = in_turn(first, last)
        scores = torch.zeros(len(asked), stop - start, dtype=torch.float64, device=asked.device)
        scores[row, self.key[at] % self.entities - start] = self.share[at]
        return scores.index_select(0, which)


class Rules:
    """Symmetry and inverse rules r'(x, e) ⇒ r(e, x) found in train; popularity breaks their ties.

    The confidence of a rule is the share of the facts of r' whose mirror image under r is in train
    too (r = r' is symmetry). A candidate's score has the place of its best rule among all
    confidences as integer part (0: no rule fires) and its popularity as fraction, so it orders
    candidates by confidence first.
    """

    def __init__(
        self, graph: KnowledgeGraph, *, min_confidence: float = 0.5, min_support: int = 2
    ) -> None:
        self.popularity = Popularity(graph)
        self.train = graph.known("train")
        relations = len(graph.relations)
        body, head, confidence = _mirror_rules(
            graph.train, len(graph.entities), relations, min_confidence, min_support
        )
        # (e, r, ?) looks at the heads x of facts r'(x, e), and (?, r, e) at the tails of r'(e, x).
        asked, looked_up = torch.cat([head, head + relations]), torch.cat([body + relations, body])
        self.asked, order = torch.sort(asked)
        self.looked_up = looked_up[order]
        level = torch.unique(confidence, return_inverse=True)[1] + 1
        self.level = torch.cat([level, level])[order].double()
        #: (r', r, confidence), to be read by people.
        self.found: list[tuple[int, int, float]] = list(
            zip(body.tolist(), head.tolist(), confidence.tolist(), strict=True)
        )

    def __call__(self, entity: Tensor, direction: Tensor, start: int, stop: int) -> Tensor:
        direction = direction.contiguous()
        first = torch.searchsorted(self.asked, direction)
        last = torch.searchsorted(self.asked, direction, right=True)
        query, rule = in_turn(first, last)
        fired, answer = self.train.answers(entity[query], self.looked_up[rule])
        inside = (answer >= start) & (answer < stop)
        fired, answer = fired[inside], answer[inside] - start
        width = stop - start
        place, which = torch.unique(query[fired] * width + answer, return_inverse=True)
        best = self.level.new_zeros(len(place))
        best.scatter_reduce_(0, which, self.level[rule[fired]], "amax")
        scores = self.popularity(entity, direction, start, stop)
        scores.view(-1)[place] += best
        return scores


def _mirror_rules(
    train: Tensor, entities: int, relations: int, min_confidence: float, min_support: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Body relation r', head relation r and confidence of each rule r'(x, e) ⇒ r(e, x)."""
    train = train[train[:, 0] != train[:, 2]]  # a loop is its own mirror image and proves nothing
    head, relation, tail = train.unbind(1)
    pair, order = torch.sort(head * entities + tail)
    mirror = tail * entities + head
    first = torch.searchsorted(pair, mirror)
    last = torch.searchsorted(pair, mirror, right=True)
    fact, at = in_turn(first, last)
    both, support = torch.unique(
        relation[fact] * relations + relation[order[at]], return_counts=True
    )
    facts = torch.bincount(relation, minlength=relations)
    confidence = support.double() / facts[both // relations]
    kept = (confidence >= min_confidence) & (support >= min_support)
    return both[kept] // relations, both[kept] % relations, confidence[kept]
