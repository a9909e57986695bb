"""What a run answers to each kind of request, as the bodies of answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from golde.analysis.components import nearest
from golde.analysis.coordinates import View, component_names, groups, view
from golde.analysis.explain import explain
from golde.analysis.relation_geometry import checked, relation_geometry
from golde.analysis.rules import JudgedRule
from golde.data.graph import SPLITS, KnowledgeGraph
from golde.geometry import GEOMETRIES
from golde.inference import Prediction, Query
from golde.models import GoldE
from golde.progress import Progress
from golde.report.compare import compare
from golde.service import bodies, requests, shapes
from golde.service.names import NameIndex
from golde.service.problems import Problem
from golde.service.shelf import OpenRun, Shelf

RESAMPLES = 1000
"""Behind the intervals and p-values of a comparison."""


class Question(NamedTuple):
    """One query, and how many answers it wants."""

    query: Query
    top: int


class Key(NamedTuple):
    """Questions that can be answered together: to one model, and of one kind."""

    run: OpenRun
    kind: str  # "mark", "drop" or "score"


@torch.no_grad()
def compute(key: Key, questions: Sequence[Any]) -> list[Any]:
    """Answers to questions of one key: lists of predictions, or of scored facts."""
    if key.kind == "score":
        return _scored(key.run, questions)
    predictor = key.run.marking if key.kind == "mark" else key.run.dropping
    # The best of many begin with the best of few, so different wishes can share a batch.
    predictor.top = max(question.top for question in questions)
    found = predictor.stream([question.query for question in questions])
    return [answers[: one.top] for one, answers in zip(questions, found, strict=True)]


def _scored(run: OpenRun, lists: Sequence[Sequence[tuple[str, str, str]]]) -> list[Any]:
    facts = [fact for some in lists for fact in some]
    scores = run.run.score(facts)
    found = [Prediction(*fact, score) for fact, score in zip(facts, scores, strict=True)]
    if run.run.calibration is not None:
        found = run.run.calibration.annotated(found)
    rest = iter(found)
    return [[next(rest) for _ in some] for some in lists]


def question(run: OpenRun, asked: requests.PredictRequest) -> tuple[Key, Question]:
    """The question that a request asks, its names looked up."""
    query = Query(asked.head, asked.relation, asked.tail)
    for name in (asked.head, asked.tail):
        if name is not None:
            entity(run, name)
    if asked.relation is not None:
        relation(run, asked.relation)
    kind = "drop" if asked.known == "drop" else "mark"
    return Key(run, kind), Question(query, asked.top)


def predicted(
    run: OpenRun, asked: requests.PredictRequest, found: Sequence[Prediction]
) -> bodies.PredictAnswer:
    slot = 0 if asked.head is None else 1 if asked.relation is None else 2
    answers = [
        bodies.Answer(
            answer=one.fact[slot],
            head=one.head,
            relation=one.relation,
            tail=one.tail,
            score=one.score,
            known=one.known if asked.known == "mark" else None,  # type: ignore[arg-type]
            probability=one.probability,
        )
        for one in found
    ]
    return bodies.PredictAnswer(run=run.name, answers=answers)


def facts_to_score(
    run: OpenRun, asked: requests.ScoreRequest
) -> tuple[Key, list[tuple[str, str, str]]]:
    """The facts of a request, their names looked up."""
    for fact in asked.facts:
        entity(run, fact.head)
        relation(run, fact.relation)
        entity(run, fact.tail)
    return Key(run, "score"), [(fact.head, fact.relation, fact.tail) for fact in asked.facts]


def scored(run: OpenRun, found: Sequence[Prediction]) -> bodies.ScoreAnswer:
    facts = [
        bodies.ScoredFact(
            head=one.head,
            relation=one.relation,
            tail=one.tail,
            score=one.score,
            probability=one.probability,
        )
        for one in found
    ]
    return bodies.ScoreAnswer(run=run.name, facts=facts)


class UnknownNameError(Exception):
    """A name that the graph lacks."""

    def __init__(self, index: NameIndex, name: str, kind: str) -> None:
        super().__init__(name)
        self.index, self.name, self.kind = index, name, kind

    def problem(self) -> Problem:
        """What to tell, with names that may have been meant; finding them takes milliseconds."""
        near = self.index.closest(self.name)
        where = {"entity": "/entities", "relation": "/relations"}[self.kind]
        hint = (
            f"did you mean {', '.join(map(repr, near))}?" if near else f"search for it by {where}"
        )
        shown = self.name if len(self.name) <= 100 else self.name[:100] + "…"
        message = f"unknown {self.kind} {shown!r}; {hint}"
        return Problem(404, f"unknown_{self.kind}", message, suggestions=near)


def entity(run: OpenRun, name: str) -> int:
    """The id of an entity, or an ``UnknownNameError``."""
    names = run.run.graph.entities
    if name not in names:
        raise UnknownNameError(run.entities, name, "entity")
    return names.id(name)


def relation(run: OpenRun, name: str) -> int:
    """The id of a relation, or an ``UnknownNameError``."""
    names = run.run.graph.relations
    if name not in names:
        raise UnknownNameError(run.relations, name, "relation")
    return names.id(name)


def runs(shelf: Shelf, version: str, *, folders: bool) -> bodies.RunList:
    """All runs; with ``folders`` also where they lie."""
    return bodies.RunList(
        version=version, runs=[_about(shelf, name, folders) for name in shelf.names]
    )


def _about(shelf: Shelf, name: str, folders: bool) -> bodies.RunInfo:
    one = shelf[name]
    run, graph, model = one.run, one.run.graph, one.run.model
    return bodies.RunInfo(
        name=name,
        folder=str(shelf.folder(name)) if folders else None,
        graph=graph.name,
        digest=one.digest,
        entities=len(graph.entities),
        relations=len(graph.relations),
        facts={split: len(graph.split(split)) for split in SPLITS},
        kind=run.config.model.kind,
        signature=run.config.model.space,
        spaces=[
            bodies.Space(
                space=str(term),
                geometry=GEOMETRIES[term.letter].word.lower(),
                count=term.count,
            )
            for term in (model.signature if isinstance(model, GoldE) else ())
        ],
        components=component_names(model) if isinstance(model, GoldE) else [],
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        reciprocal=model.two_ways,
        calibrated=run.calibration is not None,
        prior=None if run.calibration is None else run.calibration.prior,
        metrics={key: _figures(figures) for key, figures in shelf.figures(name).items()},
        device=str(model.device),
        revision=one.revision,
        opened=one.opened.isoformat(timespec="seconds"),
        notes=[shelf.told(one) for one in run.notes],
        trouble=shelf.trouble(name),
    )


def _figures(found: dict[str, Any]) -> bodies.Figures:
    both = found["metrics"]["both"]
    return bodies.Figures(
        mrr=both["mrr"],
        mr=both.get("mr"),
        hits_at_1=both.get("hits@1"),
        hits_at_3=both.get("hits@3"),
        hits_at_10=both.get("hits@10"),
        count=both["count"],
        self_filter=found["protocol"]["self_filter"],
    )


def search(
    run: OpenRun, index: NameIndex, facts: Tensor, asked: requests.SearchQuery
) -> bodies.SearchAnswer:
    found = [
        bodies.NamedEntity(name=index.names[i], facts=int(facts[i]), match=how)  # type: ignore[arg-type]
        for i, how in index.search(asked.q, asked.limit)
    ]
    return bodies.SearchAnswer(run=run.name, found=found)


def facts_about(run: OpenRun, asked: requests.FactsQuery) -> bodies.FactsAnswer:
    graph = run.run.graph
    one = entity(run, asked.entity)
    direction, other = graph.known().about(one)
    R = len(graph.relations)
    keep = (direction < R) | (other != one)  # a fact with itself is there from both sides
    if asked.relation is not None:
        keep &= direction % R == relation(run, asked.relation)
    direction, other = direction[keep], other[keep]
    page = slice(asked.offset, asked.offset + asked.limit)
    return bodies.FactsAnswer(
        run=run.name,
        entity=asked.entity,
        total=len(direction),
        facts=_known_facts(graph, one, direction[page], other[page]),
    )


def _known_facts(
    graph: KnowledgeGraph, one: int, direction: Tensor, other: Tensor
) -> list[bodies.KnownFact]:
    R, subject = len(graph.relations), torch.tensor(one)
    split = torch.zeros(len(direction), dtype=torch.int64)
    for i, name in reversed(list(enumerate(SPLITS))):
        split[graph.known(name).contains(subject, direction, other)] = i
    found = []
    for d, e, s in zip(direction.tolist(), other.tolist(), split.tolist(), strict=True):
        head, tail = (one, e) if d < R else (e, one)
        found.append(
            bodies.KnownFact(
                head=graph.entities[head],
                relation=graph.relations[d % R],
                tail=graph.entities[tail],
                split=SPLITS[s],  # type: ignore[arg-type]
            )
        )
    return found


def neighbours(run: OpenRun, asked: requests.NeighboursQuery) -> bodies.NeighboursAnswer:
    names = run.run.graph.entities
    found = nearest(run.run.model, entity(run, asked.entity), asked.top)
    return bodies.NeighboursAnswer(
        run=run.name,
        entity=asked.entity,
        neighbours=[
            bodies.Neighbour(name=names[i], distance=far, facts=int(run.entity_facts[i]))
            for i, far in found
        ],
    )


@torch.no_grad()
def explained(
    run: OpenRun, asked: requests.ExplainRequest, progress: Progress
) -> bodies.ExplainAnswer:
    fact = asked.head, asked.relation, asked.tail
    entity(run, asked.head)
    relation(run, asked.relation)
    entity(run, asked.tail)
    probability = None
    if run.run.calibration is not None:
        (probability,) = run.run.probability([fact])
    found = explain(
        run.run.model,
        run.run.graph,
        *fact,
        top=asked.top,
        probability=probability,
        links=run.links,
        scorer=run.marking.scorer,
        progress=progress,
    ).as_dict()
    found["rules"] = found["rules"][: asked.top]
    return bodies.ExplainAnswer.model_validate(found)


def geometry(run: OpenRun, progress: Progress) -> shapes.GeometryAnswer:
    relations = [
        shapes.RelationBody.model_validate(one.as_dict(components=False))
        for one in run.geometry(progress)
    ]
    return shapes.GeometryAnswer(run=run.name, relations=relations)


def relation_in_detail(run: OpenRun, name: str, progress: Progress) -> shapes.RelationAnswer:
    one, model, graph = relation(run, name), run.run.model, run.run.graph
    shape = None
    if isinstance(model, GoldE):
        (found,) = relation_geometry(model, graph, [one], links=run.links, progress=progress)
        shape = shapes.RelationBody.model_validate(found.as_dict(components=True))
    rules = [_rule(rule, graph) for rule in run.rules(one, progress)]
    return shapes.RelationAnswer(run=run.name, geometry=shape, rules=rules)


def _rule(found: JudgedRule, graph: KnowledgeGraph) -> shapes.RuleBody:
    rule, names = found.rule, graph.relations
    return shapes.RuleBody(
        words=rule.words(names),
        kind=rule.kind,
        body=[names[r] for r in rule.body],
        head=names[rule.head],
        support=found.support,
        instances=found.instances,
        drawn=found.drawn,
        confidence=found.confidence,
        pca_confidence=found.pca_confidence,
        error=found.error,
    )


class Points(NamedTuple):
    """Entities in a component, as columns."""

    seen: View
    entities: int
    groups: list[str]
    columns: dict[str, Tensor]


def points(run: OpenRun, asked: requests.PointsQuery) -> Points:
    """The points of a view: all entities it may show, or as many as are wanted."""
    model, graph = checked(run.run.model), run.run.graph
    shaping = None if asked.relation is None else relation(run, asked.relation)
    entities = torch.arange(len(graph.entities))
    if asked.which != "all":
        if shaping is None:
            raise Problem(
                422, "refused", f"which={asked.which} are those of a relation; give relation too"
            )
        side = 0 if asked.which == "heads" else 2
        entities = torch.unique(graph.train[graph.train[:, 1] == shaping, side])
    count = len(entities)
    if not count:
        raise Problem(422, "refused", f"{asked.relation!r} has no training facts; show all")
    if count > asked.limit:
        drawn = torch.randperm(count, generator=torch.Generator().manual_seed(0))[: asked.limit]
        entities = entities[drawn.sort().values]
    seen = view(model, asked.component - 1, entities, shaping, moved=asked.moved)
    group, names = run.roles
    if asked.group_by is not None:
        group, names = groups(graph, relation(run, asked.group_by))
    axes = dict(zip("xyz", seen.points.unbind(1), strict=False))
    columns = {
        "id": entities.to(torch.int32),
        **axes,
        "depth": seen.depth,
        "group": group[entities].to(torch.int32),
        "facts": run.entity_facts[entities].to(torch.int32),
    }
    return Points(seen, count, names, columns)


def points_header(run: OpenRun, found: Points) -> dict[str, Any]:
    """All but the columns."""
    seen = found.seen
    return {
        "run": run.name,
        "component": seen.component,
        "geometry": seen.geometry,
        "view": "ellipsoid" if seen.curvature is None else "disk",
        "curvature": seen.curvature,
        "semi_axes": seen.semi_axes,
        "kept": seen.kept,
        "entities": found.entities,
        "groups": found.groups,
    }


def points_body(run: OpenRun, found: Points) -> shapes.PointsAnswer:
    lists = {"z": None} | {name: column.tolist() for name, column in found.columns.items()}
    names = run.run.graph.entities
    return shapes.PointsAnswer.model_validate(
        points_header(run, found) | lists | {"name": [names[i] for i in lists["id"] or ()]}
    )


def compared(
    shelf: Shelf, asked: requests.CompareRequest, progress: Progress
) -> bodies.CompareAnswer:
    """Two runs by the ranks kept in their folders; nothing is ranked or written here."""
    one, other = shelf[asked.first], shelf[asked.second]
    if one is other:
        raise Problem(422, "refused", f"{asked.first!r} cannot be compared with itself; name two")
    folders = {shelf.folder(run.name): run for run in (one, other)}
    if one.digest != other.digest:
        raise Problem(
            409,
            "other_graph",
            f"{asked.first!r} and {asked.second!r} were trained on other facts or another split of "
            "them; only runs on one graph, split alike, can be compared",
        )
    for run in folders.values():
        if run.run.kept_evaluation(asked.split, bootstrap=0) is None:
            raise Problem(
                409,
                "not_ranked",
                f"{run.name!r} keeps no ranks of the {asked.split} split; run "
                f"'golde evaluate' on it with '--split {asked.split}' first",
            )
    found = compare(
        list(folders),
        lambda path: folders[path].run,
        asked.split,
        resamples=RESAMPLES,
        progress=progress,
    ).as_dict()
    for entry, run in zip(found["runs"], folders.values(), strict=True):
        entry["run"] = run.name
    return bodies.CompareAnswer.model_validate(found)
