"""What a search may change, and how a point of the space becomes a configuration.

A point is a value for each axis, by name. Most axes are settings (``training.learning_rate``); those that
start with ``signature.`` build the signature together. A setting that was given is no axis: it stays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from golde.config import Config
from golde.data.graph import KnowledgeGraph
from golde.errors import ConfigError
from golde.geometry import Signature
from golde.models.presets import preset
from golde.training.defaults import resolve

SpaceName = Literal["default", "paper"]
Point = Mapping[str, Any]

PAPER_NUMBERS = 800
"""The embedding size k that Table 10 goes up to."""

SMALLEST_PAPER_NUMBERS = 200
"""Below it, k* has no choice but 0."""

LARGEST_LOG2 = 6
"""Components of the default space have 2 to 2⁶ numbers."""

MOST_NEGATIVES = 1024
"""A step costs in proportion to them, and the search pays for every step."""


class Range(NamedTuple):
    """All numbers between two, evenly or (``log``) by ratio."""

    low: float
    high: float
    log: bool = False
    whole: bool = False


class Choice(NamedTuple):
    """One of several values."""

    values: tuple[Any, ...]


Axis = Range | Choice


@dataclass(frozen=True)
class Space:
    """The axes of a search, around settings that stay as they are given."""

    name: SpaceName
    base: Config
    given: dict[str, Any]  # section.key of the settings that stay
    numbers: int
    axes: dict[str, Axis] = field(default_factory=dict)
    start: dict[str, Any] | None = None  # a point to begin with: the defaults

    def config(self, point: Point) -> Config:
        """The base with the settings of a point, open ones still open."""
        sections: dict[str, dict[str, Any]] = {"model": {}, "training": {}}
        if signature := self.signature(point):
            sections["model"]["signature"] = signature
        for name, value in point.items():
            section, key = name.split(".")
            if section in sections:
                sections[section][key] = value
        if point.get("training.regulariser") == "none":
            sections["training"]["regulariser_weight"] = 0.0
        return self.base.with_values(**sections)

    def signature(self, point: Point) -> str | None:
        """The signature of a point, if it is searched."""
        if "signature.log2_dimension" in point:
            return _shared_out(
                self.numbers, 2 ** point["signature.log2_dimension"], point["signature.hyperbolic"]
            )
        if "signature.elliptic_numbers" in point:
            return _partitioned(
                self.numbers,
                point["signature.elliptic_numbers"],
                point["signature.elliptic_components"],
                point["signature.hyperbolic_components"],
            )
        return None


def search_space(
    name: SpaceName, base: Config, graph: KnowledgeGraph, numbers: int | None = None
) -> Space:
    """The named space; ``numbers`` an entity are the budget of every signature in it."""
    given = _given(base)
    if base.training.validate_every == 0:
        raise ConfigError(
            "training.validate_every = 0 leaves a search nothing to go by; leave it out"
        )
    if numbers is not None and numbers < 4:
        raise ConfigError(f"--numbers {numbers}: two components need at least 4")
    if numbers is not None and (setting := {"model.signature", "model.numbers"} & set(given)):
        raise ConfigError(
            f"--numbers {numbers} does nothing where {setting.pop()} is given; leave one out"
        )
    space = (_paper if name == "paper" else _default)(base, given, graph, numbers)
    if not space.axes:
        raise ConfigError("every setting of the space is given: nothing is left to search")
    return space


def _default(
    base: Config, given: dict[str, Any], graph: KnowledgeGraph, numbers: int | None
) -> Space:
    """Signature within a budget, margin, rate, temperature, negatives, regulariser and bias.

    Steps and batch size are what a run may cost: they stay what they are.
    """
    golde, multiplies = base.model.kind == "golde", base.model.kind in ("distmult", "complex")
    if numbers is not None:
        if golde:
            base = base.with_values(model={"signature": preset("golde", numbers).signature})
        else:
            base = base.with_values(model={"numbers": numbers})
    usual = resolve(base, graph)
    budget = numbers or usual.model.numbers or Signature.parse(str(usual.model.signature)).numbers
    adversarial = base.training.loss == "self-adversarial"
    entities = len(graph.entities)
    most = min(MOST_NEGATIVES, max(64, entities))
    axes: dict[str, Axis] = {}
    if golde and "model.signature" not in given:
        largest = min(LARGEST_LOG2, int(math.log2(budget / 2)))  # so that two components fit
        axes["signature.log2_dimension"] = Range(1, largest, whole=True)
        mixed = {"model.weights", "model.boost_left"} & set(given)
        axes["signature.hyperbolic"] = Range(0.25, 0.75) if mixed else Range(0.0, 1.0)
    if adversarial and not multiplies:  # the other loss is the same whatever the margin
        axes["model.margin"] = Range(2.0, 32.0, log=True)
    axes["model.bias"] = Choice((False, True))
    axes["training.learning_rate"] = Range(3e-4, 3e-2, log=True)
    if adversarial:
        axes["training.temperature"] = Range(0.0, 2.0)
    axes["training.negatives"] = Range(16, most, log=True, whole=True)
    if not {"training.regulariser", "training.regulariser_weight"} & set(given):
        lazy = base.training.optimiser == "lazy-adam"  # which moves drawn entities alone
        axes["training.regulariser"] = Choice(("none", "n3") if lazy else ("none", "norm", "n3"))
        axes["training.regulariser_weight"] = Range(1e-4, 1.0, log=True)
    axes = {axis: values for axis, values in axes.items() if axis not in given}
    return Space("default", base, given, budget, axes, _start(axes, usual))


def _paper(
    base: Config, given: dict[str, Any], graph: KnowledgeGraph, numbers: int | None
) -> Space:
    """Table 10: b, α, γ, lr, k*, m_P and m_Q, at a fixed embedding size k."""
    if base.model.kind != "golde":
        raise ConfigError(
            f"model.kind = {base.model.kind!r} is not in the paper's space; use --space default"
        )
    size = PAPER_NUMBERS if numbers is None else numbers
    if size < SMALLEST_PAPER_NUMBERS:
        raise ConfigError(
            f"--numbers {size}: the paper's space needs at least {SMALLEST_PAPER_NUMBERS}; "
            "for smaller ones use --space default"
        )
    counts = Choice((2, 4, 8, 10, 15, 20, 25, 30))
    axes: dict[str, Axis] = {
        "training.batch_size": Choice((500, 800, 1000, 1500, 2000)),
        "training.temperature": Range(0.5, 2.0),
        "model.margin": Choice((6, 8, 10, 12, 16, 20, 24, 28)),
        "training.learning_rate": Choice((0.0001, 0.0005, 0.001, 0.003)),
    }
    if "model.signature" not in given:
        partitions = tuple(k for k in (0, 200, 400, 600, 800) if k <= size)
        axes["signature.elliptic_numbers"] = Choice(partitions)
        axes["signature.elliptic_components"] = counts
        axes["signature.hyperbolic_components"] = counts
    axes = {axis: values for axis, values in axes.items() if axis not in given}
    return Space("paper", base, given, size, axes)


def _given(config: Config) -> dict[str, Any]:
    """Settings that somebody chose, by section.key."""
    return {
        f"{name}.{key}": getattr(section, key)
        for name, section in (("model", config.model), ("training", config.training))
        for key in sorted(section.model_fields_set)
        if getattr(section, key) is not None
    }


def _start(axes: dict[str, Axis], usual: Config) -> dict[str, Any]:
    """The point of the defaults: a search then finds nothing worse than they are."""
    values = usual.settings()
    start: dict[str, Any] = {}
    for name, axis in axes.items():
        section, key = name.split(".")
        if section == "signature":
            continue
        value = values[section][key]
        start[name] = min(max(value, axis.low), axis.high) if isinstance(axis, Range) else value
    if "signature.log2_dimension" in axes:
        size = Signature.parse(usual.model.signature or "").terms[0].numbers
        start |= {"signature.log2_dimension": size.bit_length() - 1, "signature.hyperbolic": 0.5}
    return start


def _shared_out(numbers: int, dimension: int, hyperbolic: float) -> str:
    """As many components of a dimension as fit, a share of them hyperbolic."""
    components = max(1, numbers // dimension)
    bent = round(hyperbolic * components)
    flat = f"P{dimension}x{components - bent}" if bent < components else ""
    return " ".join(filter(None, [flat, f"Q{dimension + 1}x{bent}" if bent else ""]))


def _partitioned(numbers: int, elliptic: int, m_p: int, m_q: int) -> str:
    """k* = m_P·k_P numbers in elliptic components, the others of k in hyperbolic ones (App. on Table 10).

    Where a count does not divide its share, components are as large as fit.
    """
    flat = f"P{elliptic // m_p}x{m_p}" if elliptic else ""
    rest = numbers - elliptic
    return " ".join(filter(None, [flat, f"Q{rest // m_q + 1}x{m_q}" if rest >= m_q else ""]))
