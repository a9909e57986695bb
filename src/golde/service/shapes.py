"""What answers about maps, rules and points hold."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from golde.service.schema import with_example


class Spread(BaseModel):
    """Lowest, middle and highest value over the components, and each if asked for."""

    min: float
    median: float
    max: float
    components: list[float] | list[list[float]] | None = Field(
        default=None, description="A value of each component, or one of each of its coordinates."
    )


class GroupBody(BaseModel):
    """A relation's map in equal components."""

    space: str
    geometry: str
    curvature: Spread | None = Field(default=None, description="−1/β, of hyperbolic components.")
    boost: Spread | None = Field(default=None, description="‖b‖, of hyperbolic components.")
    stretch: Spread | None = Field(default=None, description="Longest over shortest semi-axis.")
    weights: Spread | None = Field(default=None, description="p of the ellipsoid Σ p x² = c.")
    angles: Spread = Field(description="Of the rotations, in degrees.")
    determinant: Spread


class RelationBody(BaseModel):
    """The map of one relation's forward direction."""

    relation: str
    facts: int = Field(description="In train.")
    involution_error: float = Field(description="Of the map applied twice: 0 leads back.")
    groups: list[GroupBody]


_RELATION = {
    "relation": "borders",
    "facts": 448,
    "involution_error": 0.0366,
    "groups": [
        {
            "space": "Q9x8",
            "geometry": "hyperbolic",
            "curvature": {"min": -1.193, "median": -0.996, "max": -0.894},
            "boost": {"min": 0.079, "median": 0.205, "max": 0.313},
            "angles": {"min": 0.068, "median": 2.125, "max": 180.0},
            "determinant": {"min": 1.0, "median": 1.0, "max": 1.0},
        }
    ],
}


class GeometryAnswer(BaseModel):
    """All relations, the one with the most facts first."""

    model_config = with_example(run="world", relations=[_RELATION])

    run: str
    relations: list[RelationBody]


class RuleBody(BaseModel):
    """A rule that holds between relations."""

    words: str = Field(description="With x, y and z for entities.")
    kind: str = Field(description="symmetric, inverse, implication or composition.")
    body: list[str] = Field(description="Relations in the order they are walked.")
    head: str = Field(description="The relation that follows.")
    support: int
    instances: int
    drawn: bool
    confidence: float
    pca_confidence: float
    error: float | None = Field(
        description="Of the learned maps: 0 where they agree, 1 for random."
    )


class RelationAnswer(BaseModel):
    """One relation in detail: its map in every component, and the rules that lead to it."""

    model_config = with_example(
        run="world",
        geometry=_RELATION,
        rules=[
            {
                "words": "x borders y ⇒ y borders x",
                "kind": "symmetric",
                "body": ["borders"],
                "head": "borders",
                "support": 418,
                "instances": 448,
                "drawn": False,
                "confidence": 0.933,
                "pca_confidence": 0.937,
                "error": 0.0366,
            }
        ],
    )

    run: str
    geometry: RelationBody | None = Field(
        description="Null of a baseline, which has no curved maps."
    )
    rules: list[RuleBody]


class PointsAnswer(BaseModel):
    """Entities in one component."""

    model_config = with_example(
        run="world",
        component="Q9 #1",
        geometry="hyperbolic",
        view="disk",
        curvature=-0.894,
        semi_axes=None,
        kept=0.378,
        entities=2103,
        groups=["→ near", "→ spoken language", "→ located in"],
        id=[1112],
        name=["New Hampshire"],
        x=[-0.1156],
        y=[-0.1613],
        z=None,
        depth=[0.692],
        group=[2],
        facts=[5],
    )

    run: str
    component: str
    geometry: str
    view: Literal["disk", "ellipsoid"]
    curvature: float | None = Field(description="Of a disk.")
    semi_axes: list[float] | None = Field(
        description="Of an ellipsoid that holds half of the points."
    )
    kept: float = Field(description="Share of the squared length that the directions shown keep.")
    entities: int = Field(description="How many there are to choose from.")
    groups: list[str] = Field(description="The names of the groups; −1 is none.")
    id: list[int]
    name: list[str]
    x: list[float]
    y: list[float]
    z: list[float] | None = Field(description="Of an ellipsoid.")
    depth: list[float] = Field(description="Distance from the origin, nothing projected away.")
    group: list[int]
    facts: list[int]
