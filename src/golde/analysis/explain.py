"""Why a model finds a fact plausible: the components, the facts and the rules behind its score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from golde.analysis.components import component_terms, distances_from, has_distance
from golde.analysis.links import Links
from golde.analysis.rules import JudgedRule, Rule, judge
from golde.data.graph import SPLITS, KnowledgeGraph
from golde.errors import GoldeError
from golde.evaluation.evaluate import rank_triples
from golde.evaluation.ranking import Scorer
from golde.geometry import GEOMETRIES, gather
from golde.models import GoldE, Model
from golde.progress import Progress, silent

CANDIDATES = 4096
"""Other entities that a fact is compared with, component by component: all, or so many drawn at random."""
BODIES = 100
"""Walks of two relations between the two entities that are judged, those with the most middles first."""
MIDDLES = 100_000
"""Facts about one of the two entities that are looked through for such walks."""

Fact = tuple[str, str, str]


@dataclass(frozen=True)
class Contribution:
    """What one component, all of one geometry, evidence or the biases add to the distance of the fact."""

    space: str
    """Such as ``Q9 #3``, counted from 1, or ``hyperbolic``."""
    distance: float
    """Weighted, as it enters the score."""
    typical: float
    """The median over other tails."""

    @property
    def favour(self) -> float:
        """How much nearer than is typical: positive where it speaks for the fact."""
        return self.typical - self.distance


@dataclass(frozen=True)
class NearFact:
    """A training fact and how far it is, in tangent coordinates."""

    fact: Fact
    distance: float


@dataclass(frozen=True)
class AppliedRule:
    """A rule whose body the training facts fulfil for the two entities, and those facts."""

    words: str
    kind: str
    support: int
    instances: int
    drawn: bool
    confidence: float
    pca_confidence: float
    error: float | None
    holds: bool
    because: list[Fact]
    """One instance of the body,"""
    ways: int
    """of so many."""


@dataclass(frozen=True)
class Explanation:
    """All of it, in words and figures; ``as_dict`` for JSON."""

    fact: Fact
    known: str | None
    """The split that holds the fact."""
    score: float
    probability: float | None
    """Of a run that is calibrated."""
    tail_rank: float
    head_rank: float
    """Filtered; heads are asked for in their own direction."""
    entities: int
    geometries: list[Contribution]
    components: list[Contribution]
    """The most favourable first; both are empty where scores are no distances."""
    supporting: list[NearFact]
    """Training facts of the same relation; the distance is that of the heads plus that of the tails."""
    about_head: list[NearFact]
    about_tail: list[NearFact]
    """Training facts about each, those whose other entity is nearest to the other end of the fact first; none
    is listed twice, and none that is among the supporting."""
    about_head_count: int
    about_tail_count: int
    typical_distance: float
    """The median distance from head and tail to other entities, one plus the other."""
    rules: list[AppliedRule]
    """The most confident first."""

    def as_dict(self) -> dict[str, Any]:
        found = asdict(self)
        for name in ("geometries", "components"):
            for entry, one in zip(found[name], getattr(self, name), strict=True):
                entry["favour"] = one.favour
        return found


def explain(
    model: Model,
    graph: KnowledgeGraph,
    head: str,
    relation: str,
    tail: str,
    *,
    top: int = 5,
    probability: float | None = None,
    links: Links | None = None,
    scorer: Scorer | None = None,
    progress: Progress = silent,
) -> Explanation:
    """Explain the forward score of one fact, with ``top`` facts of each kind.

    ``probability`` is what a calibrated run makes of the score (``Run.probability``). ``links`` are those of
    the graph and ``scorer`` that of the model, from who explains many facts; they are made here if not given.

    Everything is read off direction r, the one that asks for tails. With ``model.reciprocal`` the
    direction that asks for heads has maps of its own; they enter the rank of the head and nothing else.
    """
    h, r, t = graph.entities.id(head), graph.relations.id(relation), graph.entities.id(tail)
    fact = torch.tensor([[h, r, t]])
    device = model.device
    with torch.no_grad():
        score = float(model.score_triples(fact.to(device)))
    if not math.isfinite(score):
        raise GoldeError(
            f"the score of ({head}, {relation}, {tail}) is {score}; the model has diverged: "
            "train again with a lower training.learning_rate"
        )
    tail_rank, head_rank = rank_triples(
        scorer or model.scorer(), graph, fact, device=device
    ).realistic.tolist()
    links = links or Links(graph)
    search = _Search(model, graph, links, h, r, t)
    geometries, components = _contributions(model, h, r, t)
    supporting = search.supporting(top)
    about_head = search.about(h, t, top, but=supporting)
    about_tail = search.about(t, h, top, but=[*supporting, *about_head])
    return Explanation(
        (head, relation, tail),
        next((s for s in SPLITS if bool(graph.known(s).contains(*fact.unbind(1)))), None),
        score,
        probability,
        tail_rank,
        head_rank,
        len(graph.entities),
        geometries,
        components,
        supporting,
        about_head,
        about_tail,
        len(links.about(h)),
        len(links.about(t)),
        search.typical,
        applied_rules(model, graph, links, h, r, t, progress=progress),
    )


