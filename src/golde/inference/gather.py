"""Gathering evidence for a trained model: weights from the training facts, their say from validation.

What walks are worth is learned without the embedding (``golde.evidence.weights``). How it counts beside the
embedding's score is a few numbers, chosen together by MRR on the validation facts: what the worth of an
answer is multiplied by, how far an answer that walks lead to at all is *lifted* above those that none leads
to, and if wished what is added where some fact joins the two entities already. All are 0 where nothing is
gained.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor

from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError
from golde.evaluation.ranking import both_sides
from golde.evidence import Evidence, Walks, learn
from golde.inference.search import block_shape
from golde.models import Model
from golde.progress import Progress, silent

HOPS = 2
"""Facts in a row that are weighed where no number is given."""

RIVALS = 200
"""Best answers of the embedding, and best ends of walks, that an answer is ranked among for this choice."""

MOST_JUDGED = 5_000
"""Validation facts that it is made on, drawn where there are more."""

_STEPS = [2.0 ** (n / 2) for n in range(-12, 9)]
SCALES = _STEPS
LIFTS = [float(n) for n in range(0, 19, 2)]
JOINED = [0.0, *_STEPS, *(-step for step in _STEPS)]
"""What the numbers are chosen from."""


class Beside(NamedTuple):
    """How what walks say counts beside the score of the embedding."""

    scale: float = 0.0
    lift: float = 0.0
    joined: float = 0.0


class Gathered(NamedTuple):
    """How evidence was chosen."""

    evidence: Evidence
    chosen: Beside
    before: float
    """Validation MRR of the embedding among its own best answers and the best ends of walks,"""
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

    def mrr(self, beside: Beside) -> float:
        """Of the answers among their rivals; a tie counts half."""
        said = beside.scale * (self.worth + beside.lift * self.reached)
        scores = self.score + said + beside.joined * self.joined
        own, rivals = scores[:, :1], scores[:, 1:]
        above = (rivals > own).sum(1) + (rivals == own).sum(1) / 2
        return float((1 / (1 + above.double())).mean())


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
    contest = _contest(model, graph, Evidence(walks, weights), facts)
    before = contest.mrr(Beside())
    chosen, after = _best(contest, before, JOINED if joined else ())
    lifted = weights._replace(ends=weights.ends + chosen.lift)
    evidence = Evidence(walks, lifted, scale=chosen.scale, joined=chosen.joined)
    return Gathered(evidence, chosen, before, after, len(facts))


def _best(contest: _Contest, before: float, additions: Sequence[float]) -> tuple[Beside, float]:
    """The numbers, by turns until nothing is gained any more, and the MRR they reach.

    Of choices that are equally good, as where there are few facts, the one in the middle.
    """
    chosen, best = Beside(), before
    while True:
        reached = best
        for turn in (
            [chosen._replace(joined=one) for one in additions],
            [Beside(*two, chosen.joined) for two in product(SCALES, LIFTS)],
        ):
            found = [contest.mrr(one) for one in turn]
            if found and max(found) > best:
                best = max(found)
                equal = [one for one, mrr in zip(turn, found, strict=True) if mrr == best]
                chosen = equal[len(equal) // 2]
        if best == reached:
            return chosen, best


@torch.no_grad()
def _contest(model: Model, graph: KnowledgeGraph, evidence: Evidence, facts: Tensor) -> _Contest:
    """The answers of both sides of facts, each among the best others that are not known."""
    E, known, score = len(graph.entities), graph.known().to(model.device), model.scorer()
    queries = [column.to(model.device) for column in both_sides(facts, len(graph.relations))]
    parts = []
    for some in range(0, len(facts) * 2, rows := block_shape(len(facts) * 2, E)[0]):
        entity, direction, answer = (column[some : some + rows] for column in queries)
        asked, own = (entity, direction), answer.unsqueeze(1)
        scores = score(*asked, 0, E)
        worth, reached, joined = _said(evidence, *asked)
        answers = scores.gather(1, own)
        scores[known.answers(*asked)] = -torch.inf
        rivals = scores.topk(min(RIVALS, E)).indices
        ends = torch.where(reached & ~scores.isinf(), worth, -torch.inf)
        ends.scatter_(1, rivals, -torch.inf)  # those are there already
        best, further = ends.topk(min(RIVALS, E))
        more = scores.gather(1, further).masked_fill(best.isinf(), -torch.inf)
        who = torch.cat([own, rivals, further], 1)
        part = (
            torch.cat([answers, scores.gather(1, rivals), more], 1),
            *(said.gather(1, who) for said in (worth, reached, joined)),
        )
        parts.append([column.cpu() for column in part])
    return _Contest(*(torch.cat(column) for column in zip(*parts, strict=True)))


def _said(evidence: Evidence, entity: Tensor, direction: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What walks say of all answers (B, E): their worth, whether any leads there, whether a fact does."""
    found = evidence.found(entity, direction)
    at = found.query, found.answer
    worth = torch.zeros(len(entity), evidence.walks.entities, device=entity.device)
    reached, joined = (torch.zeros_like(worth, dtype=torch.bool) for _ in range(2))
    true = torch.ones_like(found.joined)
    return (
        worth.index_put_(at, found.worth),
        reached.index_put_(at, true),
        joined.index_put_(at, found.joined),
    )
