"""One validated schema for everything that can be set; TOML in and out, ``section.key=value``.

Settings left at ``None`` are chosen from the graph before training and written, resolved, into the
run's ``config.toml``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from golde.errors import ConfigError
from golde.written_settings import RETIRED, apply_override, read_toml, without_retired


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _of_python(cls, value: Any) -> Any:
        """A number of NumPy's as one of Python's, which are the only ones that sections take."""
        return value.item() if type(value).__module__ == "numpy" else value


_TYPES = {
    "int_type": "it should be a whole number without quotes or a point, such as 1000",
    "float_type": "it should be a number without quotes, such as 0.5",
    "bool_type": "it should be true or false",
    "string_type": 'it should be text in quotes, such as "P8x8 Q9x8"',
}
"""What to say of a value of another type in place of the library's words."""

LARGEST = 1_000_000
"""That a margin, a start or a weight can be: far beyond any use, and far from where scores overflow."""

GEOMETRY = ("signature", "reflections", "block", "boost_left", "weights")
"""Settings that only GoldE has."""


class ModelConfig(_Section):
    """The space and the maps."""

    kind: Literal["golde", "transe", "distmult", "complex"] = Field(
        default="golde", description="GoldE, or a baseline: see [presets](presets.md#baselines)."
    )
    signature: str | None = Field(
        default=None, description="Component spaces, such as `P8x8 Q9x8`; unset: from the graph."
    )
    numbers: int | None = Field(
        default=None,
        ge=1,
        description="Numbers an entity of a baseline has; unset: from the graph.",
    )
    reflections: Literal["k", "k-1", "alternating"] = Field(
        default="k",
        description="Householder reflections per component: K, K−1, or K and K−1 in turn.",
    )
    block: int | None = Field(
        default=None,
        ge=1,
        description="Block size of block-diagonal maps; unset: one block a component.",
    )
    boost_left: bool = Field(
        default=False, description="Apply the hyperbolic boost after the rotation, as RotH does."
    )
    reciprocal: bool = Field(
        default=True,
        description="Parameters of their own for head queries; false: the inverse map (the paper).",
    )
    norm: Literal[1, 2] = Field(
        default=1,
        description="The exponent l of each component's distance; for transe ℓ1 or ℓ2.",
    )
    weights: dict[str, Annotated[float, Field(gt=0, le=LARGEST)]] = Field(
        default_factory=dict, description="Weight of each geometry in the sum, such as {P = 0.5}."
    )
    bias: bool = Field(default=False, description="Learn a bias per entity, asked and answering.")
    loop_bias: bool | None = Field(
        default=None,
        description="Learn a bias per relation of facts that lead from an entity to itself; unset: yes.",
    )
    margin: float | None = Field(
        default=None,
        ge=0,
        le=LARGEST,
        description="The margin γ added to scores in the loss; unset: from the graph.",
    )
    init_scale: float | None = Field(
        default=None,
        gt=0,
        le=LARGEST,
        description="Half-width of the uniform start; unset: from the space.",
    )

    @property
    def space(self) -> str:
        """The space in words: the signature, or the kind of a baseline and its size."""
        return (
            str(self.signature)
            if self.kind == "golde"
            else f"{self.kind} of {self.numbers} numbers"
        )


