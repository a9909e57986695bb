"""Gathering evidence for a trained model: weights from the training facts, their say from validation.

What walks are worth is learned without the embedding (``golde.evidence.weights``). How it counts beside the
embedding's score is a few numbers, chosen together by MRR on the validation facts: what the worth of an
answer is multiplied by, how far an answer that walks lead to at all is *lifted* above those that none leads
to, and if wished what is added where some fact joins the two entities already. All are 0 where nothing is
gained. Where MRR hardly differs mean rank decides: too low a lift sends answers far behind whose walks are
worth less than none, which MRR does not see. Answers that no training fact mentions are far behind as well:
the embedding was only ever told that they are wrong. What is added to them is chosen by mean rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor

from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError
from golde.evaluation.ranking import both_sides
from golde.evidence import Evidence, Walks, learn
from golde.inference.predict import Predictor
from golde.inference.search import block_shape
from golde.models import Model
from golde.progress import Progress, silent

RIVALS, REACHED = 200, 50
"""Best answers of the embedding, and best ends of walks, that an answer is ranked among for this choice,"""
DRAWN = 300
"""and entities that stand for all others, so many that training facts mention and so many that none does."""

MOST_JUDGED = 5_000
"""Validation facts that it is made on, drawn where there are more."""

SCALES = [2.0 ** (n / 2) for n in range(-12, 13)]
LIFTS = [float(n) for n in range(0, 19, 2)]
JOINED = [0.0, *SCALES, *(-scale for scale in SCALES)]
"""What the numbers are chosen from: lifts by steps of 1 in the end, that of answers which no training fact
mentions from 0 and ``SCALES``."""

HARDLY = 5e-4
"""MRR that a choice may be short of the best, if its mean rank is lower."""

_PAIRS_AT_ONCE = 1 << 14
_ROWS_AT_ONCE = 256  # what is ranked at a time stays in a processor's cache


class Beside(NamedTuple):
    """How what walks say counts beside the score of the embedding."""

    scale: float = 0.0
    lift: float = 0.0
    joined: float = 0.0
    unmentioned: float = 0.0


class Gathered(NamedTuple):
    """How evidence was chosen."""

    evidence: Evidence
    chosen: Beside
    before: float
    """Validation MRR of the embedding, by ranks among so many rivals,"""
    after: float
    """and with evidence."""
    facts: int
    """Validation facts that this was found on."""

    def as_dict(self) -> dict[str, Any]:
        """One object, ready for JSON."""
        evidence = self.evidence
        return {
            "hops": evidence.walks.hops,
            "bodies": len(evidence.weights.codes),
            "asked": int(evidence.weights.asked),
            **self.chosen._asdict(),
            "validation": {"before": self.before, "after": self.after, "facts": self.facts},
        }


class _Contest(NamedTuple):
    """Answers of n queries and their rivals: scores of the embedding and what walks say of each."""

    score: Tensor  # (n, 1 + K), the answer first; −∞ where there is no rival
    worth: Tensor
    reached: Tensor
    joined: Tensor
    unmentioned: Tensor
    kinds: Sequence[tuple[int, float]]
    """How many of the K rivals, in this order, stand for how many entities each."""

    def mrr(self, beside: Beside) -> float:
        """Of the answers among their rivals."""
        return float(self.ranks(beside).reciprocal().mean())

    def ranks(self, beside: Beside) -> Tensor:
        """Of the answers among their rivals, (n,); a tie counts half."""
        return torch.cat(
            [
                self._of(slice(start, start + _ROWS_AT_ONCE))._ranks(beside)
                for start in range(0, len(self.score), _ROWS_AT_ONCE)
            ]
        )

    def _of(self, some: slice) -> _Contest:
        score, worth, reached, joined, unmentioned, kinds = self
        rows = score[some], worth[some], reached[some], joined[some], unmentioned[some]
        return _Contest(*rows, kinds)

    def _ranks(self, beside: Beside) -> Tensor:
        scores = self.score + beside.scale * (self.worth + beside.lift * self.reached)
        scores += beside.joined * self.joined + beside.unmentioned * self.unmentioned
        own, rivals = scores[:, :1], scores[:, 1:]
        above = (rivals > own).to(torch.int8) + (rivals >= own).to(torch.int8)
        ranks = torch.ones_like(own[:, 0], dtype=torch.float64)
        for part, (_, stands_for) in zip(
            above.split([number for number, _ in self.kinds], 1), self.kinds, strict=True
        ):
            ranks += part.sum(1) * (stands_for / 2)
        return ranks


def gather(
    model: Model,
    graph: KnowledgeGraph,
    hops: int,
    *,
    joined: bool,
    most_walks: int,
    seed: int,
    progress: Progress = silent,
) -> Gathered:
    """Evidence for a model that has none yet."""
    if not len(graph.valid):
        raise GoldeError(
            f"{graph.name}: has no validation facts to weigh evidence by; train on a graph that has some"
        )
    model.refuse_divergence()
    walks = Walks(graph.train.to(model.device), len(graph.entities), len(graph.relations), hops)
    weights = learn(walks, seed=seed, most_walks=most_walks, unjoined=joined, progress=progress)
    draw = torch.Generator().manual_seed(seed)
    facts = graph.valid[torch.randperm(len(graph.valid), generator=draw)[:MOST_JUDGED]]
    contest = _contest(model, graph, Evidence(walks, weights), facts, _others(walks, draw))
    before = contest.mrr(Beside())
    chosen, after = _best(contest, before, walked=len(weights.codes) > 0, joined=joined)
    lifted = weights._replace(ends=weights.ends + chosen.lift)
    evidence = Evidence(
        walks,
        lifted,
        scale=chosen.scale,
        joined=chosen.joined,
        unmentioned=chosen.unmentioned,
    )
    return Gathered(evidence, chosen, before, after, len(facts))


def _best(contest: _Contest, before: float, *, walked: bool, joined: bool) -> tuple[Beside, float]:
    """The numbers, and the MRR they reach.

    By turns until nothing is gained any more; of choices that are equally good, as where there are few facts,
    the one in the middle. Then those of lowest mean rank about there that reach nearly as much.
    """
    chosen, best = Beside(), before

    def consider(turn: Iterable[Beside]) -> None:
        nonlocal chosen, best
        found = [(contest.mrr(one), one) for one in turn]
        if (highest := max(mrr for mrr, _ in found)) > best:
            best = highest
            equal = [one for mrr, one in found if mrr == best]
            chosen = equal[len(equal) // 2]

    while True:
        reached = best
        if joined:
            consider(chosen._replace(joined=one) for one in JOINED)
        if walked:
            consider(
                chosen._replace(scale=scale, lift=lift)
                for scale, lift in product([0.0, *SCALES[::2]], LIFTS)
            )
            consider(chosen._replace(scale=one) for one in SCALES)
        if best == reached:
            break

    def steady(turn: Iterable[Beside]) -> None:
        """The one of lowest mean rank, the first of equals, of those that reach nearly as much."""
        nonlocal chosen
        enough = max(before, best - HARDLY)
        lowest = float(contest.ranks(chosen).mean())
        for one in turn:
            ranks = contest.ranks(one)
            if ranks.mean() < lowest and ranks.reciprocal().mean() >= enough:
                chosen, lowest = one, float(ranks.mean())

    if chosen.scale:
        about = [one for one in SCALES if chosen.scale / 2 <= one <= chosen.scale * 2]
        lifts = [chosen.lift + more for more in range(-4, 5) if chosen.lift + more >= 0]
        steady([chosen._replace(scale=scale, lift=lift) for scale, lift in product(about, lifts)])
    if (chosen.scale or chosen.joined) and contest.unmentioned[:, 0].any():
        steady([chosen._replace(unmentioned=one) for one in SCALES])
    return chosen, contest.mrr(chosen)


def _others(walks: Walks, generator: torch.Generator) -> tuple[Tensor, list[tuple[int, float]]]:
    """Entities drawn to stand for all: how many that facts mention, and that none does, each for how many."""
    ids, kinds = [], []
    for kind in (~walks.unmentioned, walks.unmentioned):
        every = kind.cpu().nonzero()[:, 0]
        drawn = every[torch.randperm(len(every), generator=generator)[:DRAWN]]
        ids.append(drawn)
        kinds.append((len(drawn), len(every) / max(1, len(drawn))))
    return torch.cat(ids).to(walks.device), kinds


@torch.no_grad()
def _contest(
    model: Model,
    graph: KnowledgeGraph,
    evidence: Evidence,
    facts: Tensor,
    others: tuple[Tensor, list[tuple[int, float]]],
) -> _Contest:
    """The answers of both sides of facts, each among the best others that are not known and ``_others``."""
    drawn, kinds = others
    queries = both_sides(facts, len(graph.relations))
    predictor = Predictor(model, graph, top=RIVALS, known="drop")
    number = len(queries[0])
    rows = min(predictor.rows_at_once(number), block_shape(number, len(graph.entities))[0])
    parts = []
    for some in torch.arange(number).split(rows):
        scores, rivals = predictor.best(queries[0][some], queries[1][some])
        entity, direction, answer = (column[some].to(model.device) for column in queries)
        scores, rivals = scores.to(model.device), rivals.to(model.device)
        said = _Said.of(evidence, entity, direction)
        new = ~predictor.excluded.contains(entity[said.query], direction[said.query], said.answer)
        ends, missing = said.only(new).best(rivals)
        pairs = torch.cat([answer.unsqueeze(1), ends], 1)  # (B, 1 + REACHED)
        asked = (column.repeat_interleave(pairs.shape[1]) for column in (entity, direction))
        each = zip(*(c.split(_PAIRS_AT_ONCE) for c in (*asked, pairs.flatten())), strict=True)
        further = torch.cat([model.score_pairs(*one) for one in each]).view(pairs.shape)
        further[:, 1:].masked_fill_(missing, -torch.inf)
        beyond = drawn.expand(len(entity), -1)
        counted = predictor.excluded.contains(entity.unsqueeze(1), direction.unsqueeze(1), beyond)
        counted |= _are_in(beyond, torch.cat([rivals, ends.masked_fill(missing, -1)], 1))
        rest = model.score(entity, direction, drawn).masked_fill(counted, -torch.inf)
        score = torch.cat([further[:, :1], scores, further[:, 1:], rest], 1)
        everyone = torch.cat([answer.unsqueeze(1), rivals, ends, beyond], 1)
        parts.append((score, *said.about(everyone), evidence.walks.unmentioned[everyone]))
    score, worth, reached, joined, unmentioned = (
        torch.cat(column) for column in zip(*parts, strict=True)
    )
    listed = score.shape[1] - 1 - len(drawn)
    return _Contest(score, worth, reached, joined, unmentioned, [(listed, 1.0), *kinds])


def _are_in(ids: Tensor, listed: Tensor) -> Tensor:
    """Which of some ids (B, K) are listed in their row of (B, L)."""
    ordered = listed.sort(1).values
    place = torch.searchsorted(ordered, ids.contiguous()).clamp(max=ordered.shape[1] - 1)
    return ordered.gather(1, place) == ids


class _Said(NamedTuple):
    """What walks say of the ends of B queries, by query and answer, (n,) each."""

    queries: int
    entities: int
    query: Tensor
    answer: Tensor
    worth: Tensor
    joined: Tensor

    @classmethod
    def of(cls, evidence: Evidence, entity: Tensor, direction: Tensor) -> _Said:
        """Of queries (B,)."""
        return cls(len(entity), evidence.walks.entities, *evidence.found(entity, direction))

    def only(self, which: Tensor) -> _Said:
        """The rows of a mask (n,)."""
        return _Said(*self[:2], *(column[which] for column in self[2:]))

    def best(self, besides: Tensor) -> tuple[Tensor, Tensor]:
        """The best ends (B, REACHED) besides some (B, K), and which of them there are none of."""
        listed = self._codes(besides).flatten().sort().values
        code = self.query * self.entities + self.answer
        new = self.only(listed[torch.searchsorted(listed, code).clamp(max=len(listed) - 1)] != code)
        order = new.worth.argsort(descending=True, stable=True)
        order = order[new.query[order].argsort(stable=True)]
        first = torch.searchsorted(new.query, torch.arange(self.queries, device=code.device))
        place = torch.arange(len(order), device=code.device) - first[new.query[order]]
        order, place = order[place < REACHED], place[place < REACHED]
        ends = torch.zeros(self.queries, REACHED, dtype=code.dtype, device=code.device)
        missing = torch.ones_like(ends, dtype=torch.bool)
        at = new.query[order], place
        ends[at], missing[at] = new.answer[order], False
        return ends, missing

    def about(self, answers: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Of some answers (B, K): their worth, whether any walk leads there, whether a fact does."""
        code, wanted = self.query * self.entities + self.answer, self._codes(answers)
        if not len(code):
            nothing = torch.zeros_like(wanted, dtype=torch.bool)
            return nothing.float(), nothing, nothing
        place = torch.searchsorted(code, wanted).clamp(max=len(code) - 1)
        reached = code[place] == wanted
        return self.worth[place] * reached, reached, self.joined[place] & reached

    def _codes(self, answers: Tensor) -> Tensor:
        query = torch.arange(self.queries, device=answers.device).unsqueeze(1)
        return query * self.entities + answers
