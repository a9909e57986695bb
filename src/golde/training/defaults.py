"""Settings a person did not choose, chosen from the size of the graph."""

from __future__ import annotations

import math
from typing import Any

import torch

from golde.config import Config
from golde.data.graph import KnowledgeGraph
from golde.errors import ConfigError
from golde.evidence.walks import check_hops
from golde.geometry import Signature
from golde.kernels import can_compile

SMALL_GRAPH = 50_000
"""Queries (facts asked both ways) below which a graph is small: it overfits a larger model."""

LARGE_GRAPH = 200_000
"""Queries from which a graph is large: more relations share the cost of a step."""

MOST_QUERIES = 12_000_000
"""Queries a default run asks at the most: minutes on a laptop, whatever the graph."""

WORTH_COMPILING = 1.5e9
"""Pairs × components of a whole run from which compiling saves more time than it takes."""


FACTOR_PENALTY = 0.05
"""Weight of the penalty on the factors of DistMult and ComplEx."""


def resolve(config: Config, graph: KnowledgeGraph) -> Config:
    """The configuration with every open setting filled in.

    The values were chosen on the validation splits of UMLS, CoDEx-S and the shipped graph, those of
    the baselines on the shipped graph alone.
    """
    check_evidence(config, len(graph.valid), len(graph.relations))
    return resolve_sizes(config, len(graph.train), len(graph.entities))


def check_evidence(config: Config, valid: int, relations: int) -> None:
    """Refuse evidence that could not be gathered once training has ended."""
    hops = config.evidence.hops
    check_hops(hops, relations)
    if hops and not valid:
        raise ConfigError(
            f"evidence.hops = {hops} needs validation facts to be weighed by, and there are none; hold some "
            "out (of a single file, --valid SIZE), or leave it out"
        )


def resolve_sizes(config: Config, facts: int, entities: int) -> Config:
    """The same for a graph with so many training facts and entities."""
    queries = 2 * facts
    small = queries < SMALL_GRAPH
    kind, multiplies = config.model.kind, config.model.kind in ("distmult", "complex")
    model: dict[str, Any] = {
        "margin": 0.0 if multiplies else 6.0 if small else 9.0,
        "loop_bias": True,
    }
    if kind == "golde":
        model["signature"] = "P8x8 Q9x8" if small else "P8x16 Q9x16"
    else:  # as many numbers as GoldE has
        model["numbers"] = 128 if small else 256
    training: dict[str, Any] = {
        "batch_size": min(512 if small else 1024 if queries < LARGE_GRAPH else 2048, queries),
        "negatives": min(256, max(32, entities // 4)),
        "learning_rate": 0.01 if small else 0.003,
    }
    if config.training.optimiser == "lazy-adam" and config.training.regulariser == "norm":
        raise ConfigError(
            "training.regulariser = 'norm' moves every entity at every step, and training.optimiser = "
            "'lazy-adam' only those it draws; use 'adam', or the regulariser 'n3'"
        )
    # Products of factors that nothing holds back learn the facts by heart and nothing else.
    penalised = multiplies and config.training.regulariser is None
    training["regulariser"] = "n3" if penalised else "none"
    training["regulariser_weight"] = FACTOR_PENALTY if penalised else 0.0
    batch = config.training.batch_size or training["batch_size"]
    passes = _passes(queries, entities, most=80.0 if small else 40.0)
    training["steps"] = max(300, round(passes * queries / batch))
    steps = config.training.steps or training["steps"]
    training["validate_every"] = max(1, steps // 10)
    resolved = config.with_values(
        model=_open(config.model.model_dump(), model),
        training=_open(config.training.model_dump(), training),
    )
    return resolved.model_copy(update={"graph": None})  # a run has its own


def compiles(config: Config, entities: int, device: torch.device) -> bool:
    """Whether this run compiles the pointwise work of scoring; a GPU has its kernels instead."""
    setting, steps = config.training.compile, config.training.steps or 0
    if setting == "off" or device.type == "cuda":
        return False
    if config.model.kind != "golde":
        if setting == "on":
            raise ConfigError(
                f"training.compile = 'on', but nothing of model.kind = {config.model.kind!r} is compiled on "
                "a CPU; use 'auto' or 'off'"
            )
        return False
    if setting == "on":
        if not can_compile():
            raise ConfigError(
                "training.compile = 'on', but torch.compile does not work here (it needs a C++ "
                "compiler); use 'auto' or 'off'"
            )
        return True
    batch = config.training.batch_size or 0
    candidates = config.training.negatives or entities
    components = Signature.parse(config.model.signature or "").components
    return steps * batch * candidates * components >= WORTH_COMPILING and can_compile()


def captures(config: Config, device: torch.device) -> bool:
    """Whether a step is captured and replayed as a whole."""
    return device.type == "cuda" and config.training.compile != "off"


def _passes(queries: int, entities: int, most: float) -> float:
    """Passes over the facts: fewer where an entity has few, because those are soon overfitted."""
    wanted = min(most, 13 * math.sqrt(queries / max(1, entities)))
    return min(wanted, max(5.0, MOST_QUERIES / max(1, queries)))


def _open(given: dict[str, Any], chosen: dict[str, Any]) -> dict[str, Any]:
    """The chosen values of settings that were left open."""
    return {key: value for key, value in chosen.items() if given[key] is None}
