"""Fitting probabilities to a run: validation facts against negatives, and how good they turn out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError
from golde.evaluation.calibration import (
    METHODS,
    Array,
    Fit,
    Ids,
    Labels,
    balanced,
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
    """Facts and negatives, the half that each is in, and their scores in every direction there is."""

    triples: Tensor  # (n, 3)
    labels: Labels  # (n,)
    half: Labels  # (n,)
    scores: dict[str, Array]  # forward, and backward where that is another score

    @property
    def relations(self) -> Ids:
        ids: Ids = self.triples[:, 1].numpy()
        return ids


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

    Negatives are ``each`` typed ones for either side of a fact, or those given as (m, 3). The test facts
    have no part in it but that none of them is taken for a negative.
    """
    _check(method, prior, each, graph)
    made = {"kind": "typed", "each": each, "seed": seed}
    if negatives is None:
        negatives, source = typed_negatives(graph, graph.valid, each, seed)
        half = _halves(graph.valid[:, 1], seed)
        halves = torch.cat([half, half[source]])
    else:
        known = graph.known().contains(*negatives.unbind(1))
        made = {"kind": "given", "known_left_out": int(known.sum()), "seed": seed}
        negatives = negatives[~known]
        halves = torch.cat([_halves(t[:, 1], seed) for t in (graph.valid, negatives)])
    triples = torch.cat([graph.valid, negatives])
    labels = np.arange(len(triples)) < len(graph.valid)
    used = balanced(labels, triples[:, 1].numpy()) > 0
    if (found := int((used & labels).sum())) < FEWEST_FACTS:
        raise GoldeError(
            f"{graph.name}: only {found} validation facts are of a relation that has negatives; "
            f"at least {FEWEST_FACTS} are needed to fit on: give --negatives FILE, or train with "
            "more validation facts"
        )
    keep = torch.from_numpy(used)
    triples, labels = triples[keep], labels[used]
    scores = _scores(model, graph, triples, progress)
    claims = Claims(triples, labels, halves[keep].numpy(), scores)
    fits = {way: fit(s, labels, claims.relations, method) for way, s in claims.scores.items()}
    counts = np.bincount(claims.relations[labels], minlength=len(graph.relations)).tolist()
    calibration = Calibration(
        method,
        prior,
        {graph.relations[r]: count for r, count in enumerate(counts) if count},
        {**made, "count": int((~labels).sum())},
        graph.relations,
        fits["forward"],
        fits.get("backward"),
    )
    return calibration, _judge(claims, method, prior, model.margin, graph)


def _check(method: str, prior: float, each: int, graph: KnowledgeGraph) -> None:
    if method not in METHODS:
        raise GoldeError(f"method is {method!r}; it must be one of {', '.join(METHODS)}")
    if not 0 < prior < 1:
        raise GoldeError(f"prior is {prior}; it must lie between 0 and 1, both excluded")
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
    device, parts, done = model.entity.device, [], 0
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


def _judge(
    claims: Claims, method: str, prior: float, margin: float, graph: KnowledgeGraph
) -> Judged:
    """Fit on one half, judge on the other, both ways, with all directions together."""
    relations, half = claims.relations, claims.half
    before = np.concatenate([sigmoid(scores + margin) for scores in claims.scores.values()])
    fitted = [
        _other_half(s, claims.labels, relations, half, method) for s in claims.scores.values()
    ]
    after = with_prior(np.concatenate(fitted), prior)
    ways = len(claims.scores)
    labels, relations = np.tile(claims.labels, ways), np.tile(relations, ways)
    weights = balanced(labels, relations) * np.where(labels, prior, 1 - prior)
    each = {}
    for r in np.unique(relations).tolist():
        at = relations == r
        one = labels[at], weights[at]
        each[graph.relations[r]] = reliability(before[at], *one), reliability(after[at], *one)
    return Judged(reliability(before, labels, weights), reliability(after, labels, weights), each)


def _other_half(scores: Array, labels: Labels, relations: Ids, half: Labels, method: str) -> Array:
    """The probability of every claim by the fit on the half that it is not in."""
    found = np.empty_like(scores)
    for here in (half, ~half):
        other: Fit = fit(scores[~here], labels[~here], relations[~here], method, share=0.5)
        found[here] = other(scores[here], relations[here])
    return found
