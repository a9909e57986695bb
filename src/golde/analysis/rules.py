"""Rules between relations, judged twice: by the learned maps and by the training facts.

    symmetric     r(x, y) ⇒ r(y, x)               M_r M_r x ≈ x
    inverse       r₁(x, y) ⇒ r₂(y, x)             M_r₂ M_r₁ x ≈ x
    implication   r₁(x, y) ⇒ r₂(x, y)             M_r₁ x ≈ M_r₂ x
    composition   r₂(x, y), r₁(y, z) ⇒ r₃(x, z)   M_r₁ M_r₂ x ≈ M_r₃ x

``M_r = log ∘ G_r ∘ exp`` is what the forward direction of r does to tangent coordinates, each relation with
its own weights and curvature. Two matrices cannot tell whether a rule holds: with different weights or
curvatures they live on different surfaces. So the maps are applied to entities, one after the other.

**Error**: how far from the head's own target the body leads, measured by the head relation as its score
does, over how far a random entity lies: 0 where the maps agree, about 1 where they have nothing to do with
each other. It is taken over a sample of the entities that the body starts from, since a map is learned there.

**Confidence**: of the pairs that the body joins in train, the share that the head relation joins too
(the standard confidence of AMIE; Galárraga et al., 2013). Facts from an entity to itself are left out.

**PCA confidence** (AMIE's, for graphs with gaps): the same share, of those pairs alone where the entity that
the head relation starts from has some fact of it. Where a graph knows any answer it is taken to know all of
them; an entity without one is a gap, and does not speak against the rule.

With 1000 relations there are a billion compositions, so ``candidates`` come from the facts: which bodies
occur beside each relation is counted, and only frequent ones are judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from golde.analysis.components import component_terms, has_distance
from golde.analysis.links import Links
from golde.geometry import gather
from golde.models import Model
from golde.progress import Progress, silent

LOOKED_AT = 200
"""Facts of each relation beside which ``candidates`` looks for walks of two facts."""
NEIGHBOURS = 256
"""Facts about one end of such a fact that are looked at."""
BODIES = 10
"""Walks of two relations that are candidates for each head relation, the most frequent ones."""
LEAST_SUPPORT = 3
"""Pairs that body and head must both join."""
INSTANCES = 10_000
"""Pairs joined by a body that confidence is counted on; beyond, it is estimated on so many drawn walks."""
SAMPLE = 128
"""Entities that the maps of a rule are compared on."""

LEAST_CONFIDENCE, MOST_ERROR = 0.3, 0.5
"""A rule *holds* where its confidence is as high as the one and its error as low as the other."""

_FACTS_AT_ONCE, _RULES_AT_ONCE = 2048, 64


@dataclass(frozen=True)
class Rule:
    """``body ⇒ head``; relations as ids, the body in the order they are walked."""

    kind: str
    body: tuple[int, ...]
    head: int

    @property
    def mirrored(self) -> bool:
        """Whether the head leads back from where the body ends to where it starts."""
        return self.kind in ("symmetric", "inverse")

    def words(self, names: Sequence[str]) -> str:
        """The rule with letters for entities, such as ``x borders y ⇒ y borders x``."""
        steps = [f"{a} {names[r]} {b}" for r, a, b in zip(self.body, "xy", "yz", strict=False)]
        start, end = "yx" if self.mirrored else ("x", "yz"[len(self.body) - 1])
        return f"{', '.join(steps)} ⇒ {start} {names[self.head]} {end}"


@dataclass(frozen=True)
class JudgedRule:
    """A rule with what the facts and the maps say of it."""

    rule: Rule
    support: int
    """Pairs that body and head both join,"""
    instances: int
    """of those that the body joins, or of those drawn from them,"""
    answered: int
    """of which so many start, in the head, from an entity with some fact of the head relation."""
    drawn: bool
    error: float | None
    """None where scores are no distances, or where the body joins nothing."""

    @property
    def confidence(self) -> float:
        return self.support / self.instances if self.instances else 0.0

    @property
    def pca_confidence(self) -> float:
        return self.support / self.answered if self.answered else 0.0

    @property
    def holds(self) -> bool:
        """By both judges, or by the facts alone where the maps have no say."""
        agrees = self.error is None or self.error <= MOST_ERROR
        enough = self.support >= LEAST_SUPPORT and self.confidence >= LEAST_CONFIDENCE
        return enough and agrees


def find_rules(
    model: Model,
    links: Links,
    heads: Sequence[int] | None = None,
    *,
    progress: Progress = silent,
) -> list[JudgedRule]:
    """The rules that hold, for these head relations or for all of them, the most confident first."""
    model.refuse_divergence()
    judged = judge(model, links, candidates(links, heads), progress=progress)
    return [found for found in judged if found.holds]


def candidates(links: Links, heads: Sequence[int] | None = None) -> list[Rule]:
    """Rules that the facts suggest, for these head relations or for all of them.

    Of single steps all that explain a few facts; of walks of two facts the most frequent ones
    beside a sample of each head relation's facts.
    """
    wanted = range(links.relations) if heads is None else heads
    return [*_single_steps(links, wanted), *_double_steps(links, wanted)]


def judge(
    model: Model, links: Links, rules: Sequence[Rule], *, progress: Progress = silent
) -> list[JudgedRule]:
    """Support, confidence and error of each rule, the most confident first."""
    found: list[JudgedRule] = []
    for start in range(0, len(rules), _RULES_AT_ONCE):
        some = rules[start : start + _RULES_AT_ONCE]
        counted = [_count(links, rule) for rule in some]
        errors: list[float | None] = [None] * len(some)
        if has_distance(model):
            samples = [sample(one.start, model.entities) for one in counted]
            errors = map_errors(model, some, samples)
        for rule, error, one in zip(some, errors, counted, strict=True):
            found.append(
                JudgedRule(rule, one.support, len(one.start), one.answered, one.drawn, error)
            )
        progress(len(found), len(rules))
    return sorted(found, key=lambda one: -one.confidence)


@torch.no_grad()
def map_errors(
    model: Model, rules: Sequence[Rule], samples: Sequence[tuple[Tensor, Tensor]]
) -> list[float | None]:
    """The error of each rule on a ``sample`` of its own; None where that is empty."""
    device = model.device
    rule_of = torch.repeat_interleave(torch.tensor([len(entity) for entity, _ in samples]))
    entity, strangers = (torch.cat(each).to(device) for each in zip(*samples, strict=True))
    start = gather(model.entity, entity)  # (B, numbers)
    first = torch.tensor([rule.body[0] for rule in rules])[rule_of]
    second = torch.tensor([rule.body[-1] for rule in rules])[rule_of]
    head = torch.tensor([rule.head for rule in rules])[rule_of].to(device)
    further = torch.tensor([len(rule.body) > 1 for rule in rules])[rule_of]
    mirrored = torch.tensor([rule.mirrored for rule in rules])[rule_of].to(device).unsqueeze(1)

    end = model.transport(start, first.to(device))
    if further.any():
        moved = model.transport(end[further.to(device)], second[further].to(device))
        end = end.masked_scatter(further.to(device).unsqueeze(1), moved)
    query, answer = torch.where(mirrored, end, start), torch.where(mirrored, start, end)
    missed = component_terms(model, query, head, answer).sum(1).double().cpu()
    far = component_terms(model, query, head, gather(model.entity, strangers)).sum(1).double().cpu()
    sums = torch.zeros(2, len(rules), dtype=torch.float64)
    sums.index_add_(1, rule_of, torch.stack((missed, far)))
    return [
        missed / max(far, 1e-30) if len(entity) else None
        for missed, far, (entity, _) in zip(*sums.tolist(), samples, strict=True)
    ]


def involution_errors(model: Model, links: Links, relations: Sequence[int]) -> list[float]:
    """``M_r M_r x`` against x for each relation, as for a symmetric rule.

    On heads of its training facts, or on any entities where it has none.
    """

    def heads(relation: int) -> Tensor:
        facts = links.facts(relation)
        return facts[:, 0] if len(facts) else torch.arange(model.entities)

    found: list[float] = []
    for start in range(0, len(relations), _RULES_AT_ONCE):
        rules = [Rule("symmetric", (r,), r) for r in relations[start : start + _RULES_AT_ONCE]]
        samples = [sample(heads(rule.head), model.entities) for rule in rules]
        errors = map_errors(model, rules, samples)
        found += [error for error in errors if error is not None]  # all: no sample is empty
    return found


def sample(entity: Tensor, entities: int) -> tuple[Tensor, Tensor]:
    """Some of the entities, and as many random ones to compare with; the same whenever it is asked."""
    generator = torch.Generator().manual_seed(0)
    distinct = torch.unique(entity)
    some = distinct[torch.randperm(len(distinct), generator=generator)[:SAMPLE]]
    return some, torch.randint(entities, (len(some),), generator=generator)


class _Counted(NamedTuple):
    """The pairs that a body joins, or some of them, and what the facts say of them."""

    start: Tensor  # (n,) where the body starts
    support: int
    answered: int
    drawn: bool


def _count(links: Links, rule: Rule) -> _Counted:
    generator = torch.Generator().manual_seed(0)
    if len(rule.body) == 1:
        facts = links.facts(rule.body[0])
        total = len(facts)
        if total > INSTANCES:
            facts = facts[torch.randperm(total, generator=generator)[:INSTANCES]]
        x, _, z = facts.unbind(1)
    else:
        x, z, total = links.joined(rule.body[0], rule.body[1], INSTANCES, generator)
    ends = (z, x) if rule.mirrored else (x, z)
    head = torch.tensor(rule.head)
    holds = links.known.contains(ends[0], head, ends[1])
    answered = links.known.counts(ends[0], head) > 0
    return _Counted(x, int(holds.sum()), int(answered.sum()), total > INSTANCES)


def _single_steps(links: Links, heads: Sequence[int]) -> list[Rule]:
    """Relations that often stand beside another, the same way or the other way round."""
    found = []
    wanted = torch.zeros(links.relations, dtype=torch.bool)
    wanted[torch.tensor(list(heads), dtype=torch.int64)] = True
    for mirrored in (True, False):
        codes = [torch.empty(0, dtype=torch.int64)]
        for facts in links.triples.split(1 << 18):
            x, body, z = facts.unbind(1)
            which, head = links.between(z, x) if mirrored else links.between(x, z)
            codes.append((body[which] * links.relations + head)[wanted[head]])
        code, count = torch.unique(torch.cat(codes), return_counts=True)
        for pair in code[count >= LEAST_SUPPORT].tolist():
            body_, head_ = divmod(pair, links.relations)
            if mirrored:
                found.append(Rule("symmetric" if body_ == head_ else "inverse", (body_,), head_))
            elif body_ != head_:
                found.append(Rule("implication", (body_,), head_))
    return found


def _double_steps(links: Links, heads: Sequence[int]) -> list[Rule]:
    """Walks of two facts that are frequent beside the facts of each head relation."""
    generator = torch.Generator().manual_seed(0)
    looked_at = []
    for head in heads:
        facts = links.facts(head)
        looked_at.append(facts[torch.randperm(len(facts), generator=generator)[:LOOKED_AT]])
    R = links.relations
    codes, counts = [], []
    for facts in torch.cat(looked_at).split(_FACTS_AT_ONCE):
        x, relation, z = facts.unbind(1)
        paths = links.paths(x, z, NEIGHBOURS)
        walk = (relation[paths.which] * R + paths.first) * R + paths.second
        code, number = torch.unique(walk, return_inverse=True)
        # Several middles between the same two ends count once.
        once = torch.unique(paths.which * len(code) + number)
        codes.append(code)
        counts.append(torch.bincount(once % max(1, len(code)), minlength=len(code)))
    code, place = torch.unique(torch.cat(codes), return_inverse=True)
    count = torch.zeros_like(code).index_add_(0, place, torch.cat(counts))
    order = count.argsort(descending=True, stable=True)
    order = order[(code[order] // R**2).argsort(stable=True)]  # by head, the most frequent first
    kept: dict[int, int] = {}
    found = []
    for at in order[count[order] >= LEAST_SUPPORT].tolist():
        walk = int(code[at])
        head, first, second = walk // R**2, walk // R % R, walk % R
        kept[head] = kept.get(head, 0) + 1
        if kept[head] <= BODIES:
            found.append(Rule("composition", (first, second), head))
    return found
