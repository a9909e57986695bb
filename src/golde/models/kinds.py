"""Which model a configuration asks for."""

from __future__ import annotations

from collections.abc import Callable

from golde.config import ModelConfig, refuse_foreign_settings
from golde.models.complex import ComplEx
from golde.models.contract import Model
from golde.models.distmult import DistMult
from golde.models.golde import GoldE
from golde.models.transe import TransE

KINDS: dict[str, Callable[..., Model]] = {
    "golde": GoldE,
    "transe": TransE,
    "distmult": DistMult,
    "complex": ComplEx,
}
"""By ``model.kind``."""


def build(
    config: ModelConfig,
    entities: int,
    relations: int,
    *,
    seed: int = 0,
    rows: range | None = None,
) -> Model:
    """A new model of the kind and size that a configuration asks for, with all entities or some rows."""
    refuse_foreign_settings(config)
    return KINDS[config.kind](config, entities, relations, seed=seed, rows=rows)
