"""Fitting probabilities to a run: validation facts against negatives, and how good they turn out."""

from __future__ import annotations

from typing import NamedTuple

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
from golde.models import Model
from golde.progress import Progress, silent

FEWEST_FACTS = 10
"""Validation facts without which nothing is fitted at all."""

_PAIRS_AT_ONCE = 1 << 14  # claims scored at a time; each needs a transformed query of its own


class Claims(NamedTuple):
    """Facts and negatives, how much each counts, and the half that it is in."""

    triples: Tensor  # (n, 3)
    labels: Labels  # (n,)
    weights: Array  # (n,)
    half: Labels  # (n,)

    @property
    def relations(self) -> Ids:
        ids: Ids = self.triples[:, 1].numpy()
        return ids

    def only(self, at: Labels) -> Claims:
        """Some of them."""
        triples = self.triples[torch.from_numpy(at)]
        return Claims(triples, self.labels[at], self.weights[at], self.half[at])


def calibrate(
    model: Model,
    graph: KnowledgeGraph,
    *,
    method: str = "platt",
    prior: float = 0.5,
    each: int = 10,
    negatives: Tensor | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> tuple[Calibration, Judged]:
    """Fit probabilities on the validation facts, and judge them on halves that were not fitted.

    Negatives are ``each`` typed ones for either side of a fact, each relation balanced; or those given as
    (m, 3), balanced in all, so that a relation with many of them is less often true from the start. The
    test facts have no part in it but that none of them is taken for a negative.
    """
    _check(method, prior, each, graph)
    if negatives is None:
        claims = _against_typed(graph, each, seed)
        made = {"kind": "typed", "each": each}
    else:
        known = graph.known().contains(*negatives.unbind(1))
        claims = _against_given(graph, negatives[~known], seed)
        made = {"kind": "given", "known_left_out": int(known.sum())}
    used = claims.weights > 0
    if (found := int((used & claims.labels).sum())) < FEWEST_FACTS:
        raise GoldeError(
            f"{graph.name}: for {found} validation facts there are negatives to tell them from, and at "
            f"least {FEWEST_FACTS} are needed to fit on; give false facts with --negatives FILE"
        )
    claims = claims.only(used)
    scores = _scores(model, graph, claims.triples, progress)
    ways = {way: _fit(claims, one, method) for way, one in scores.items()}
    counts = np.bincount(claims.relations[claims.labels], minlength=len(graph.relations)).tolist()
    calibration = Calibration(
        method,
        prior,
        {graph.relations[r]: count for r, count in enumerate(counts) if count},
        {**made, "seed": seed, "count": int((~claims.labels).sum())},
        graph.relations,
        ways["forward"],
        ways.get("backward"),
    )
    return calibration, _judge(claims, scores, method, prior, model.margin, graph)


def _against_typed(graph: KnowledgeGraph, each: int, seed: int) -> Claims:
    """Validation facts and their typed negatives; a negative is in the half of its fact."""
    negatives, source = typed_negatives(graph, graph.valid, each, seed)
    triples, labels = _joined(graph.valid, negatives)
    half = _halves(graph.valid[:, 1], seed)
    weights = balanced(labels, triples[:, 1].numpy())
    return Claims(triples, labels, weights, torch.cat([half, half[source]]).numpy())


def _against_given(graph: KnowledgeGraph, negatives: Tensor, seed: int) -> Claims:
    """Validation facts and false ones that somebody has."""
    triples, labels = _joined(graph.valid, negatives)
    half = torch.cat([_halves(part[:, 1], seed) for part in (graph.valid, negatives)])
    weights = balanced(labels, np.zeros(len(labels), dtype=np.int64))
    return Claims(triples, labels, weights, half.numpy())


def _joined(facts: Tensor, negatives: Tensor) -> tuple[Tensor, Labels]:
    triples = torch.cat([facts, negatives])
    return triples, np.arange(len(triples)) < len(facts)


def _check(method: str, prior: float, each: int, graph: KnowledgeGraph) -> None:
    check_choice(method, prior)
    if each < 1:
        raise GoldeError(f"each is {each}; draw at least 1 negative for a side")
    if len(graph.valid) < FEWEST_FACTS:
        raise GoldeError(
            f"{graph.name}: has {len(graph.valid)} validation facts, and at least {FEWEST_FACTS} are "
            "needed to fit on; train with more of them (of a single file, --valid SIZE holds some out)"
        )


def _halves(relation: Tensor, seed: int) -> Tensor:
    """Two halves at random, every relation halved between them, (n,)."""
    generator = torch.Generator().manual_seed(seed)
    shuffled = torch.randperm(len(relation), generator=generator)
    order = shuffled[relation[shuffled].argsort(stable=True)]
    half = torch.zeros(len(relation), dtype=torch.bool)
    half[order[1::2]] = True
    return half


@torch.no_grad()
def _scores(
    model: Model, graph: KnowledgeGraph, triples: Tensor, progress: Progress
) -> dict[str, Array]:
    """Scores of claims as answers to queries for tails and, where those are others, for heads."""
    ways = ("forward", "backward") if model.config.reciprocal else ("forward",)
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


def _fit(claims: Claims, scores: Array, method: str, share: float = 1.0) -> Fit:
    return fit(scores, claims.labels, claims.relations, claims.weights, method, share)


def _judge(
    claims: Claims,
    scores: dict[str, Array],
    method: str,
    prior: float,
    margin: float,
    graph: KnowledgeGraph,
) -> Judged:
    """Fit on one half, judge on the other, both ways, with all directions together."""
    before = np.concatenate([sigmoid(one + margin) for one in scores.values()])
    fitted = np.concatenate([_by_other_half(claims, one, method) for one in scores.values()])
    after = with_prior(fitted, prior)
    relations, labels = np.tile(claims.relations, len(scores)), np.tile(claims.labels, len(scores))
    weights = np.tile(claims.weights, len(scores)) * np.where(labels, prior, 1 - prior)
    each = {}
    for r in np.unique(relations[labels]).tolist():
        at = relations == r
        one = labels[at], weights[at]
        each[graph.relations[r]] = reliability(before[at], *one), reliability(after[at], *one)
    return Judged(reliability(before, labels, weights), reliability(after, labels, weights), each)


def _by_other_half(claims: Claims, scores: Array, method: str) -> Array:
    """The probability of every claim by the fit on the half that it is not in."""
    found = np.empty_like(scores)
    for here in (claims.half, ~claims.half):
        fitted = _fit(claims.only(~here), scores[~here], method, share=0.5)
        found[here] = fitted(scores[here], claims.relations[here])
    return found
