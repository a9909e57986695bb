"""What requests hold."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from golde.service.limits import (
    LONGEST_NAME,
    MOST_ANSWERS,
    MOST_FACTS,
    MOST_NAMES,
    MOST_NEIGHBOURS,
    MOST_POINTS,
    MOST_REASONS,
)
from golde.service.schema import Name, Split, with_example


class Asked(BaseModel):
    """What a request may hold; anything else in it is a mistake."""

    model_config = ConfigDict(extra="forbid")


class PredictRequest(Asked):
    """A fact with one of its three names left out: the unknown."""

    model_config = with_example(head="Latvia", relation="uses currency", top=3) | {
        "extra": "forbid"
    }

    head: Name | None = Field(default=None, description="The entity a fact is about.")
    relation: Name | None = Field(default=None, description="The relation.")
    tail: Name | None = Field(default=None, description="The entity at the other end.")
    top: int = Field(default=10, ge=1, le=MOST_ANSWERS, description="Answers wanted.")
    known: Literal["mark", "keep", "drop"] = Field(
        default="mark",
        description="Answers that are in the graph: marked with their split, kept as they are, or dropped.",
    )


class FactBody(Asked):
    """A fact."""

    head: Name = Field(description="The entity it is about.", examples=["Latvia"])
    relation: Name = Field(description="The relation.", examples=["uses currency"])
    tail: Name = Field(description="The entity at the other end.", examples=["Euro"])


class ScoreRequest(Asked):
    """Facts to score."""

    model_config = with_example(
        facts=[{"head": "Latvia", "relation": "uses currency", "tail": "Euro"}]
    ) | {"extra": "forbid"}

    facts: list[FactBody] = Field(min_length=1, max_length=MOST_FACTS, description="In any order.")


class ExplainRequest(FactBody):
    """A fact to explain, known or not."""

    model_config = with_example(head="Latvia", relation="uses currency", tail="Euro", top=2) | {
        "extra": "forbid"
    }

    top: int = Field(default=5, ge=1, le=MOST_REASONS, description="Facts and rules of each kind.")


class CompareRequest(Asked):
    """Two runs on one graph."""

    model_config = with_example(first="world", second="transe", split="test") | {"extra": "forbid"}

    first: Name = Field(description="The run that the other is held against.")
    second: Name = Field(description="The other run.")
    split: Split = Field(default="test", description="The facts that were ranked.")


class SearchQuery(Asked):
    """What is being typed."""

    q: str = Field(
        default="",
        max_length=LONGEST_NAME,
        description="The start of a name or of a word in it; left out, the most frequent names.",
        examples=["latv"],
    )
    limit: int = Field(default=10, ge=1, le=MOST_NAMES, description="Names wanted.", examples=[5])


class NeighboursQuery(Asked):
    """One entity."""

    entity: Name = Field(description="The entity.", examples=["Latvia"])
    top: int = Field(
        default=10, ge=1, le=MOST_NEIGHBOURS, description="Neighbours wanted.", examples=[5]
    )


class FactsQuery(Asked):
    """One entity and a page of its facts."""

    entity: Name = Field(description="The entity.", examples=["Latvia"])
    relation: Name | None = Field(
        default=None, description="Only facts of this relation.", examples=["uses currency"]
    )
    limit: int = Field(default=100, ge=1, le=MOST_FACTS, description="Facts wanted.", examples=[5])
    offset: int = Field(
        default=0, ge=0, le=1 << 40, description="Facts to leave out.", examples=[0]
    )


class RelationQuery(Asked):
    """One relation."""

    relation: Name = Field(description="The relation.", examples=["borders"])


class PointsQuery(Asked):
    """Which component to look at, and how."""

    component: int = Field(
        default=1,
        ge=1,
        le=1 << 30,
        description="Its place among the components of the run, from 1.",
        examples=[9],
    )
    relation: Name | None = Field(
        default=None,
        description="The relation whose curvature or weights shape the view; without one both are 1.",
        examples=["borders"],
    )
    moved: bool = Field(
        default=False, description="Entities where the relation takes them.", examples=[False]
    )
    which: Literal["all", "heads", "tails"] = Field(
        default="all",
        description="All entities, or those on one side of the relation.",
        examples=["all"],
    )
    group_by: Name | None = Field(
        default=None,
        description="Groups are the tails of this relation; without it the relation and side an entity is "
        "most often on.",
        examples=["located in"],
    )
    limit: int = Field(
        default=MOST_POINTS,
        ge=1,
        le=MOST_POINTS,
        description="Points wanted; of more entities so many are drawn, always the same.",
        examples=[3],
    )
    format: Literal["json", "binary"] = Field(
        default="json",
        description="Arrays, or a header and columns as described in docs/service.md.",
        examples=["json"],
    )
