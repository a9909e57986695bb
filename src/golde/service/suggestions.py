"""What a page asks beside the questions of programs: facts that an entity may lack, and names by number.

A *role* is a side of a relation. One fits an entity if at least half of the players of a role that the entity
plays play it too:

    share(role) = max over roles q of the entity:  |players(q) ∩ players(role)| / |players(q)|
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from golde.data.graph import KnowledgeGraph
from golde.data.known import in_turn
from golde.inference import Prediction, Query
from golde.service import answers, bodies, requests, schema
from golde.service.limits import MOST_NAMES
from golde.service.problems import Problem
from golde.service.shelf import OpenRun

SHARE = 0.5
SINGLE = 1.5
"""Where players of a role have fewer answers on average, one is enough: who has it lacks nothing."""
MOST_ROLES = 40
MOST_OF_A_ROLE = 50


class SuggestionsQuery(requests.Asked):
    """One entity, and how much to suggest."""

    entity: schema.Name = Field(description="The entity.", examples=["Latvia"])
    roles: int = Field(
        default=12, ge=1, le=MOST_ROLES, description="Sides of relations to ask.", examples=[3]
    )
    top: int = Field(
        default=3, ge=1, le=MOST_OF_A_ROLE, description="Answers of each.", examples=[2]
    )


class Suggested(BaseModel):
    """Facts of one relation that the graph lacks, the entity being on one side."""

    relation: str
    missing: Literal["head", "tail"] = Field(description="The side that the answers are on.")
    share: float = Field(description="Of entities like this one, how many play the role.")
    known: int = Field(description="Facts of the graph that have the entity in the role.")
    answers: list[bodies.Answer]


class SuggestionsAnswer(BaseModel):
    """The roles that fit an entity: those with the most probable answers first, or the most fitting."""

    model_config = schema.with_example(
        run="world",
        entity="Latvia",
        suggested=[
            {
                "relation": "borders",
                "missing": "tail",
                "share": 1.0,
                "known": 4,
                "answers": [
                    {
                        "answer": "Finland",
                        "head": "Latvia",
                        "relation": "borders",
                        "tail": "Finland",
                        "score": -7.2,
                        "known": None,
                        "probability": 0.61,
                    }
                ],
            }
        ],
    )

    run: str
    entity: str
    suggested: list[Suggested]


class LookupRequest(requests.Asked):
    """Entities by number, as points have them, or by name."""

    model_config = schema.with_example(ids=[1112], names=["Latvia"]) | {"extra": "forbid"}

    ids: list[int] = Field(default_factory=list, max_length=MOST_NAMES, description="Numbers.")
    names: list[schema.Name] = Field(
        default_factory=list, max_length=MOST_NAMES, description="Names."
    )


class FoundEntity(BaseModel):
    """An entity of the graph."""

    id: int
    name: str
    facts: int = Field(description="In all splits.")


class LookupAnswer(BaseModel):
    """The entities in the order asked, those by number first."""

    model_config = schema.with_example(
        run="world", entities=[{"id": 1112, "name": "New Hampshire", "facts": 5}]
    )

    run: str
    entities: list[FoundEntity]


class Role(NamedTuple):
    """A role that fits an entity."""

    relation: int
    missing: Literal["head", "tail"]
    share: float
    known: int


def fitting_roles(graph: KnowledgeGraph, entity: int, *, filled: bool = False) -> list[Role]:
    """The roles that fit an entity, the most fitting first; those that lack nothing only if ``filled``."""
    known, R = graph.known(), len(graph.relations)
    key = known.keys[:-1]  # every entity with each of its roles, once
    owner, role = key // (2 * R), key % (2 * R)
    answers = known.offsets[: len(key) + 1].diff()
    start = torch.searchsorted(owner, torch.arange(len(graph.entities) + 1))
    players = role.bincount(minlength=2 * R)
    facts = torch.zeros(2 * R, dtype=torch.int64).index_add_(0, role, answers)
    own = slice(int(start[entity]), int(start[entity + 1]))
    has = torch.zeros(2 * R, dtype=torch.int64).index_add_(0, role[own], answers[own])
    share = torch.zeros(2 * R)
    for one in role[own].tolist():
        share = torch.maximum(share, _also_played(owner[role == one], start, role, R))
    fits = share >= SHARE
    if not filled:
        fits &= ~((has > 0) & (facts < SINGLE * players))
    found = fits.nonzero()[:, 0]
    order = found[share[found].argsort(descending=True, stable=True)].tolist()
    return [Role(i % R, "tail" if i < R else "head", float(share[i]), int(has[i])) for i in order]


def _also_played(players: Tensor, start: Tensor, role: Tensor, R: int) -> Tensor:
    """The share of players that play each role, (2R,)."""
    _, place = in_turn(start[players], start[players + 1])
    return role[place].bincount(minlength=2 * R) / len(players)


def questions(
    run: OpenRun, entity: str, roles: int, top: int, *, filled: bool = False
) -> list[tuple[Role, answers.Question]]:
    """A question for each role that fits an entity."""
    found = []
    graph, number = run.run.graph, answers.entity(run, entity)
    for role in fitting_roles(graph, number, filled=filled)[:roles]:
        relation = graph.relations[role.relation]
        query = Query(entity, relation) if role.missing == "tail" else Query(None, relation, entity)
        found.append((role, answers.Question(query, top)))
    return found


def suggested(
    run: OpenRun, entity: str, found: list[tuple[Role, list[Prediction]]]
) -> SuggestionsAnswer:
    """Answers to those questions; the most probable first where there are probabilities."""
    groups: list[Suggested] = []
    for role, predictions in found:
        relation = run.run.graph.relations[role.relation]
        names = [_answer(one, role.missing) for one in predictions]
        told = {
            one.answer for group in groups if group.relation == relation for one in group.answers
        }
        if not names or sum(one.answer in told for one in names) * 2 > len(names):
            continue  # of a relation that holds both ways, one is enough
        groups.append(
            Suggested(
                relation=relation,
                missing=role.missing,
                share=role.share,
                known=role.known,
                answers=names,
            )
        )
    groups.sort(key=lambda group: -(group.answers[0].probability or 0.0))
    return SuggestionsAnswer(run=run.name, entity=entity, suggested=groups)


def _answer(found: Prediction, missing: str) -> bodies.Answer:
    fact: dict[str, Any] = {"head": found.head, "relation": found.relation, "tail": found.tail}
    return bodies.Answer(
        answer=fact[missing],
        **fact,
        score=found.score,
        known=found.known,  # type: ignore[arg-type]
        probability=found.probability,
    )


def looked_up(run: OpenRun, asked: LookupRequest) -> LookupAnswer:
    names = run.run.graph.entities
    for number in asked.ids:
        if not 0 <= number < len(names):
            raise Problem(
                404, "unknown_entity", f"there is no entity {number}; there are {len(names):,}"
            )
    ids = [*asked.ids, *(answers.entity(run, name) for name in asked.names)]
    return LookupAnswer(
        run=run.name,
        entities=[FoundEntity(id=i, name=names[i], facts=int(run.entity_facts[i])) for i in ids],
    )
