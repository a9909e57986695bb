"""Named settings: the default model, published models that are special cases of it, and baselines.

Each function takes a budget of numbers per entity and fills it with as many components as fit.
What is and is not identical to the original is said in ``docs/presets.md`` and tested where it is
exact. Presets choose the space, the maps and the score; how to train is chosen elsewhere.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable

from golde.config import ModelConfig
from golde.errors import ConfigError


def golde(numbers: int) -> ModelConfig:
    """Elliptic and hyperbolic components in equal number, of 8 numbers each where there is room."""
    size = next((k for k in (8, 4) if numbers >= 8 * k), 2)  # at least four pairs of components
    pairs = _count("golde", numbers, 2 * size)
    return ModelConfig(signature=f"P{size}x{pairs} Q{size + 1}x{pairs}")


def rotate(numbers: int) -> ModelConfig:
    """RotatE: rotations of complex numbers, ``−Σ |h∘r − t|``."""
    return ModelConfig(
        signature=f"E2x{_count('rotate', numbers, 2)}", reflections="k", reciprocal=False
    )


def rotate3d(numbers: int) -> ModelConfig:
    """Rotate3D: rotations of three-dimensional vectors by unit quaternions."""
    return ModelConfig(
        signature=f"E3x{_count('rotate3d', numbers, 3)}", reflections="k-1", reciprocal=False
    )


def quat(numbers: int) -> ModelConfig:
    """QuatE: rotations of quaternions; squared distances and biases make up its inner product."""
    return ModelConfig(
        signature=f"E4x{_count('quat', numbers, 4)}",
        reflections="k",
        reciprocal=False,
        norm=2,
        bias=True,
    )


def house(numbers: int, dimension: int = 8) -> ModelConfig:
    """HousE-r: rotations of any dimension by ``2⌊k/2⌋`` Householder reflections."""
    return ModelConfig(
        signature=f"E{dimension}x{_count('house', numbers, dimension)}",
        reflections="k-1" if dimension % 2 else "k",
        reciprocal=False,
    )


def roth(numbers: int) -> ModelConfig:
    """RotH: Givens rotations, then a hyperbolic translation, in one component of learned curvature."""
    return ModelConfig(
        signature=f"Q{2 * _count('roth', numbers, 2) + 1}",
        reflections="k",
        block=2,
        boost_left=True,
        norm=2,
        bias=True,
    )


def refh(numbers: int) -> ModelConfig:
    """RefH: Givens reflections, then a hyperbolic translation, in one component of learned curvature."""
    return ModelConfig(
        signature=f"Q{2 * _count('refh', numbers, 2) + 1}",
        reflections="k-1",
        block=2,
        boost_left=True,
        norm=2,
        bias=True,
    )


def transe(numbers: int) -> ModelConfig:
    """TransE: translations, ``−‖h + r − t‖`` in ℓ1."""
    _count("transe", numbers, 1)
    return ModelConfig(kind="transe", numbers=numbers, reciprocal=False)


def distmult(numbers: int) -> ModelConfig:
    """DistMult: diagonal matrices, ``Σ h r t``; reciprocal relations, as is usual today."""
    _count("distmult", numbers, 1)
    return ModelConfig(kind="distmult", numbers=numbers)


def complex_(numbers: int) -> ModelConfig:
    """ComplEx: complex diagonal matrices, ``Re Σ h r t̄``; reciprocal relations, as is usual today."""
    return ModelConfig(kind="complex", numbers=2 * _count("complex", numbers, 2))


PRESETS: dict[str, Callable[[int], ModelConfig]] = {
    "golde": golde,
    "rotate": rotate,
    "rotate3d": rotate3d,
    "quat": quat,
    "house": house,
    "roth": roth,
    "refh": refh,
    "transe": transe,
    "distmult": distmult,
    "complex": complex_,
}


def preset(name: str, numbers: int) -> ModelConfig:
    """The settings of the preset called ``name`` within a budget of numbers per entity."""
    if name not in PRESETS:
        close = difflib.get_close_matches(name, PRESETS, n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"known are {', '.join(PRESETS)}"
        raise ConfigError(f"unknown preset {name!r}; {hint}")
    return PRESETS[name](numbers)


def _count(name: str, numbers: int, size: int) -> int:
    """How many components of ``size`` numbers fit."""
    if numbers < size:
        raise ConfigError(
            f"preset {name!r} needs at least {size} numbers per entity, not {numbers}"
        )
    return numbers // size
