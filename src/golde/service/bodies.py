"""What answers hold, but for maps, rules and points (``shapes``)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from golde.service.schema import Probability, Split, with_example


class ErrorDetail(BaseModel):
    """What went wrong."""

    code: str = Field(description="A word for programs.")
    message: str = Field(description="A sentence for people: the value, the rule, the fix.")
    suggestions: list[str] = Field(description="Names that may have been meant.")


class ErrorBody(BaseModel):
    """The answer to a request that cannot be served."""

    model_config = with_example(
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
    folder: str | None = Field(
        description="As it was named to the service; told only where nobody else can ask."
    )
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
        description="How likely a claim is beforehand; null if probabilities are those of answers."
    )
    metrics: dict[str, Figures] = Field(description="By protocol: a split, and what differs.")
    device: str
    revision: int = Field(description="1 at the start, one more whenever a new model was taken up.")
    opened: str = Field(description="When this model was opened, as ISO 8601 in UTC.")
    notes: list[str] = Field(description="Harmless things found while it was opened.")
    trouble: str | None = Field(description="Why newer files of it are not served, if so.")


class RunList(BaseModel):
    """All runs, in the order in which they were named."""

    model_config = with_example(
        version="0.1.0",
        runs=[
            {
                "name": "world",
                "folder": "runs/world",
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
                "prior": None,
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

    model_config = with_example(
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

    model_config = with_example(
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

    model_config = with_example(
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

    model_config = with_example(
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

    model_config = with_example(
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

    model_config = with_example(
        run="world",
        entity="Latvia",
        total=26,
        facts=[{"head": "Latvia", "relation": "borders", "tail": "Russia", "split": "train"}],
    )

    run: str
    entity: str
    total: int = Field(description="How many there are without limit and offset.")
    facts: list[KnownFact]


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

    model_config = with_example(
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

    model_config = with_example(
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
