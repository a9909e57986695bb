"""The model that another package's class holds, from the words it is asked for with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from golde.config import Config
from golde.errors import ConfigError
from golde.models import GoldE


def build_golde(
    signature: str, settings: Mapping[str, Any] | None, entities: int, relations: int
) -> GoldE:
    """A GoldE model of one score for both directions, started from torch's own random numbers."""
    values = {"reciprocal": False, **(settings or {}), "signature": signature}
    if values["reciprocal"]:
        raise ConfigError(
            "settings: reciprocal = true gives heads parameters of their own, which a fact's one score never "
            "trains; leave it out, or train on inverse relations as well"
        )
    config = Config.from_dict({"model": values})
    return GoldE(config.model, entities, relations, seed=_seed())


@torch.no_grad()
def start_again(model: GoldE) -> None:
    """Give a model parameters to start from, in place."""
    fresh = GoldE(model.config, model.entities, model.relations, seed=_seed())
    for name, parameter in model.named_parameters():
        parameter.copy_(fresh.get_parameter(name))


def _seed() -> int:
    return int(torch.randint(2**31, ()))
