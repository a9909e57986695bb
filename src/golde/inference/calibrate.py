"""Fitting probabilities to a run, and how good they turn out.

To answers: of what ``predict`` shows to the questions of validation facts, so many were facts (``shown``).
To single claims, where a prior or negatives are given: validation facts against false claims, balanced.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError
from golde.evaluation.calibration import (
    Array,
    Fit,
    Ids,
    Labels,
    balanced,
    check_choice,
    fit,
    sigmoid,
    with_prior,
)
from golde.evaluation.negatives import typed_negatives
from golde.evaluation.ranking import both_sides
from golde.evaluation.reliability import reliability
from golde.inference.calibration import Calibration, Judged
from golde.inference.search import diverged
from golde.inference.shown import asked_facts, shown_answers
from golde.models import Model
from golde.progress import Progress, silent

FEWEST_FACTS = 10
"""Validation facts without which nothing is fitted at all."""

EVEN_CHANCES = 0.5
"""The prior of claims against negatives that are given without one."""

_PAIRS_AT_ONCE = 1 << 14  # claims scored at a time; each needs a transformed query of its own


class Claims(NamedTuple):
    """Facts and what is taken for false, with scores of one direction; (n,) each."""

    scores: Array
    labels: Labels
    relations: Ids
    weights: Array
    half: Labels  # which half of the data each is in

    def only(self, at: Labels) -> Claims:
        """Some of them."""
        columns = self.labels[at], self.relations[at], self.weights[at], self.half[at]
        return Claims(self.scores[at], *columns)


Ways = dict[str, Claims]
"""Claims as answers to queries for tails ("forward") and, where those have other scores, for heads."""


def calibrate(
    model: Model,
    graph: KnowledgeGraph,
    *,
    method: str = "platt",
    prior: float | None = None,
    each: int = 10,
    negatives: Tensor | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> tuple[Calibration, Judged]:
    """Fit probabilities on the validation facts, and judge them on halves that were not fitted.

    Without a ``prior`` they are fitted to the best ``each`` answers to every question of a validation fact,
    as often as those are facts. With one, to the facts against ``each`` typed negatives for either side, each
    relation balanced; or against ``negatives`` (m, 3), balanced in all, so that a relation with many of
    them is less often true from the start. Thresholds always part facts from negatives. The test facts
    have no part in it but that none of them is taken for false.
    """
    _check(method, prior, each, graph)
    if negatives is None:
        rows, source = typed_negatives(graph, graph.valid, each, seed)
        half = _halves(graph.valid[:, 1], seed)
        halves = torch.cat([half, half[source]])  # a negative is in the half of its fact
        seen = silent if prior is None else progress  # asking takes longer, and follows
        against = _against(model, graph, rows, halves, seen, each_relation=True)
        made: dict[str, Any] = {"kind": "typed", "each": each, "count": len(rows)}
    else:
        prior = EVEN_CHANCES if prior is None else prior
        known = graph.known().contains(*negatives.unbind(1))
        rows = negatives[~known]
        halves = torch.cat([_halves(part[:, 1], seed) for part in (graph.valid, rows)])
        against = _against(model, graph, rows, halves, progress, each_relation=False)
        made = {"kind": "given", "known_left_out": int(known.sum()), "count": len(rows)}
    fits = {way: _fit(claims, method) for way, claims in against.items()}
    facts, fitted = against["forward"].relations[against["forward"].labels], against
    if prior is None:
        asked = asked_facts(graph, seed)
        fitted = _answers(model, graph, asked, each, seed, progress)
        fits = {way: _parting_like(fits[way], _fit(fitted[way], method)) for way in fits}
        misses = sum(int((~claims.labels).sum()) for claims in fitted.values())
        facts, made = asked[:, 1].numpy(), {"kind": "answers", "each": each, "count": misses}
    counts = np.bincount(facts, minlength=len(graph.relations)).tolist()
    calibration = Calibration(
        method,
        prior,
        {graph.relations[r]: count for r, count in enumerate(counts) if count},
        {**made, "seed": seed},
        graph.relations,
        fits["forward"],
        fits.get("backward"),
    )
    return calibration, _judge(fitted, method, prior, model.margin, graph)


def _against(
    model: Model,
    graph: KnowledgeGraph,
    negatives: Tensor,
    half: Tensor,
    progress: Progress,
    *,
    each_relation: bool,
) -> Ways:
    """Validation facts and negatives (m, 3), the halves of both, balanced in each relation or in all."""
    triples = torch.cat([graph.valid, negatives])
    labels, relations = np.arange(len(triples)) < len(graph.valid), triples[:, 1].numpy()
    weights = balanced(labels, relations if each_relation else np.zeros_like(relations))
    used = weights > 0
    if (found := int((used & labels).sum())) < FEWEST_FACTS:
        raise GoldeError(
            f"{graph.name}: for {found} validation facts there are negatives to tell them from, and at "
            f"least {FEWEST_FACTS} are needed to fit on; give false facts with --negatives FILE"
        )
    scores = _scores(model, graph, triples[torch.from_numpy(used)], progress)
    columns = labels[used], relations[used], weights[used], half.numpy()[used]
    return {way: Claims(one, *columns) for way, one in scores.items()}


def _answers(
    model: Model, graph: KnowledgeGraph, facts: Tensor, each: int, seed: int, progress: Progress
) -> Ways:
    """Answers to the questions of facts, each counting the same; every relation halved, facts apart."""
    found = shown_answers(model, graph, facts, each, progress)
    relations = len(graph.relations)
    backward, relation = found.direction >= relations, found.direction % relations
    ways = {"forward": torch.ones_like(backward)}
    if model.two_ways:
        ways = {"forward": ~backward, "backward": backward}
    claims = {}
    for way, at in ways.items():
        here, right_here = relation[at], found.right[at]
        half = _halves(here + right_here * relations, seed)
        columns = found.score[at], right_here, here, torch.ones_like(found.score[at]), half
        claims[way] = Claims(*(column.numpy() for column in columns))
    return claims


def _parting_like(parting: Fit, curves: Fit) -> Fit:
    """Curves of one fit, with the thresholds of another that told facts from negatives."""
    relations = sorted({*curves.own, *parting.thresholds})
    thresholds = {r: parting.thresholds.get(r, parting.overall_threshold) for r in relations}
    return replace(curves, overall_threshold=parting.overall_threshold, thresholds=thresholds)


def _check(method: str, prior: float | None, each: int, graph: KnowledgeGraph) -> None:
    check_choice(method, prior)
    if each < 1:
        raise GoldeError(f"each is {each}; look at or draw at least 1 claim for a question")
    if len(graph.valid) < FEWEST_FACTS:
        raise GoldeError(
            f"{graph.name}: has {len(graph.valid)} validation facts, and at least {FEWEST_FACTS} are "
            "needed to fit on; train with more of them (of a single file, --valid SIZE holds some out)"
        )


def _halves(group: Tensor, seed: int) -> Tensor:
    """Two halves at random, every group halved between them, (n,)."""
    generator = torch.Generator().manual_seed(seed)
    shuffled = torch.randperm(len(group), generator=generator)
    order = shuffled[group[shuffled].argsort(stable=True)]
    half = torch.zeros(len(group), dtype=torch.bool)
    half[order[1::2]] = True
    return half


@torch.no_grad()
def _scores(
    model: Model, graph: KnowledgeGraph, triples: Tensor, progress: Progress
) -> dict[str, Array]:
    """Scores of claims as answers to queries for tails and, where those are others, for heads."""
    ways = ("forward", "backward") if model.two_ways else ("forward",)
    queries = torch.stack(both_sides(triples, len(graph.relations)))[:, : len(ways) * len(triples)]
    device, parts, done = model.device, [], 0
    for part in queries.split(_PAIRS_AT_ONCE, dim=1):
        parts.append(model.score_pairs(*part.to(device)).double().cpu())
        done += part.shape[1]
        progress(done, queries.shape[1])
    scores = torch.cat(parts)
    if len(bad := scores.isfinite().logical_not().nonzero()):
        h, r, t = triples[int(bad[0]) % len(triples)].tolist()
        names = graph.entities[h], graph.relations[r], graph.entities[t]
        raise diverged(names, float(scores[bad[0]]))
    return dict(zip(ways, scores.view(len(ways), -1).numpy(), strict=True))


def _fit(claims: Claims, method: str, share: float = 1.0) -> Fit:
    return fit(claims.scores, claims.labels, claims.relations, claims.weights, method, share)


def _judge(
    ways: Ways, method: str, prior: float | None, margin: float, graph: KnowledgeGraph
) -> Judged:
    """Fit on one half, judge on the other, both ways, with all directions together."""
    claims = Claims(*(np.concatenate(column) for column in zip(*ways.values(), strict=True)))
    before = sigmoid(claims.scores + margin)
    after = np.concatenate([_by_other_half(one, method) for one in ways.values()])
    labels, weights = claims.labels, claims.weights
    if prior is not None:
        after, weights = with_prior(after, prior), weights * np.where(labels, prior, 1 - prior)
    each = {}
    for r in np.unique(claims.relations[labels]).tolist():
        at = claims.relations == r
        one = labels[at], weights[at]
        each[graph.relations[r]] = reliability(before[at], *one), reliability(after[at], *one)
    return Judged(reliability(before, labels, weights), reliability(after, labels, weights), each)


def _by_other_half(claims: Claims, method: str) -> Array:
    """The probability of every claim by the fit on the half that it is not in."""
    found = np.empty_like(claims.scores)
    for here in (claims.half, ~claims.half):
        fitted = _fit(claims.only(~here), method, share=0.5)
        found[here] = fitted(claims.scores[here], claims.relations[here])
    return found
