"""What the training facts add to the scores of answers, above all the walks from a query's entity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from golde.data.known import in_turn
from golde.errors import GoldeError
from golde.evidence.walks import MOST_FACTS, Walks
from golde.evidence.weights import Weights, places


class Found(NamedTuple):
    """What walks say of the answers that they lead to, (n,) each, by query and answer."""

    query: Tensor
    answer: Tensor
    worth: Tensor
    """The weights of the walks that lead there."""
    joined: Tensor
    """Whether a single fact leads there, other than the one that is asked about."""


class Heavy(NamedTuple):
    """A walk of much weight, in words."""

    weight: float
    walk: str
    answer: str


class Evidence:
    """Weights of walks, and how much they weigh beside the score of the embedding.

    All of it is on the device of the facts that are walked, as are the queries that it is asked about.
    """

    def __init__(
        self,
        walks: Walks,
        weights: Weights,
        *,
        scale: float = 1.0,
        joined: float = 0.0,
        unmentioned: float = 0.0,
    ) -> None:
        self.walks, self.weights = walks, weights
        self.scale, self.joined, self.unmentioned = scale, joined, unmentioned
        """What the worth of an answer is multiplied by; what is added where a fact joins the two already;
        what is added to an answer that no training fact mentions."""
        self._last: tuple[Tensor, Tensor, Found] | None = None

    @property
    def counts(self) -> bool:
        """Whether it changes any score."""
        return any((self.scale, self.joined, self.unmentioned))

    def found(self, entity: Tensor, direction: Tensor) -> Found:
        """What walks say of the answers to queries (B,)."""
        codes, weights, ends, _ = self.weights
        parts = []
        for some in self.walks.batches(entity):
            reached = self.walks.reached(entity[some])
            asked = direction[some]
            query, answer, pair = reached.pairs(self.walks.entities)
            place, weighed = places(self.walks, codes, asked[reached.query], reached.body)
            worth = ends[asked[query]].double()  # so that the order of a sum does not show
            each = weights[place[weighed]].double() * reached.strength[weighed]
            worth.index_add_(0, pair[weighed], each)
            joined = torch.zeros_like(query, dtype=torch.bool)
            joined[pair[self._joins(reached.body, asked[reached.query])]] = True
            parts.append((query + some.start, answer, worth.float(), joined))
        if not parts:
            empty = entity.new_empty(0)
            return Found(empty, empty, empty.float(), empty.bool())
        return Found(*(torch.cat(column) for column in zip(*parts, strict=True)))

    def _joins(self, body: Tensor, direction: Tensor) -> Tensor:
        """Whether a body is a single fact, other than the one that is asked about."""
        return (body < self.walks.base) & (body != direction + 1)

    def weighed(self, found: Found) -> Tensor:
        """What is added to the score of each answer that was found, (n,)."""
        return self.scale * found.worth + self.joined * found.joined

    def added_to(
        self, scores: Tensor, entity: Tensor, direction: Tensor, candidates: Tensor | range
    ) -> Tensor:
        """Scores (B, N) of candidates, ids or a range of them, with what is added to them."""
        found = self._kept(entity, direction)
        listed: slice | Tensor
        if isinstance(candidates, range):
            listed = slice(candidates.start, candidates.stop)
            column = found.answer - candidates.start
            which = ((column >= 0) & (column < len(candidates))).nonzero()[:, 0]
            column = column[which]
        else:
            listed = candidates
            ids, order = candidates.sort()
            which, place = in_turn(
                torch.searchsorted(ids, found.answer),
                torch.searchsorted(ids, found.answer, right=True),
            )
            column = order[place]
        more = self.weighed(found)[which].to(scores)
        scores = scores + self._of_unmentioned(listed).to(scores)
        return scores.index_put_((found.query[which], column), more, accumulate=True)  # none twice

    def of_pairs(self, entity: Tensor, direction: Tensor, answer: Tensor) -> Tensor:
        """What is added to one answer of each query, (B,); of several about one entity it walks once."""
        asked, which = torch.unique(entity, return_inverse=True)
        wanted, pair_of = torch.sort(which * self.walks.entities + answer)
        directions = direction[pair_of]
        worth = torch.zeros_like(wanted, dtype=torch.float64)
        joined = torch.zeros_like(wanted, dtype=torch.bool)
        reached_at_all = torch.zeros_like(joined)
        for some in self.walks.batches(asked):
            query, end, body, strength = self.walks.reached(asked[some])
            code = (query + some.start) * self.walks.entities + end
            row, pair = in_turn(
                torch.searchsorted(wanted, code), torch.searchsorted(wanted, code, right=True)
            )
            body = body[row]
            reached_at_all[pair] = True
            joined[pair[self._joins(body, directions[pair])]] = True
            place, weighed = places(self.walks, self.weights.codes, directions[pair], body)
            each = self.weights.weights[place[weighed]].double() * strength[row][weighed]
            worth.index_add_(0, pair[weighed], each)
        worth += self.weights.ends[directions] * reached_at_all
        added = torch.empty(len(wanted), device=wanted.device)
        added[pair_of] = self.scale * worth.float() + self.joined * joined
        return added + self._of_unmentioned(answer)

    def _of_unmentioned(self, answers: slice | Tensor) -> Tensor:
        """What is added to each of some answers for not being mentioned, whatever the query."""
        return self.unmentioned * self.walks.unmentioned[answers]

    def _kept(self, entity: Tensor, direction: Tensor) -> Found:
        """``found``, kept while the queries are the same, as their candidates come in blocks."""
        last = self._last
        if last is None or not (torch.equal(last[0], entity) and torch.equal(last[1], direction)):
            found = self.found(entity, direction)
            last = self._last = entity.clone(), direction.clone(), found
        return last[2]

    def heaviest(self, relations: Sequence[str], most: int) -> list[Heavy]:
        """The walks whose weights say most for or against an answer, in words."""
        codes, weights, *_ = self.weights
        bodies = self.walks.base**self.walks.hops
        found = []
        for at in weights.abs().argsort(descending=True, stable=True)[:most].tolist():
            direction, body = divmod(int(codes[at]), bodies)
            steps = [_in_words(d, relations) for d in self.walks.directions(body)]
            answer = _in_words(direction, relations)
            found.append(Heavy(float(weights[at]), " → ".join(steps), answer))
        return found

    def tensors(self) -> dict[str, Tensor]:
        """All but the facts, to be stored."""
        numbers = torch.tensor([self.scale, self.joined, self.unmentioned], dtype=torch.float64)
        hops = torch.tensor([self.walks.hops])
        weights = {name: tensor.cpu() for name, tensor in self.weights._asdict().items()}
        return {**weights, "beside_the_score": numbers, "hops": hops}

    @classmethod
    def from_tensors(
        cls, tensors: dict[str, Tensor], triples: Tensor, entities: int, relations: int
    ) -> Evidence:
        """What ``tensors`` stored, with the facts to walk along."""
        missing = {*Weights._fields, "hops", "beside_the_score"} - tensors.keys()
        if missing:
            raise GoldeError(f"holds no evidence: {min(missing)} is missing")
        weights = Weights(*(tensors[name].to(triples.device) for name in Weights._fields))
        stored = tensors["beside_the_score"]
        hops, numbers = tensors["hops"].flatten().tolist(), stored.flatten().tolist()
        lengths = [[n] for n in range(1, len(MOST_FACTS) + 1)]
        if len(numbers) == 2:  # stored before answers that no fact mentions counted
            numbers.append(0.0)
        right = stored.is_floating_point() and hops in lengths and len(numbers) == 3
        if not (right and _are_whole(weights, relations)):
            raise GoldeError("holds evidence that is damaged, or of another graph")
        evidence = cls(
            Walks(triples, entities, relations, hops[0]),
            weights,
            scale=numbers[0],
            joined=numbers[1],
            unmentioned=numbers[2],
        )
        codes, last = weights.codes, 2 * relations * evidence.walks.base ** hops[0]
        in_order = bool((codes.diff() > 0).all()) and (
            not len(codes) or 0 <= codes[0] <= codes[-1] < last
        )
        if not in_order or not all(map(math.isfinite, numbers)):
            raise GoldeError("holds evidence that is damaged, or of another graph")
        return evidence


def _are_whole(weights: Weights, relations: int) -> bool:
    """Whether weights that were read have the shapes and types of those that are written, and are finite."""
    codes, each, ends, asked = weights
    return (
        codes.dtype == asked.dtype == torch.int64
        and each.dtype == ends.dtype == torch.float32
        and codes.dim() == 1
        and codes.shape == each.shape
        and ends.shape == (2 * relations,)
        and asked.dim() == 0
        and bool(each.isfinite().all() and ends.isfinite().all())
    )


def _in_words(direction: int, relations: Sequence[str]) -> str:
    """The relation of a direction, marked where it is walked from tail to head."""
    backward, relation = divmod(direction, len(relations))
    return relations[relation] + "⁻¹" * backward
