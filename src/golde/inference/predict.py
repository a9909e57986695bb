"""The most plausible answers to queries by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from golde.data.graph import SPLITS, KnowledgeGraph
from golde.data.known import KnownFacts
from golde.data.vocabulary import Vocabulary
from golde.errors import GoldeError
from golde.inference.calibration import Calibration
from golde.inference.queries import Prediction, Query
from golde.inference.search import (
    SearchingScorer,
    block_shape,
    diverged,
    merge,
    non_finite,
    rows_at_once,
    top_k,
)
from golde.models import Model

KNOWN = ("keep", "drop", "mark")

_PAIRS_AT_ONCE = 1 << 14  # facts scored at a time where each needs a transformed query of its own


class Predictor:
    """Answers queries with one model; made once for many queries with the same wishes."""

    def __init__(
        self,
        model: Model,
        graph: KnowledgeGraph,
        *,
        top: int = 10,
        known: str = "mark",
        candidates: Iterable[str] | None = None,
        calibration: Calibration | None = None,
    ) -> None:
        if known not in KNOWN:
            raise GoldeError(f"known is {known!r}; it must be one of {', '.join(KNOWN)}")
        self.model, self.graph, self.top, self.known = model, graph, checked_top(top), known
        self.calibration = calibration
        self.candidates = None if candidates is None else set(candidates)
        if self.candidates == set():
            raise GoldeError("the list of candidates is empty; name at least one, or leave it out")
        nothing = KnownFacts(graph.train[:0], len(graph.entities), len(graph.relations))
        self.excluded = (graph.known() if known == "drop" else nothing).to(model.device)
        self.scorer = model.scorer()
        self.searcher: SearchingScorer | None = None
        if candidates is None and isinstance(self.scorer, SearchingScorer):
            self.searcher = self.scorer

    def stream(self, queries: Sequence[Query]) -> Iterator[list[Prediction]]:
        """The answers to each query, best first; every name is looked up before the first answer."""
        if not queries:
            return
        ids = torch.tensor([query_ids(self.graph, query) for query in queries])  # (n, 3)
        rows = self.rows_at_once(len(queries))
        for start in range(0, len(queries), rows):
            asked = queries[start : start + rows]
            for query, answers in zip(
                asked, self._block(asked, ids[start : start + rows]), strict=True
            ):
                yield self._calibrated(query, answers)

    def rows_at_once(self, queries: int) -> int:
        """How many of so many queries are answered at a time, in bounded memory."""
        if self.searcher is not None:
            return rows_at_once(queries, max(self.top, len(self.graph.relations)))
        return block_shape(queries, max(len(self.graph.entities), len(self.graph.relations)))[0]

    @torch.no_grad()
    def best(self, entity: Tensor, direction: Tensor) -> tuple[Tensor, Tensor]:
        """Scores and ids of the best answers to queries by id (B,), best first; (B, top), on the CPU.

        What is dropped scores −∞. There are fewer columns where there are fewer entities.
        """
        asked = entity.to(self.model.device), direction.to(self.model.device)
        found = self._searched(*asked)
        return self._best_of_blocks(*asked) if found is None else found

    @torch.no_grad()
    def _block(self, queries: Sequence[Query], ids: Tensor) -> list[list[Prediction]]:
        answers: dict[int, list[Prediction]] = {}
        of_relations = ids[:, 1] < 0
        for which, find in ((~of_relations, self._entities), (of_relations, self._relations)):
            places = which.nonzero()[:, 0].tolist()
            if places:
                found = find([queries[i] for i in places], ids[places])
                answers.update(zip(places, found, strict=True))
        return [answers[i] for i in range(len(queries))]

    def _calibrated(self, query: Query, answers: list[Prediction]) -> list[Prediction]:
        """Answers with their probabilities, where the run has them."""
        if self.calibration is None:
            return answers
        return self.calibration.annotated(answers, backward=query.head is None)

    def _entities(self, queries: Sequence[Query], ids: Tensor) -> list[list[Prediction]]:
        """Tails of (head, relation, ?) and heads of (?, relation, tail)."""
        graph, names = self.graph, self.graph.entities
        head, relation, tail = ids.unbind(1)
        entity = torch.where(head < 0, tail, head)
        direction = relation + (head < 0) * len(graph.relations)
        best = self.best(entity, direction)
        splits = self._splits(entity.unsqueeze(1), direction.unsqueeze(1), best[1])
        return _in_words(queries, names, *best, splits)

    def _searched(self, entity: Tensor, direction: Tensor) -> tuple[Tensor, Tensor] | None:
        """Scores and ids of the best as the scorer finds them, or None where it leaves them to blocks."""
        if self.searcher is None:
            return None
        known = self.excluded.ranges(entity, direction)
        values, best, doubt = self.searcher.top(entity, direction, self.top, known)
        return None if doubt.any() else (values.cpu(), best.cpu())

    def _best_of_blocks(self, entity: Tensor, direction: Tensor) -> tuple[Tensor, Tensor]:
        """Scores and ids of the best, block by block; (B, top) each or as many as there are."""
        pool = self._pool(self.graph.entities).to(entity.device)
        row, answer = self.excluded.answers(entity, direction)
        values = torch.empty(len(entity), 0, dtype=self.model.entity.dtype, device=entity.device)
        best = values, entity.new_empty(len(entity), 0)
        for part in pool.split(block_shape(len(entity), len(pool))[1]):
            scores = self._scores(entity, direction, part)
            if (at := non_finite(scores)) is not None:
                fact = self._fact(int(entity[at[0]]), int(direction[at[0]]), int(part[at[1]]))
                raise diverged(fact, float(scores[at]))
            place = torch.searchsorted(part, answer).clamp(max=len(part) - 1)
            here = part[place] == answer
            scores[row[here], place[here]] = -torch.inf
            values, columns = top_k(scores, self.top)
            best = merge(best, (values, part[columns]), self.top)
        return best[0].cpu(), best[1].cpu()

    def _scores(self, entity: Tensor, direction: Tensor, part: Tensor) -> Tensor:
        """Of some candidates; where all are, what does not depend on the query is kept for the next."""
        if self.candidates is None:
            return self.scorer(entity, direction, int(part[0]), int(part[-1]) + 1)
        return self.model.score(entity, direction, part)

    def _relations(self, queries: Sequence[Query], ids: Tensor) -> list[list[Prediction]]:
        """Relations of (head, ?, tail), by their forward scores."""
        graph, names = self.graph, self.graph.relations
        head, _, tail = ids.unsqueeze(2).unbind(1)  # (B, 1)
        pool = self._pool(names)
        facts = torch.stack(torch.broadcast_tensors(head, pool, tail), 2)  # (B, N, 3)
        scores = score_triples(self.model, facts.flatten(0, 1)).view(facts.shape[:2])
        if (at := non_finite(scores)) is not None:
            raise diverged(queries[at[0]].answered(names[int(pool[at[1]])]), float(scores[at]))
        if self.known == "drop":
            scores = scores.masked_fill(graph.known().contains(head, pool, tail), -torch.inf)
        values, columns = top_k(scores, self.top)
        relation = pool[columns]
        return _in_words(queries, names, values, relation, self._splits(head, relation, tail))

    def _fact(self, entity: int, direction: int, answer: int) -> tuple[str, str, str]:
        """An answer to a query by id, in words."""
        graph = self.graph
        backward, relation = divmod(direction, len(graph.relations))
        head, tail = (answer, entity) if backward else (entity, answer)
        return graph.entities[head], graph.relations[relation], graph.entities[tail]

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


def query_ids(graph: KnowledgeGraph, query: Query) -> tuple[int, int, int]:
    """Head, relation and tail of a query, −1 for the unknown."""
    return (
        -1 if query.head is None else graph.entities.id(query.head),
        -1 if query.relation is None else graph.relations.id(query.relation),
        -1 if query.tail is None else graph.entities.id(query.tail),
    )


@torch.no_grad()
def score_triples(model: Model, triples: Tensor) -> Tensor:
    """Forward scores of any number of facts (n, 3), on the CPU, in bounded memory."""
    device = model.device
    parts = [model.score_triples(part.to(device)).cpu() for part in triples.split(_PAIRS_AT_ONCE)]
    return torch.cat(parts)


def checked_top(top: int) -> int:
    """How many answers are wanted, or an error."""
    if top < 1:
        raise GoldeError(f"top is {top}; ask for at least 1")
    return top


def _in_words(
    queries: Sequence[Query],
    names: Vocabulary,
    scores: Tensor,
    answers: Tensor,
    splits: list[list[str | None]],
) -> list[list[Prediction]]:
    """Rows of scores, answers and splits as predictions, without those dropped (−∞)."""
    return [
        [
            Prediction(*query.answered(names[answer]), score, split)
            for score, answer, split in zip(*columns, strict=True)
            if score > -torch.inf
        ]
        for query, *columns in zip(queries, scores.tolist(), answers.tolist(), splits, strict=True)
    ]
