"""What training, ranking and answering need of a model, and what all models share of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from golde.config import ModelConfig
from golde.errors import GoldeError
from golde.evidence import Evidence
from golde.geometry import gather

Side = Any
"""What a model makes of rows before it compares them: a tensor, or a core for each group of components."""


DRAWN_AT_ONCE = 1 << 22
"""Numbers of the start that are drawn in one go."""

BLOCK_NUMBERS = 1 << 24
"""Numbers of a table in host memory that are scored at a time."""


class Loops(NamedTuple):
    """Which answers and which candidates are the entity that their query asks about."""

    answer: Tensor  # (B,)
    candidate: Tensor  # (B, N)


class Model(nn.Module, ABC):
    """A table of entities, biases, and a score of every fact.

    A query is an entity and a *direction* ``d`` in [0, 2R): below R it asks for the tails of relation
    d, from R on for the heads of relation d − R. With ``reciprocal`` every direction has parameters of
    its own; without, head queries go through the inverse map with the same parameters, and both
    directions give one score.

    A kind of model says how a query moves its entity (``queries``), what is kept of a candidate
    (``candidates``), and how the two sides are compared (``_score_all``, ``_score_own``). The candidate
    side must not depend on the relation, and nothing as large as B × N × numbers may be held.
    """

    default_margin: ClassVar[float] = 6.0
    """The margin of a model that was built without one."""

    def __init__(
        self,
        config: ModelConfig,
        entities: int,
        relations: int,
        *,
        numbers: int,
        scale: float,
        generator: torch.Generator,
        rows: range | None = None,
    ) -> None:
        """``rows``: which of the entities it has, as one of several processes; all unless told otherwise."""
        super().__init__()
        self.config, self.relations = config, relations
        self.margin = self.margin_of(config)
        self.compiled = False  # the pointwise work of scoring; set by who knows that it pays
        self.evidence: Evidence | None = (
            None  # of facts in a row, beside the embedding; set once trained
        )
        start = uniform_rows(
            entities, numbers, range(entities) if rows is None else rows, scale, generator
        )
        self.entity = nn.Parameter(start)
        if config.bias:
            self.query_bias = nn.Parameter(torch.zeros(len(start)))
            self.answer_bias = nn.Parameter(torch.zeros(len(start)))
        if config.loop_bias:
            self.loop_bias = nn.Parameter(torch.zeros(relations * (2 if config.reciprocal else 1)))

    @abstractmethod
    def queries(self, rows: Tensor, direction: Tensor) -> Side:
        """The query side; rows (B, numbers) of the entities asked about."""

    @abstractmethod
    def candidates(self, rows: Tensor) -> Side:
        """The candidate side of rows (N, numbers); it does not depend on the relation."""

    @abstractmethod
    def transport(self, rows: Tensor, direction: Tensor) -> Tensor:
        """Where a direction leads rows (B, numbers) to, in the coordinates that entities are stored in."""

    @abstractmethod
    def _score_all(self, queries: Side, candidates: Side) -> Tensor:
        """Every query with every candidate, (B, N), without biases."""

    @abstractmethod
    def _score_own(self, queries: Side, candidates: Side) -> Tensor:
        """Query b with candidate b alone, (B,), without biases."""

    @property
    def two_ways(self) -> bool:
        """Whether a fact has another score as the answer to a query for heads than to one for tails."""
        return self.config.reciprocal or self.evidence is not None

    @property
    def entities(self) -> int:
        return self.entity.shape[0]

    @property
    def device(self) -> torch.device:
        """Where scores are worked out; the entity table may lie in host memory all the same."""
        return next(p.device for name, p in self.named_parameters() if name != "entity")

    def block(self, start: int, stop: int) -> Tensor:
        """Rows ``start..stop`` of the entity table, where scores are worked out."""
        return self.entity[start:stop].to(self.device)

    @classmethod
    def margin_of(cls, config: ModelConfig) -> float:
        """The margin γ that the loss adds to scores."""
        return cls.default_margin if config.margin is None else config.margin

    def penalised(self, rows: Tensor, direction: Tensor) -> Tensor:
        """What a regulariser keeps small: rows (2B, numbers) of the queries' entities and their answers."""
        return rows

    def tensors(self) -> dict[str, Tensor]:
        """All that scores depend on, by name."""
        return {name: parameter.detach() for name, parameter in self.named_parameters()}

    def refuse_divergence(self) -> None:
        """An error if a parameter is NaN or infinite: nothing can be read off such a model."""
        for name, parameter in self.named_parameters():
            if not parameter.isfinite().all():
                raise GoldeError(
                    f"{name} holds what is no finite number; the model has diverged: "
                    "train again with a lower training.learning_rate"
                )

    def score(self, entity: Tensor, direction: Tensor, candidates: Tensor | None = None) -> Tensor:
        """Scores of every candidate (all entities when none are given) for every query, (B, N)."""
        queries = self.queries(gather(self.entity, entity), direction)
        if candidates is None:
            scores = self._score_every(queries)
        else:
            scores = self._score_all(queries, self.candidates(gather(self.entity, candidates)))
        scores = self._with_biases_of(scores, entity, direction, candidates)
        if self.evidence is None:
            return scores
        which = range(self.entities) if candidates is None else candidates
        return self.evidence.added_to(scores, entity, direction, which)

    def score_points(self, rows: Tensor, direction: Tensor) -> Tensor:
        """Scores of all entities for queries about points (B, numbers) that need not be entities, (B, E).

        A point has no bias as a query, nor as the answer to itself; that of each answer counts.
        """
        scores = self._score_every(self.queries(rows, direction))
        if not self.config.bias:
            return scores
        if self.config.reciprocal:
            return scores + self.answer_bias
        asks_tails = (direction < self.relations).unsqueeze(1)
        return scores + torch.where(asks_tails, self.answer_bias, self.query_bias)

    def scorer(self) -> Callable[[Tensor, Tensor, int, int], Tensor]:
        """Scores against candidates ``start..stop``, as ranking asks for them.

        What does not depend on the query is kept from call to call while the range stays the same,
        so the parameters must not change in between. Several threads may ask.
        """
        kept: dict[tuple[int, int], Side] = {}

        def score(entity: Tensor, direction: Tensor, start: int, stop: int) -> Tensor:
            side = kept.get((start, stop))
            if side is None:
                kept.clear()
                side = kept[start, stop] = self.candidates(self.block(start, stop))
            candidates = torch.arange(start, stop, device=entity.device)
            queries = self.queries(gather(self.entity, entity), direction)
            scores = self._score_all(queries, side)
            scores = self._with_biases_of(scores, entity, direction, candidates)
            if self.evidence is None:
                return scores
            return self.evidence.added_to(scores, entity, direction, range(start, stop))

        return score

    def score_pairs(self, entity: Tensor, direction: Tensor, answer: Tensor) -> Tensor:
        """The score of one answer per query, (B,)."""
        queries = self.queries(gather(self.entity, entity), direction)
        scores = self._score_own(queries, self.candidates(gather(self.entity, answer)))
        if self.config.bias:
            scores = scores + self._bias(entity, direction, answer)
        if self.config.loop_bias:
            scores = scores + self._at_loops(entity == answer, self._looping(direction))
        if self.evidence is not None:
            scores = scores + self.evidence.of_pairs(entity, direction, answer).to(scores)
        return scores

    def score_triples(self, triples: Tensor) -> Tensor:
        """The score of each (head, relation, tail), in the forward direction, (n,)."""
        head, relation, tail = triples.unbind(1)
        return self.score_pairs(head, relation, tail)

    def score_batch(
        self,
        rows: Tensor,
        entity: Tensor,
        direction: Tensor,
        answer: Tensor,
        candidates: Tensor,
        *,
        own: bool,
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """Scores of answers (B,), if asked for of the queries' own entities (B,), of candidates (B, N).

        ``rows`` (2B + N, numbers) are those of the entities, the answers and the candidates, gathered
        by the caller at once: every gather from the table has a gradient as large as the table.
        """
        scores = self._score_rows(rows, direction, own)
        if self.config.bias:
            # Each table is gathered from once, since every gather has a gradient as large as the table.
            biases = self._bias_rows(torch.cat((entity, answer, candidates)))
            heads, answers, others = biases.split([len(entity), len(answer), len(candidates)])
            push = self._asking(heads, direction)
            scores = self._biased(scores, push, heads, answers, others, direction)
        if self.config.loop_bias:
            loops = Loops(answer == entity, candidates == entity.unsqueeze(1))
            scores = self._looped(scores, self._looping(direction), loops)
        return scores

    def score_parts(
        self,
        heads: Tensor,
        answers: Tensor,
        candidates: Tensor,
        direction: Tensor,
        loops: Loops,
        *,
        own: bool,
        share: Callable[[Side], Side],
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """``score_batch`` of rows ``with_biases``; what scores of a query have in common goes through
        ``share``, where processes that score other candidates add up its gradient."""
        numbers = self.entity.shape[1]
        (head, head_bias), (answer, answer_bias), (other, other_bias) = (
            part.tensor_split([numbers], 1) for part in (heads, answers, candidates)
        )
        common = {"queries": self.queries(head, direction)}
        if self.config.bias:
            common["push"] = self._asking(head_bias, direction)
        if self.config.loop_bias:
            common["loop"] = self._looping(direction)
        common = dict(zip(common, share(list(common.values())), strict=True))
        scores = self._score_sides(common["queries"], head, answer, other, own)
        if self.config.bias:
            biases = head_bias, answer_bias, other_bias
            scores = self._biased(scores, common["push"], *biases, direction)
        if self.config.loop_bias:
            scores = self._looped(scores, common["loop"], loops)
        return scores

    def score_between(
        self, heads: Tensor, candidates: Tensor, direction: Tensor, loops: Tensor
    ) -> Tensor:
        """Scores of every candidate for every query, (B, N), both as rows ``with_biases``.

        ``loops`` (B, N) says which candidate is the query's own entity.
        """
        numbers = self.entity.shape[1]
        queries = self.queries(heads[:, :numbers], direction)
        scores = self._score_all(queries, self.candidates(candidates[:, :numbers]))
        if self.config.bias:
            push = self._asking(heads[:, numbers:], direction).unsqueeze(1)
            pull = self._answering(candidates[:, numbers:], direction.unsqueeze(1))
            scores = scores + (push + pull)
        if self.config.loop_bias:
            scores = scores + self._at_loops(loops, self._looping(direction).unsqueeze(1))
        return scores

    def with_biases(self, rows: Tensor, entity: Tensor) -> Tensor:
        """Rows of entities with their two biases as further numbers, if there are any."""
        return torch.cat((rows, self._bias_rows(entity)), 1) if self.config.bias else rows

    def _score_rows(
        self, rows: Tensor, direction: Tensor, own: bool
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """``score_batch`` without biases."""
        B = len(direction)
        heads, answers, candidates = rows.split([B, B, len(rows) - 2 * B])
        return self._score_sides(self.queries(heads, direction), heads, answers, candidates, own)

    def _score_sides(
        self, queries: Side, heads: Tensor, answers: Tensor, candidates: Tensor, own: bool
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        positive = self._score_own(queries, self.candidates(answers))
        loops = self._score_own(queries, self.candidates(heads)) if own else None
        return positive, loops, self._score_all(queries, self.candidates(candidates))

    def _score_every(self, queries: Side) -> Tensor:
        """Every query with every entity, (B, E), without biases; of a table elsewhere block by block."""
        if self.entity.device == self.device:
            return self._score_all(queries, self.candidates(self.entity))
        few = max(1, BLOCK_NUMBERS // self.entity.shape[1])
        blocks = (self.block(at, at + few) for at in range(0, self.entities, few))
        return torch.cat([self._score_all(queries, self.candidates(one)) for one in blocks], 1)

    def _with_biases_of(
        self, scores: Tensor, entity: Tensor, direction: Tensor, candidates: Tensor | None
    ) -> Tensor:
        """Scores (B, N) of queries and candidates, all entities when none are given, with their biases."""
        if not (self.config.bias or self.config.loop_bias):
            return scores
        if candidates is None:
            candidates = torch.arange(self.entities, device=entity.device)
        entity = entity.unsqueeze(1)
        if self.config.bias:
            scores = scores + self._bias(entity, direction.unsqueeze(1), candidates)
        if self.config.loop_bias:
            loop = self._looping(direction).unsqueeze(1)
            scores = scores + self._at_loops(candidates == entity, loop)
        return scores

    def _bias(self, entity: Tensor, direction: Tensor, answer: Tensor) -> Tensor:
        """``b_query + b_answer``; one score for both directions needs ``b_head + b_tail`` instead."""

        def of(bias: Tensor, index: Tensor) -> Tensor:
            return gather(bias.unsqueeze(1), index.flatten()).view(index.shape)

        forward = of(self.query_bias, entity) + of(self.answer_bias, answer)
        if self.config.reciprocal:
            return forward
        backward = of(self.answer_bias, entity) + of(self.query_bias, answer)
        return torch.where(direction < self.relations, forward, backward)

    def _bias_rows(self, entity: Tensor) -> Tensor:
        """Of each entity the bias as the one asked about and as an answer, (n, 2)."""
        both = (self.query_bias, self.answer_bias)
        return torch.cat([gather(bias.unsqueeze(1), entity) for bias in both], 1)

    def _asking(self, biases: Tensor, direction: Tensor) -> Tensor:
        """What a query adds to all its scores, from the ``_bias_rows`` of its entity, (B,)."""
        if self.config.reciprocal:
            return biases[:, 0]
        return torch.where(direction < self.relations, biases[:, 0], biases[:, 1])

    def _answering(self, biases: Tensor, direction: Tensor) -> Tensor:
        """What an answer adds, from the ``_bias_rows`` of answers; direction broadcasts against them."""
        if self.config.reciprocal:
            return biases[..., 1]
        return torch.where(direction < self.relations, biases[..., 1], biases[..., 0])

    def _biased(
        self,
        scores: tuple[Tensor, Tensor | None, Tensor],
        push: Tensor,
        heads: Tensor,
        answers: Tensor,
        candidates: Tensor,
        direction: Tensor,
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """The scores of ``score_batch`` with what queries add to them and with the answers' biases."""
        positive, loops, shared = scores
        positive = positive + (push + self._answering(answers, direction))
        if loops is not None:
            loops = loops + (push + self._answering(heads, direction))
        other = self._answering(candidates, direction.unsqueeze(1))
        return positive, loops, shared + (push.unsqueeze(1) + other)

    def _looping(self, direction: Tensor) -> Tensor:
        """What a query adds to the score of its own entity, (B,)."""
        which = direction if self.config.reciprocal else direction % self.relations
        return gather(self.loop_bias.unsqueeze(1), which)[:, 0]

    @staticmethod
    def _at_loops(loops: Tensor, loop: Tensor) -> Tensor:
        """``loop`` where a candidate is the query's own entity; the two broadcast."""
        return torch.where(loops, loop, torch.zeros_like(loop))

    def _looped(
        self, scores: tuple[Tensor, Tensor | None, Tensor], loop: Tensor, loops: Loops
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """The scores of ``score_batch`` with what queries add where they lead to their own entity."""
        positive, own, shared = scores
        positive = positive + self._at_loops(loops.answer, loop)
        own = None if own is None else own + loop
        return positive, own, shared + self._at_loops(loops.candidate, loop.unsqueeze(1))


def uniform_rows(
    total: int, numbers: int, rows: range, scale: float, generator: torch.Generator
) -> Tensor:
    """Some rows of a table (total, numbers) drawn uniformly from ±scale; they do not depend on which.

    The others are drawn too, a few at a time, and forgotten.
    """
    found = torch.empty(len(rows), numbers)
    if found.is_meta:  # only its size is asked for
        return found
    few = max(1, DRAWN_AT_ONCE // numbers)
    for begin, end, kept in (
        (0, rows.start, False),
        (rows.start, rows.stop, True),
        (rows.stop, total, False),
    ):
        for at in range(begin, end, few):
            stop = min(at + few, end)
            part = found[at - begin : stop - begin] if kept else torch.empty(stop - at, numbers)
            part.uniform_(-scale, scale, generator=generator)
    return found
