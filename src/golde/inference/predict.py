"""The most plausible answers to queries by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from golde.data.graph import SPLITS, KnowledgeGraph
from golde.data.vocabulary import Vocabulary
from golde.errors import GoldeError
from golde.inference.queries import Prediction, Query
from golde.inference.search import block_shape, diverged, merge, non_finite, top_k
from golde.models import GoldE

KNOWN = ("keep", "drop", "mark")

PAIRS_AT_ONCE = 1 << 14
"""Facts scored at a time where each has a query of its own."""


class Predictor:
    """Answers queries with one model; made once for many queries with the same wishes."""

    def __init__(
        self,
        model: GoldE,
        graph: KnowledgeGraph,
        *,
        top: int = 10,
        known: str = "mark",
        candidates: Iterable[str] | None = None,
    ) -> None:
        if known not in KNOWN:
            raise GoldeError(f"known is {known!r}; it must be one of {', '.join(KNOWN)}")
        self.model, self.graph, self.top, self.known = model, graph, checked_top(top), known
        self.candidates = None if candidates is None else sorted(set(candidates))
        if self.candidates == []:
            raise GoldeError("the list of candidates is empty; name at least one, or leave it out")

    def stream(self, queries: Sequence[Query]) -> Iterator[list[Prediction]]:
        """The answers to each query, best first, a block of queries at a time."""
        rows, _ = block_shape(len(queries) or 1, len(self.graph.entities))
        for start in range(0, len(queries), rows):
            yield from self._block(queries[start : start + rows])

    @torch.no_grad()
    def _block(self, queries: Sequence[Query]) -> list[list[Prediction]]:
        of_relations = [i for i, query in enumerate(queries) if query.relation is None]
        of_entities = [i for i, query in enumerate(queries) if query.relation is not None]
        answers: dict[int, list[Prediction]] = {}
        if of_entities:
            asked = [queries[i] for i in of_entities]
            answers |= zip(of_entities, self._entities(asked), strict=True)
        if of_relations:
            asked = [queries[i] for i in of_relations]
            answers |= zip(of_relations, self._relations(asked), strict=True)
        return [answers[i] for i in range(len(queries))]

    def _entities(self, queries: Sequence[Query]) -> list[list[Prediction]]:
        """Tails of (head, relation, ?) and heads of (?, relation, tail)."""
        graph, model, names = self.graph, self.model, self.graph.entities
        entity, direction = query_ids(graph, queries)
        pool = self._pool(names)
        row = answer = torch.empty(0, dtype=torch.int64)
        if self.known == "drop":
            row, answer = graph.known().answers(entity, direction)
        device = model.entity.device
        asked = entity.to(device), direction.to(device)
        best = None
        _, columns = block_shape(len(queries), len(pool))
        for part in pool.split(columns):
            scores = model.score(*asked, part.to(device))
            if (at := non_finite(scores)) is not None:
                fact = queries[at[0]].answered(names[int(part[at[1]])])
                raise diverged(fact, float(scores[at]))
            place = torch.searchsorted(part, answer).clamp(max=len(part) - 1)
            here = part[place] == answer
            scores[row[here].to(device), place[here].to(device)] = -torch.inf
            values, found = top_k(scores, self.top)
            more = values.cpu(), part[found.cpu()]
            best = more if best is None else merge(best, more, self.top)
        assert best is not None, "there is at least one candidate"
        splits = self._splits(entity.unsqueeze(1), direction.unsqueeze(1), best[1])
        return self._in_words(queries, names, *best, splits)

    def _relations(self, queries: Sequence[Query]) -> list[list[Prediction]]:
        """Relations of (head, ?, tail), by their forward scores."""
        graph, names = self.graph, self.graph.relations
        head = graph.entities.ids(query.head or "" for query in queries).unsqueeze(1)
        tail = graph.entities.ids(query.tail or "" for query in queries).unsqueeze(1)
        pool = self._pool(names)
        scores = score_triples(
            self.model, torch.stack(torch.broadcast_tensors(head, pool, tail), -1).view(-1, 3)
        ).view(len(queries), len(pool))
        if (at := non_finite(scores)) is not None:
            raise diverged(queries[at[0]].answered(names[int(pool[at[1]])]), float(scores[at]))
        if self.known == "drop":
            scores = scores.masked_fill(graph.known().contains(head, pool, tail), -torch.inf)
        values, found = top_k(scores, self.top)
        relation = pool[found]
        return self._in_words(queries, names, values, relation, self._splits(head, relation, tail))

    def _pool(self, names: Vocabulary) -> Tensor:
        """Ids of the candidates, ascending."""
        if self.candidates is None:
            return torch.arange(len(names))
        return names.ids(self.candidates).sort().values

    def _splits(self, entity: Tensor, direction: Tensor, answer: Tensor) -> list[list[str | None]]:
        """The first split that holds each answer, where facts are to be marked."""
        found = torch.full(torch.broadcast_shapes(direction.shape, answer.shape), len(SPLITS))
        if self.known == "mark":
            for i, split in reversed(list(enumerate(SPLITS))):
                found[self.graph.known(split).contains(entity, direction, answer)] = i
        names = (*SPLITS, None)
        return [[names[i] for i in row] for row in found.tolist()]

    def _in_words(
        self,
        queries: Sequence[Query],
        names: Vocabulary,
        scores: Tensor,
        answers: Tensor,
        splits: list[list[str | None]],
    ) -> list[list[Prediction]]:
        rows = zip(queries, scores.tolist(), answers.tolist(), splits, strict=True)
        return [
            [
                Prediction(*query.answered(names[answer]), score, split)
                for score, answer, split in zip(*columns, strict=True)
                if score > -torch.inf  # dropped
            ]
            for query, *columns in rows
        ]


def query_ids(graph: KnowledgeGraph, queries: Sequence[Query]) -> tuple[Tensor, Tensor]:
    """Entity and direction of queries for tails or heads."""
    entity = graph.entities.ids(
        (query.tail if query.head is None else query.head) or "" for query in queries
    )
    relation = graph.relations.ids(query.relation or "" for query in queries)
    asks_heads = torch.tensor([query.head is None for query in queries])
    return entity, relation + asks_heads * len(graph.relations)


@torch.no_grad()
def score_triples(model: GoldE, triples: Tensor) -> Tensor:
    """Forward scores of any number of facts (n, 3), on the CPU, in bounded memory."""
    device = model.entity.device
    parts = [model.score_triples(part.to(device)).cpu() for part in triples.split(PAIRS_AT_ONCE)]
    return torch.cat(parts)


def checked_top(top: int) -> int:
    """How many answers are wanted, or an error."""
    if top < 1:
        raise GoldeError(f"top is {top}; ask for at least 1")
    return top
