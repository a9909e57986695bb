"""Gathering evidence for a trained model: weights from the training facts, their say from validation.

What walks are worth is learned without the embedding (``golde.evidence.weights``). How much that counts
beside the embedding's score, and if wished what is added where some fact joins the two entities already, are
two numbers, chosen together by MRR on the validation facts. Each is 0 where nothing is gained.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError
from golde.evaluation.ranking import both_sides
from golde.evidence import Evidence, Walks, learn
from golde.inference.predict import Predictor
from golde.models import Model
from golde.progress import Progress, silent

HOPS = 2
"""Facts in a row that are weighed where no number is given."""

RIVALS = 200
"""Best answers of the embedding that an answer is ranked among while the two numbers are chosen."""

MOST_JUDGED = 20_000
"""Validation facts that the two numbers are chosen on, drawn where there are more."""

_STEPS = [2.0 ** (n / 2) for n in range(-12, 9)]
SCALES = (0.0, *_STEPS)
JOINED = (0.0, *_STEPS, *(-step for step in _STEPS))
"""What the two numbers are chosen from."""


class Gathered(NamedTuple):
    """How evidence was chosen."""

    evidence: Evidence
    before: float
    """Validation MRR of the embedding among its own best answers,"""
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
            "scale": evidence.scale,
            "joined": evidence.joined,
            "validation": {"before": self.before, "after": self.after, "facts": self.facts},
        }


class _Contest(NamedTuple):
    """Answers of n queries and their rivals: scores of the embedding and what walks say of both."""

    score: Tensor  # (n,)
    worth: Tensor
    joined: Tensor
    rival_score: Tensor  # (n, K)
    rival_worth: Tensor
    rival_joined: Tensor

    def mrr(self, scale: float, joined: float) -> float:
        """Of the answers among their rivals; a tie counts half."""
        own = self.score + scale * self.worth + joined * self.joined
        rivals = self.rival_score + scale * self.rival_worth + joined * self.rival_joined
        above = (rivals > own[:, None]).sum(1) + (rivals == own[:, None]).sum(1) / 2
        return float((1 / (1 + above.double())).mean())


def gather(
    model: Model,
    graph: KnowledgeGraph,
    hops: int = HOPS,
    *,
    joined: bool,
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
    evidence = Evidence(walks, learn(walks, seed=seed, progress=progress))
    draw = torch.Generator().manual_seed(seed)
    facts = graph.valid[torch.randperm(len(graph.valid), generator=draw)[:MOST_JUDGED]]
    contest = _contest(model, graph, evidence, facts)
    before = contest.mrr(0.0, 0.0)
    evidence.scale, evidence.joined, after = _best(contest, before, JOINED if joined else ())
    return Gathered(evidence, before, after, len(facts))


def _best(
    contest: _Contest, before: float, additions: Sequence[float]
) -> tuple[float, float, float]:
    """The two numbers, one after the other until neither gains any more, and the MRR they reach."""
    scale, joined, best = 0.0, 0.0, before
    while True:
        reached = best
        for one in SCALES:
            if (mrr := contest.mrr(one, joined)) > best:
                scale, best = one, mrr
        for one in additions:
            if (mrr := contest.mrr(scale, one)) > best:
                joined, best = one, mrr
        if best == reached:
            return scale, joined, best


@torch.no_grad()
def _contest(model: Model, graph: KnowledgeGraph, evidence: Evidence, facts: Tensor) -> _Contest:
    """The answers of both sides of facts, each among the best others that are not known."""
    entity, direction, answer = both_sides(facts, len(graph.relations))
    predictor = Predictor(model, graph, top=RIVALS, known="drop")
    parts = []
    for some in torch.arange(len(entity)).split(predictor.rows_at_once(len(entity))):
        scores, rivals = predictor.best(entity[some], direction[some])
        asked = entity[some].to(model.device), direction[some].to(model.device)
        own = answer[some].to(model.device)
        score = model.score_pairs(*asked, own)
        answers = torch.cat([own.unsqueeze(1), rivals.to(own)], 1)
        worth, joined = _said(evidence, *asked, answers)
        part = score, worth[:, 0], joined[:, 0], scores, worth[:, 1:], joined[:, 1:]
        parts.append([column.cpu() for column in part])
    return _Contest(*(torch.cat(column) for column in zip(*parts, strict=True)))


def _said(
    evidence: Evidence, entity: Tensor, direction: Tensor, answers: Tensor
) -> tuple[Tensor, Tensor]:
    """What walks say of some answers (B, K) of each query: their worth, and whether a fact joins the two."""
    found = evidence.found(entity, direction)
    code = found.query * evidence.walks.entities + found.answer  # ascending
    query = torch.arange(len(entity), device=entity.device).unsqueeze(1)
    wanted = query * evidence.walks.entities + answers
    if not len(code):
        return torch.zeros_like(wanted, dtype=torch.float32), torch.zeros_like(
            wanted, dtype=torch.bool
        )
    place = torch.searchsorted(code, wanted).clamp(max=len(code) - 1)
    there = code[place] == wanted
    return found.worth[place] * there, found.joined[place] & there
