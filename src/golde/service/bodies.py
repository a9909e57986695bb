"""What requests and answers hold. Examples are of ``world``, the graph that ships."""

from __future__ import annotations

from typing import Annotated, Any, Literal

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

Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
RunName = Annotated[
    str, Field(max_length=LONGEST_NAME, description="The name of a run.", examples=["world"])
]
Split = Literal["train", "valid", "test"]
Probability = Annotated[
    float | None, Field(description="That the fact is true; null of a run that is not calibrated.")
]


def _with_example(**example: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [example]})


class Asked(BaseModel):
    """What a request may hold; anything else in it is a mistake."""

    model_config = ConfigDict(extra="forbid")


# Requests


class PredictRequest(Asked):
    """A fact with one of its three names left out: the unknown."""

    model_config = _with_example(head="Latvia", relation="uses currency", top=3) | {
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

    model_config = _with_example(
        facts=[{"head": "Latvia", "relation": "uses currency", "tail": "Euro"}]
    ) | {"extra": "forbid"}

    facts: list[FactBody] = Field(min_length=1, max_length=MOST_FACTS, description="In any order.")


class ExplainRequest(FactBody):
    """A fact to explain, known or not."""

    model_config = _with_example(head="Latvia", relation="uses currency", tail="Euro", top=2) | {
        "extra": "forbid"
    }

    top: int = Field(default=5, ge=1, le=MOST_REASONS, description="Facts and rules of each kind.")


class CompareRequest(Asked):
    """Two runs on one graph."""

    model_config = _with_example(first="world", second="transe", split="test") | {"extra": "forbid"}

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
        description="Its place among the ``components`` of the run, from 1.",
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


# Answers


class ErrorDetail(BaseModel):
    """What went wrong."""

    code: str = Field(description="A word for programs.")
    message: str = Field(description="A sentence for people: the value, the rule, the fix.")
    suggestions: list[str] = Field(description="Names that may have been meant.")


class ErrorBody(BaseModel):
    """The answer to a request that cannot be served."""

    model_config = _with_example(
        error={
            "code": "unknown_entity",
            "message": "unknown entity 'Latvai'; did you mean 'Latvia', 'Latvian'?",
            "suggestions": ["Latvia", "Latvian"],
        }
    )

    error: ErrorDetail


class Figures(BaseModel):
    """What a model reached under one protocol, both sides together."""

    mrr: float = Field(description="Mean reciprocal rank.")
    mr: float | None = Field(default=None, description="Mean rank.")
    hits_at_1: float | None = Field(default=None, description="Share of answers ranked first.")
    hits_at_3: float | None = Field(default=None, description="Share ranked third or better.")
    hits_at_10: float | None = Field(default=None, description="Share ranked tenth or better.")
    count: int = Field(description="Queries ranked.")
    self_filter: bool = Field(description="Whether the query's own entity was no candidate.")


class Space(BaseModel):
    """Equal components."""

    space: str = Field(description="Letter, dimension and count.")
    geometry: str = Field(description="euclidean, elliptic or hyperbolic.")
    count: int


class RunInfo(BaseModel):
    """A run that is served."""

    name: str = Field(description="What requests call it.")
    graph: str
    digest: str = Field(description="Of the names and facts: runs with the same can be compared.")
    entities: int
    relations: int
    facts: dict[str, int] = Field(description="By split.")
    kind: str = Field(description="golde, or a baseline such as transe.")
    signature: str = Field(description="The space; of a baseline its numbers an entity.")
    spaces: list[Space] = Field(description="The groups of components; none of a baseline.")
    components: list[str] = Field(description="The components in order, as points are asked for.")
    parameters: int
    reciprocal: bool = Field(description="Whether queries for heads have scores of their own.")
    calibrated: bool
    prior: float | None = Field(
        description="Of a calibrated run: how likely a claim is beforehand."
    )
    metrics: dict[str, Figures] = Field(description="By protocol: a split, and what differs.")
    device: str
    revision: int = Field(description="1 at the start, one more whenever a new model was taken up.")
    opened: str = Field(description="When this model was opened, as ISO 8601 in UTC.")
    notes: list[str] = Field(description="Harmless things found while it was opened.")
    trouble: str | None = Field(description="Why newer files of it are not served, if so.")


class RunList(BaseModel):
    """All runs, in the order in which they were named."""

    model_config = _with_example(
        version="0.1.0",
        runs=[
            {
                "name": "world",
                "graph": "world",
                "digest": "a69992d9e22c…",
                "entities": 2103,
                "relations": 18,
                "facts": {"train": 7798, "valid": 967, "test": 969},
                "kind": "golde",
                "signature": "P8x8 Q9x8",
                "spaces": [
                    {"space": "P8x8", "geometry": "elliptic", "count": 8},
                    {"space": "Q9x8", "geometry": "hyperbolic", "count": 8},
                ],
                "components": ["P8 #1", "P8 #2", "Q9 #1"],
                "parameters": 310944,
                "reciprocal": True,
                "calibrated": True,
                "prior": 0.5,
                "metrics": {
                    "test": {
                        "mrr": 0.481,
                        "mr": 18.8,
                        "hits_at_1": 0.356,
                        "hits_at_3": 0.535,
                        "hits_at_10": 0.745,
                        "count": 1938,
                        "self_filter": False,
                    }
                },
                "device": "cpu",
                "revision": 1,
                "opened": "2026-01-01T12:00:00+00:00",
                "notes": [],
                "trouble": None,
            }
        ],
    )

    version: str = Field(description="Of GoldE.")
    runs: list[RunInfo]


class Answer(BaseModel):
    """A fact that answers a query."""

    answer: str = Field(description="The name in place of the unknown.")
    head: str
    relation: str
    tail: str
    score: float = Field(
        description="The higher, the more plausible; only the order has a meaning."
    )
    known: Split | None = Field(
        description="The split that holds the fact, where it was looked up."
    )
    probability: Probability


class PredictAnswer(BaseModel):
    """The most plausible answers, best first."""

    model_config = _with_example(
        run="world",
        answers=[
            {
                "answer": "Euro",
                "head": "Latvia",
                "relation": "uses currency",
                "tail": "Euro",
                "score": -6.775,
                "known": "test",
                "probability": 0.886,
            }
        ],
    )

    run: str
    answers: list[Answer]


class ScoredFact(BaseModel):
    """A fact with its score in the forward direction."""

    head: str
    relation: str
    tail: str
    score: float = Field(description="The higher, the more plausible.")
    probability: Probability


class ScoreAnswer(BaseModel):
    """The facts in the order asked."""

    model_config = _with_example(
        run="world",
        facts=[
            {
                "head": "Latvia",
                "relation": "uses currency",
                "tail": "Euro",
                "score": -6.775,
                "probability": 0.886,
            }
        ],
    )

    run: str
    facts: list[ScoredFact]


class ContributionBody(BaseModel):
    """What a part of the space adds to the distance of the fact."""

    space: str
    distance: float
    typical: float = Field(description="The median over other tails.")
    favour: float = Field(
        description="How much nearer than typical: above 0 it speaks for the fact."
    )


class NearFactBody(BaseModel):
    """A training fact and how far it is."""

    fact: tuple[str, str, str]
    distance: float = Field(description="In tangent coordinates, summed over the components.")


class AppliedRuleBody(BaseModel):
    """A rule whose body the training facts fulfil for the two entities."""

    words: str = Field(description="With x, y and z for entities.")
    kind: str = Field(description="symmetric, inverse, implication or composition.")
    support: int
    instances: int
    drawn: bool = Field(description="Whether instances are a sample.")
    confidence: float
    pca_confidence: float
    error: float | None = Field(
        description="Of the learned maps: 0 where they agree, 1 for random."
    )
    holds: bool
    because: list[tuple[str, str, str]] = Field(description="One instance of the body.")
    ways: int = Field(description="How many instances there are.")


class ExplainAnswer(BaseModel):
    """Why the model finds a fact plausible."""

    model_config = _with_example(
        fact=["Latvia", "uses currency", "Euro"],
        known="test",
        score=-6.775,
        probability=0.886,
        tail_rank=1.0,
        head_rank=10.0,
        entities=2103,
        geometries=[
            {"space": "P8x8 elliptic", "distance": 4.285, "typical": 5.719, "favour": 1.434}
        ],
        components=[{"space": "Q9 #8", "distance": 0.245, "typical": 0.779, "favour": 0.534}],
        supporting=[{"fact": ["Ireland", "uses currency", "Euro"], "distance": 6.386}],
        about_head=[],
        about_tail=[],
        about_head_count=21,
        about_tail_count=12,
        typical_distance=20.69,
        rules=[],
    )

    fact: tuple[str, str, str]
    known: Split | None
    score: float
    probability: Probability
    tail_rank: float = Field(description="Filtered, among all entities.")
    head_rank: float
    entities: int
    geometries: list[ContributionBody]
    components: list[ContributionBody] = Field(description="The most favourable first.")
    supporting: list[NearFactBody] = Field(description="Facts of the same relation.")
    about_head: list[NearFactBody]
    about_tail: list[NearFactBody]
    about_head_count: int
    about_tail_count: int
    typical_distance: float
    rules: list[AppliedRuleBody] = Field(description="The most confident first.")


class NamedEntity(BaseModel):
    """An entity found."""

    name: str
    facts: int = Field(description="In all splits.")
    match: Literal["exact", "start", "word", "inside", "similar"]


class SearchAnswer(BaseModel):
    """Names, the best first."""

    model_config = _with_example(
        run="world", found=[{"name": "Latvia", "facts": 26, "match": "start"}]
    )

    run: str
    found: list[NamedEntity]


class Neighbour(BaseModel):
    """An entity near another."""

    name: str
    distance: float = Field(description="In tangent coordinates, summed over the components.")
    facts: int


class NeighboursAnswer(BaseModel):
    """The nearest entities, nearest first."""

    model_config = _with_example(
        run="world",
        entity="Latvia",
        neighbours=[{"name": "Ukraine", "distance": 5.4, "facts": 38}],
    )

    run: str
    entity: str
    neighbours: list[Neighbour]


class KnownFact(BaseModel):
    """A fact of the graph."""

    head: str
    relation: str
    tail: str
    split: Split


class FactsAnswer(BaseModel):
    """Facts about an entity, by relation: first those it is the head of."""

    model_config = _with_example(
        run="world",
        entity="Latvia",
        total=26,
        facts=[{"head": "Latvia", "relation": "borders", "tail": "Russia", "split": "train"}],
    )

    run: str
    entity: str
    total: int = Field(description="How many there are without limit and offset.")
    facts: list[KnownFact]


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
    scale: Spread | None = Field(default=None, description="√β, where β is a scale.")
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

    model_config = _with_example(run="world", relations=[_RELATION])

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

    model_config = _with_example(
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

    model_config = _with_example(
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


class ComparedRun(BaseModel):
    """One of the two."""

    run: str
    space: str
    seed: int
    parameters: int
    seconds: float = Field(description="Of training.")
    machine: str
    metrics: dict[str, dict[str, Any]] = Field(description="Of both sides and each alone.")
    relations: dict[str, dict[str, Any]] = Field(description="The same by relation.")
    against_first: dict[str, dict[str, Any]] = Field(
        description="Differences from the first with 95% interval and p; empty of the first."
    )


class CompareAnswer(BaseModel):
    """Both runs under one protocol, and whether their differences mean anything."""

    model_config = _with_example(
        graph="world",
        digest="a69992d9e22c…",
        protocol={"split": "test", "triples": 969},
        significance={"test": "paired percentile bootstrap over facts, two-sided"},
        runs=[
            {
                "run": "world",
                "space": "P8x8 Q9x8",
                "seed": 0,
                "parameters": 310944,
                "seconds": 43.7,
                "machine": "cpu",
                "metrics": {"both": {"mrr": 0.481}},
                "relations": {},
                "against_first": {},
            }
        ],
    )

    graph: str
    digest: str
    protocol: dict[str, Any]
    significance: dict[str, Any]
    runs: list[ComparedRun]


class RunHealth(BaseModel):
    """Whether a run is served from its newest files."""

    name: str
    revision: int
    trouble: str | None = Field(default=None, description="Why newer files are not served, if so.")


class Health(BaseModel):
    """Whether the service can answer."""

    model_config = _with_example(
        status="ok",
        version="0.1.0",
        waiting=0,
        runs=[{"name": "world", "revision": 1, "trouble": None}],
    )

    status: Literal["ok", "degraded"] = Field(
        description="degraded: a run is served from older files than its folder has."
    )
    version: str | None = Field(default=None, description="Of GoldE; left out without the token.")
    waiting: int | None = Field(default=None, description="Questions in the queue.")
    runs: list[RunHealth] | None = Field(default=None, description="Left out without the token.")
