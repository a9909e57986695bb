"""A checkpoint is one file: parameters, optimiser moments, the best parameters so far, progress.

Batches, negatives and learning rate are functions of (seed, step), so the step is the whole of the
schedule, the random state and the position in the data.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from golde.errors import RunError
from golde.models import Model
from golde.runs.atomic import read_tensors, write_tensors
from golde.training.update import Steps

FIX = "remove it to start from the beginning, or restore it from a copy"
_DAMAGED = f"the file is damaged; {FIX}"


@dataclass
class Progress:
    """Where training stands."""

    step: int = 0
    seconds: float = 0.0
    best_mrr: float = -1.0
    best_step: int = 0
    worse: int = 0  # validations since the last better one
    validations: list[dict[str, float]] = field(default_factory=list)


def save(
    path: Path,
    model: Model,
    update: Steps,
    best: dict[str, Tensor] | None,
    progress: Progress,
    digest: str,
) -> None:
    """Write everything training needs to go on as if it had never stopped."""
    content = {"progress": asdict(progress), "digest": digest}
    write_tensors(path, tensors_of(model, update, best), content)


def tensors_of(model: Model, update: Steps, best: dict[str, Tensor] | None) -> dict[str, Tensor]:
    """By name ``model/…``, ``optimiser/…/…`` and ``best/…``, the tensors that training goes on from."""
    tensors = {f"model/{name}": t for name, t in model.state_dict().items()}
    for parameter, state in update.state().items():
        for key, value in state.items():
            tensors[f"optimiser/{parameter}/{key}"] = value
    for name, value in (best or {}).items():
        tensors[f"best/{name}"] = value
    return tensors


def load(
    path: Path, model: Model, update: Steps, digest: str
) -> tuple[Progress, dict[str, Tensor] | None]:
    """Put a checkpoint back into the model and the optimiser."""
    tensors, metadata = read_tensors(path, fix=FIX)
    progress = progress_of(path, metadata, digest, update.config.steps)
    return progress, restore(path, tensors, progress, model, update)


def restore(
    path: Path, tensors: dict[str, Tensor], progress: Progress, model: Model, update: Steps
) -> dict[str, Tensor] | None:
    """Put the ``tensors_of`` a checkpoint back; the best parameters so far."""
    _check_tensors(path, tensors, model, progress)
    model.load_state_dict(_under("model/", tensors))
    states = {name: _under(f"optimiser/{name}/", tensors) for name, _ in model.named_parameters()}
    update.load({name: state for name, state in states.items() if state})
    return _under("best/", tensors) or None


def progress_of(path: Path, content: dict[str, Any], digest: str, steps: int | None) -> Progress:
    """The progress, once its fields are all there, of their types, and possible in so many steps.

    It must be that of a run with this digest.
    """
    if content.get("digest") != digest:
        raise RunError(
            f"{path}: was written for other data, settings or another kind of device; "
            "resume as the run was started, or start a new run folder"
        )
    values = content.get("progress")
    fresh = asdict(Progress())
    if not (
        isinstance(values, dict)
        and values.keys() == fresh.keys()
        and all(type(values[key]) is type(value) for key, value in fresh.items())  # true is an int
    ):
        raise RunError(f"{path}: does not say where training stood: {_DAMAGED}")
    found = Progress(**values)
    possible = {
        "step": 0 <= found.step <= (math.inf if steps is None else steps),
        "seconds": 0 <= found.seconds < math.inf,
        "best_mrr": found.best_mrr <= 1,
        "best_step": 0 <= found.best_step <= found.step,
        "worse": 0 <= found.worse <= len(found.validations),
        "validations": all(_is_validation(one, found.step) for one in found.validations),
    }
    for name, sound in possible.items():
        if not sound:
            rule = f"in {steps} steps" if name == "step" else f"after step {found.step}"
            what = f"progress.{name} is {getattr(found, name)}, which cannot be {rule}"
            raise RunError(f"{path}: {what}: {_DAMAGED}")
    return found


def _is_validation(entry: object, step: int) -> bool:
    """Whether an entry is a step up to the present one with its MRR."""
    return (
        isinstance(entry, dict)
        and entry.keys() == {"step", "mrr"}
        and type(entry["step"]) is int
        and 0 < entry["step"] <= step
        and type(entry["mrr"]) is float
    )


def _check_tensors(
    path: Path, tensors: dict[str, Tensor], model: Model, progress: Progress
) -> None:
    """Every tensor that training needs is there, of its shape and type, and no other is."""
    known = set()
    for name, parameter in model.named_parameters():
        places = [f"model/{name}", *([f"best/{name}"] if progress.best_step else [])]
        if progress.step:
            moments = [f"optimiser/{name}/{key}" for key in ("step", "exp_avg", "exp_avg_sq")]
            known.update(moments)
            places += moments if parameter.numel() else []  # no step ever touches an empty one
        for place in places:
            problem = _problem(place, tensors.get(place), parameter, progress.step)
            if problem is not None:
                raise RunError(f"{path}: {place} {problem}: {_DAMAGED}")
        known.update(places)
    for place in tensors:
        if place not in known:
            raise RunError(f"{path}: {place} is none of this run's tensors: {_DAMAGED}")


def _problem(place: str, found: Tensor | None, parameter: Tensor, steps: int) -> str | None:
    """What is wrong in words, where a tensor like the parameter or a count of its steps should be."""
    if found is None:
        return "is missing"
    counts = place.startswith("optimiser/") and place.endswith("/step")
    shape = () if counts else tuple(parameter.shape)
    if tuple(found.shape) != shape:
        return f"is {tuple(found.shape)}, not {shape}"
    if found.dtype != parameter.dtype and not counts:
        return f"is of {found.dtype}, not {parameter.dtype}"
    if found.isnan().any():
        return "holds what is no number"
    if counts and not 0 <= float(found) <= steps:
        return f"is {float(found):g}, which cannot be after step {steps}"
    return None


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