def applied_rules(
    model: Model,
    graph: KnowledgeGraph,
    links: Links,
    h: int,
    r: int,
    t: int,
    *,
    progress: Progress = silent,
) -> list[AppliedRule]:
    """The rules with head r whose body the training facts fulfil for h and t."""
    x, z = torch.tensor([h]), torch.tensor([t])
    reasons: dict[Rule, list[list[Fact]]] = {}
    for back in links.between(z, x)[1].tolist():
        reasons[Rule("symmetric" if back == r else "inverse", (back,), r)] = [
            [_words(graph, t, back, h)]
        ]
    for other in links.between(x, z)[1].tolist():
        if other != r:
            reasons[Rule("implication", (other,), r)] = [[_words(graph, h, other, t)]]
    paths = links.paths(x, z, MIDDLES)
    walks: dict[tuple[int, int], list[int]] = {}
    for first, middle, second in zip(*(column.tolist() for column in paths[1:]), strict=True):
        walks.setdefault((first, second), []).append(middle)
    for (first, second), middles in sorted(walks.items(), key=lambda one: -len(one[1]))[:BODIES]:
        reasons[Rule("composition", (first, second), r)] = [
            [_words(graph, h, first, middle), _words(graph, middle, second, t)]
            for middle in middles
        ]
    return [
        _applied(found, graph, reasons[found.rule])
        for found in judge(model, links, list(reasons), progress=progress)
    ]


def _applied(found: JudgedRule, graph: KnowledgeGraph, ways: Sequence[list[Fact]]) -> AppliedRule:
    return AppliedRule(
        found.rule.words(graph.relations),
        found.rule.kind,
        found.support,
        found.instances,
        found.drawn,
        found.confidence,
        found.pca_confidence,
        found.error,
        found.holds,
        ways[0],
        len(ways),
    )


@torch.no_grad()
def _contributions(
    model: Model, h: int, r: int, t: int
) -> tuple[list[Contribution], list[Contribution]]:
    """By geometry, with evidence and biases if there are any, and component by component."""
    if not has_distance(model):
        return [], []
    device = model.device
    others = torch.randperm(model.entities, generator=torch.Generator().manual_seed(0))
    answers = torch.cat((torch.tensor([t]), others[others != t][:CANDIDATES])).to(device)
    query, direction = torch.tensor([h], device=device), torch.tensor([r], device=device)
    rows = gather(model.entity, answers)
    terms = component_terms(model, gather(model.entity, query), direction, rows)
    geometries, components, start = [], [], 0
    if isinstance(model, GoldE):
        for term in model.signature:
            columns = terms[:, start : start + term.count]
            name = GEOMETRIES[term.letter].word.lower()
            geometries.append(_contribution(f"{term} {name}", columns.sum(1)))
            components += [
                _contribution(f"{term.letter}{term.dimension} #{i}", column)
                for i, column in enumerate(columns.unbind(1), 1)
            ]
            start += term.count
    else:
        geometries.append(_contribution(model.config.space, terms.sum(1)))
    said = torch.zeros(1, len(answers), device=device)
    if model.evidence is not None:
        said = model.evidence.added_to(said, query, direction, answers)
        geometries.append(_contribution("evidence", 0 - said[0]))
    if model.config.bias or (model.config.loop_bias and h == t):
        scores = (model.score(query, direction, answers) - said)[0]
        geometries.append(_contribution("biases", -scores - terms.sum(1)))
    return geometries, sorted(components, key=lambda one: -one.favour)


def _contribution(space: str, values: Tensor) -> Contribution:
    """From the values of the fact itself, first, and of others."""
    return Contribution(space, float(values[0]), _median(values[1:]))


class _Search:
    """Training facts near one fact: distances are ``Σ_i ‖x_i − y_i‖`` between tangent coordinates."""

    def __init__(
        self, model: Model, graph: KnowledgeGraph, links: Links, h: int, r: int, t: int
    ) -> None:
        self.graph, self.links, self.h, self.r, self.t = graph, links, h, r, t
        self.distance = {end: distances_from(model, end) for end in {h, t}}
        self.typical = _median(self.distance[h] + self.distance[t])

    def supporting(self, top: int) -> list[NearFact]:
        """Facts of the same relation about entities near the head and the tail."""
        facts = self._others(self.links.of(self.r))
        distance = self.distance[self.h][facts[:, 0]] + self.distance[self.t][facts[:, 2]]
        return self._nearest(facts, distance, top)

    def about(self, one: int, other: int, top: int, *, but: Sequence[NearFact]) -> list[NearFact]:
        """Facts about one of the two, by how far their other entity is from the other of the two.

        Those listed elsewhere already are left out.
        """
        facts = self._others(self.links.about(one))
        far_end = torch.where(facts[:, 0] == one, facts[:, 2], facts[:, 0])
        found = self._nearest(facts, self.distance[other][far_end], top + len(but))
        listed = {near.fact for near in but}
        return [near for near in found if near.fact not in listed][:top]

    def _others(self, facts: Tensor) -> Tensor:
        """Without the fact itself."""
        return facts[(facts != torch.tensor([self.h, self.r, self.t])).any(1)]

    def _nearest(self, facts: Tensor, distance: Tensor, top: int) -> list[NearFact]:
        order = distance.argsort(stable=True)[:top]
        return [
            NearFact(_words(self.graph, *fact), far)
            for fact, far in zip(facts[order].tolist(), distance[order].tolist(), strict=True)
        ]


def _words(graph: KnowledgeGraph, h: int, r: int, t: int) -> Fact:
    return graph.entities[h], graph.relations[r], graph.entities[t]


def _median(values: Tensor) -> float:
    """0 where there is nothing to compare with."""
    return float(values.median()) if len(values) else 0.0
