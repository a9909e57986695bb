"""What a page asks beside the questions of programs: facts that an entity may lack, and names by number."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from golde.inference import Prediction, Query
from golde.service import answers, bodies, requests, schema
from golde.service.limits import MOST_NAMES
from golde.service.problems import Problem
from golde.service.roles import Role
from golde.service.shelf import OpenRun

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


def questions(
    run: OpenRun, entity: str, roles: int, top: int, *, filled: bool = False
) -> list[tuple[Role, answers.Question]]:
    """A question for each role that fits an entity."""
    found = []
    graph, number = run.run.graph, answers.entity(run, entity)
    for role in run.playing.fitting(number, filled=filled)[:roles]:
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
