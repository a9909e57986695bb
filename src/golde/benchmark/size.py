"""How large a step is, and the sizes beside it that show how its cost grows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch

from golde.errors import ConfigError
from golde.geometry import Signature


class Size(NamedTuple):
    """A graph, a model and a batch; no negatives means all entities."""

    entities: int
    relations: int
    facts: int
    signature: str
    batch: int
    negatives: int


WN18RR = Size(40_943, 11, 86_835, "P10x36 Q13x36", 1000, 3000)
"""What the paper uses on WN18RR."""

SMALL = Size(5_000, 11, 20_000, "P8x8 Q9x8", 256, 256)
"""A step that a CPU makes in a fraction of a second."""

FACTORS = (0.25, 0.5, 2.0, 4.0)
"""What one dimension of a size is multiplied by, all others staying as they are."""


def usual(device: torch.device) -> Size:
    """The size to measure at unless told otherwise."""
    return WN18RR if device.type == "cuda" else SMALL


def check(size: Size) -> None:
    """An error that names the option, if no random graph and no batch of this size can be had."""
    Signature.parse(size.signature)
    most = size.entities * (size.entities - 1) * size.relations // 2
    if size.facts > most:
        raise ConfigError(
            f"--facts {size.facts} is more than half of the facts that {size.entities:,} entities and "
            f"{size.relations:,} relations can make; give at most {most}, or more --entities"
        )
    if size.batch > 2 * size.facts:
        raise ConfigError(
            f"--batch {size.batch} is more than the {2 * size.facts:,} queries that {size.facts:,} facts "
            "make; lower it, or give more --facts"
        )
    if size.negatives > size.entities:
        raise ConfigError(
            f"--negatives {size.negatives} is more than the {size.entities:,} entities; "
            "lower it (0: all of them), or give more --entities"
        )


def growth(size: Size, dimension: str) -> dict[str, Size]:
    """The sizes of a sweep over one dimension by name; ``size`` itself is not among them."""
    if dimension == "negatives" and not size.negatives:
        raise ConfigError(
            "--sweep negatives has nothing to vary where all entities are negatives; give --negatives"
        )
    found = (SWEEPS[dimension](size, factor) for factor in FACTORS)
    return {f"{dimension} {value}": at for value, at in found}


def _times(count: int, factor: float) -> int:
    return max(1, round(count * factor))


def _count(name: str, size: Size, factor: float) -> tuple[int, Size]:
    """Multiply a plain count."""
    value = _times(getattr(size, name), factor)
    return value, size._replace(**{name: value})  # type: ignore[arg-type]


def _components(size: Size, factor: float) -> tuple[int, Size]:
    """Multiply how many components there are of each kind."""
    terms = Signature.parse(size.signature).terms
    grown = Signature(tuple(replace(t, count=_times(t.count, factor)) for t in terms))
    return grown.components, size._replace(signature=str(grown))


def _dimension(size: Size, factor: float) -> tuple[str, Size]:
    """Multiply how many numbers each component stores."""
    grown = Signature(
        tuple(
            replace(t, dimension=_times(t.numbers, factor) + t.dimension - t.numbers)
            for t in Signature.parse(size.signature).terms
        )
    )
    label = " ".join(f"{t.letter}{t.dimension}" for t in grown)
    return label, size._replace(signature=str(grown))


SWEEPS: dict[str, Callable[[Size, float], tuple[int | str, Size]]] = {
    "batch": partial(_count, "batch"),
    "negatives": partial(_count, "negatives"),
    "components": _components,
    "dimension": _dimension,
    "entities": partial(_count, "entities"),
}
"""The dimensions that can be swept over: what to call the size, and the size."""