class TrainingConfig(_Section):
    """How it learns."""

    loss: Literal["self-adversarial", "cross-entropy"] = Field(
        default="self-adversarial",
        description="Eq. 16, or softmax cross-entropy over the candidates.",
    )
    steps: int | None = Field(
        default=None, ge=1, description="Optimiser steps; unset: from the graph."
    )
    batch_size: int | None = Field(
        default=None, ge=1, description="Queries a step (each fact is asked in both directions)."
    )
    negatives: int | None = Field(
        default=None,
        ge=0,
        description="Uniform candidates shared by a batch; 0 means all entities.",
    )
    temperature: float = Field(
        default=1.0, ge=0, description="The temperature α of the self-adversarial weights."
    )
    query_as_negative: bool = Field(
        default=True, description="Score the query's own entity as one more negative."
    )
    answers_as_negatives: bool = Field(
        default=False,
        description="The answers of a batch are negatives of its other queries, beside the uniform ones.",
    )
    subsampling: bool = Field(
        default=True, description="Weigh facts by 1/√(n(h,r) + n(t,r⁻¹) + 6) within a batch."
    )
    optimiser: Literal["adam", "lazy-adam"] = Field(
        default="adam",
        description="Adam; lazy-adam: entities that a step does not draw keep row and moments.",
    )
    learning_rate: float | None = Field(
        default=None, gt=0, description="Peak learning rate of Adam; unset: from the graph."
    )
    warmup: float = Field(
        default=0.05, ge=0, lt=1, description="Share of the steps that warm up linearly."
    )
    regulariser: Literal["none", "norm", "n3"] | None = Field(
        default=None,
        description="Penalty on entities: mean ‖e‖ over all of them at every step, or mean Σ|e|³ over those "
        "of its facts; the latter with distmult and complex (there of moduli) on relations too. Unset: "
        "from the kind of model.",
    )
    regulariser_weight: float | None = Field(
        default=None, ge=0, description="Its weight λ; unset: with the regulariser."
    )
    gradient_clip: float = Field(
        default=10.0, gt=0, description="Gradient norms above this are scaled down."
    )
    validate_every: int | None = Field(
        default=None,
        ge=0,
        description="Steps between validations; 0: never; unset: about ten in a run.",
    )
    validate_limit: int = Field(
        default=2000, ge=1, description="At most this many validation facts (fixed, seeded sample)."
    )
    patience: int = Field(
        default=5, ge=1, description="Validations without a better MRR before training stops."
    )
    checkpoint_seconds: float = Field(
        default=30.0, ge=0, description="Seconds between checkpoints; 0: after every step."
    )
    log_every: int = Field(default=50, ge=1, description="Steps between log lines.")
    compile: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="On the CPU, compile the pointwise work of scoring; on a GPU, capture the step as one "
        "graph; auto: compile where it saves time.",
    )
    entity_table: Literal["device", "host"] = Field(
        default="device",
        description="Where the entity table and its moments are: beside the other parameters, or in host "
        "memory, from where a step brings the rows it needs: see [large tables](large_tables.md).",
    )
    precision: Literal["float32", "float64"] = Field(
        default="float32", description="Type of all parameters."
    )
    seed: int = Field(default=0, ge=0, lt=2**32, description="Seed of every random choice.")


class EvidenceConfig(_Section):
    """What training facts in a row say for or against an answer, beside the embedding."""

    hops: int = Field(
        default=0,
        ge=0,
        le=4,
        description="Facts in a row that are weighed, once training has ended; 0: none.",
    )
    walks: int = Field(
        default=300_000_000,
        ge=1,
        description="Walks that are taken to learn what they are worth, which bounds the time of it.",
    )
    joined: bool = Field(
        default=False,
        description="Choose on validation, too, what is added where a fact joins two entities already: for "
        "[sets that hold out none of these](evidence.md#pairs-that-a-fact-joins-already).",
    )


class Config(_Section):
    """Everything that can be set, and possibly the graph that it was chosen for."""

    graph: str | None = Field(
        default=None, min_length=1, description="The graph to train on where none is named."
    )
    model: ModelConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()
    evidence: EvidenceConfig = EvidenceConfig()

    @classmethod
    def load(
        cls,
        path: str | Path | None = None,
        overrides: Iterable[str] = (),
        *,
        base: Config | None = None,
    ) -> Config:
        """A TOML file with ``section.key=value`` overrides on top; the rest as in ``base`` or by default."""
        values: dict[str, Any] = {}
        if path is not None:
            values = without_retired(read_toml(Path(path)), str(path))
            _refuse_unknown_keys(values, str(path))
        if base is not None:
            kept = base.model_dump(exclude_none=True)
            sections = {name: kept[name] | values.get(name, {}) for name in _sections()}
            values = kept | values | sections
        for override in overrides:
            apply_override(values, override)
        return cls.from_dict(values, source=str(path) if path is not None else "settings")

    @classmethod
    def from_dict(cls, values: dict[str, Any], source: str = "settings") -> Config:
        """Validate plain values; an unknown key or bad value names the closest valid one."""
        values = without_retired(values, source)
        _refuse_unknown_keys(values, source)
        try:
            config = cls.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])
            message = _TYPES.get(first["type"]) or first["msg"].replace("Input should", "it should")
            raise ConfigError(
                f"{source}: {key} = {first['input']!r} is not valid: {message}"
            ) from None
        refuse_foreign_settings(config.model, source)
        _refuse_idle_settings(config, source)
        return config

    def with_values(self, **sections: dict[str, Any]) -> Config:
        """A copy with some keys of some sections replaced."""
        values = self.model_dump()
        for section, changes in sections.items():
            values[section].update(changes)
        return Config.from_dict(values)

    def settings(self) -> dict[str, dict[str, Any]]:
        """By section, without those that are unset or belong to another kind of model.

        Nor are GoldE's kind, a table on the device and no evidence among them: see ``identity``.
        """
        left_out = {*_foreign(self.model.kind), *(["kind"] if self.model.kind == "golde" else [])}
        usual = {"entity_table"} if self.training.entity_table == "device" else set()
        found = self.model_dump(exclude_none=True, exclude={"model": left_out, "training": usual})
        if self.evidence == EvidenceConfig():
            del found["evidence"]
        return found

    def to_toml(self) -> str:
        """The settings as TOML text."""
        return tomli_w.dumps(self.settings())

    def identity(self) -> str:
        """The text by which a checkpoint knows its run, whenever it was written.

        What came later stands in it where it is not as it always was, and what is no more where it stood.
        """
        found = self.settings()
        for (section, key), retired in RETIRED.items():
            items = list(found[section].items())
            places = [place for place, (name, _) in enumerate(items) if name == retired.after]
            for place in places:  # none in another kind of model
                items.insert(place + 1, (key, retired.holds))
            found[section] = dict(items)
        return tomli_w.dumps(found)

    def difference(self, given: Config) -> str:
        """Every setting of ``given`` that differs from those here, in words; empty where none does."""
        there, here = self.model_dump(), given.model_dump()
        return ", ".join(
            f"{section}.{key} is {value!r} there and {here[section][key]!r} here"
            for section in _sections()
            for key, value in there[section].items()
            if value != here[section][key]
        )


def _sections() -> dict[str, type[_Section]]:
    """The sections of a configuration by name."""
    kinds = {name: field.annotation for name, field in Config.model_fields.items()}
    return {
        name: kind
        for name, kind in kinds.items()
        if isinstance(kind, type) and issubclass(kind, _Section)
    }


def _refuse_unknown_keys(values: dict[str, Any], source: str) -> None:
    known = {section: list(kind.model_fields) for section, kind in _sections().items()}
    for section, content in values.items():
        if section == "graph":
            continue
        if section not in known:
            home = next((name for name, keys in known.items() if section in keys), None)
            if home is not None:
                raise ConfigError(
                    f"{source}: {section} is a setting of {home}; write it below a line [{home}]"
                )
            names = ("graph", *known)
            raise ConfigError(f"{source}: unknown section {section!r}{_closest(section, names)}")
        if not isinstance(content, dict):
            raise ConfigError(f"{source}: {section!r} is a section, not a value")
        for key in content:
            if key not in known[section]:
                everywhere = [f"{s}.{k}" for s, keys in known.items() for k in keys]
                raise ConfigError(
                    f"{source}: unknown key '{section}.{key}'"
                    f"{_closest(f'{section}.{key}', everywhere)}"
                )


def refuse_foreign_settings(model: ModelConfig, source: str = "settings") -> None:
    """A setting that belongs to another kind of model would do nothing."""
    fixes = {
        "numbers": "give a model.signature instead",
        "signature": "give model.numbers instead",
    }
    for key in _foreign(model.kind):
        value = getattr(model, key)
        if value != ModelConfig.model_fields[key].get_default(call_default_factory=True):
            raise ConfigError(
                f"{source}: model.{key} = {value!r} does nothing with model.kind = {model.kind!r}; "
                f"{fixes.get(key, 'leave it out')}"
            )


def _foreign(kind: str) -> tuple[str, ...]:
    """Settings of the model that this kind has no use for."""
    if kind == "golde":
        return ("numbers",)
    return GEOMETRY if kind == "transe" else (*GEOMETRY, "norm")


def _refuse_idle_settings(config: Config, source: str) -> None:
    """Someone who sets what then changes nothing should hear of it."""
    training = config.training
    kind, weight = training.regulariser, training.regulariser_weight
    if kind not in (None, "none") and not weight:
        raise ConfigError(
            f"{source}: training.regulariser = {kind!r} does nothing without a "
            "training.regulariser_weight; give it one, such as 0.01"
        )
    if kind in (None, "none") and weight:
        raise ConfigError(
            f"{source}: training.regulariser_weight = {weight} has nothing to weigh; choose a "
            "training.regulariser, norm or n3"
        )
    if training.answers_as_negatives and training.negatives == 0:
        raise ConfigError(
            f"{source}: training.answers_as_negatives = true adds nothing where all entities are negatives "
            "(training.negatives = 0); leave it out, or draw some, such as training.negatives = 1000"
        )
    if config.evidence.joined and not config.evidence.hops:
        raise ConfigError(
            f"{source}: evidence.joined = true does nothing where no evidence is gathered; give "
            "evidence.hops, such as 2"
        )


def _closest(name: str, known: Iterable[str]) -> str:
    match = difflib.get_close_matches(name, list(known), n=1, cutoff=0.4)
    return f"; did you mean '{match[0]}'?" if match else f"; known are {', '.join(sorted(known))}"
