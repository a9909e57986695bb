"""A checkpoint is one file: parameters, optimiser moments, the best parameters so far, progress.

Batches, negatives and learning rate are functions of (seed, step), so the step is the whole of the
schedule, the random state and the position in the data.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from golde.errors import RunError
from golde.models import GoldE
from golde.runs.atomic import read_tensors, write_tensors
from golde.training.update import Update

_DAMAGED = "the file is damaged, remove it to start from the beginning"


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
    model: GoldE,
    update: Update,
    best: dict[str, Tensor] | None,
    progress: Progress,
    digest: str,
) -> None:
    """Write everything training needs to go on as if it had never stopped."""
    tensors = {f"model/{name}": t for name, t in model.state_dict().items()}
    for parameter, state in update.state().items():
        for key, value in state.items():
            tensors[f"optimiser/{parameter}/{key}"] = value
    for name, value in (best or {}).items():
        tensors[f"best/{name}"] = value
    write_tensors(path, tensors, {"progress": asdict(progress), "digest": digest})


def load(
    path: Path, model: GoldE, update: Update, digest: str
) -> tuple[Progress, dict[str, Tensor] | None]:
    """Put a checkpoint back into the model and the optimiser."""
    tensors, metadata = read_tensors(path)
    if metadata.get("digest") != digest:
        raise RunError(
            f"{path}: was written for other data, settings or another kind of device; "
            "resume as the run was started, or start a new run folder"
        )
    progress = _progress(path, metadata.get("progress"))
    _check_shapes(path, tensors, model, progress)
    model.load_state_dict(_under("model/", tensors))
    states = {name: _under(f"optimiser/{name}/", tensors) for name, _ in model.named_parameters()}
    update.load({name: state for name, state in states.items() if state})
    return progress, _under("best/", tensors) or None


def _progress(path: Path, values: object) -> Progress:
    """The progress, once its fields are all there and of their types."""
    fresh = asdict(Progress())
    if (
        isinstance(values, dict)
        and values.keys() == fresh.keys()
        and all(isinstance(values[key], type(value)) for key, value in fresh.items())
    ):
        return Progress(**values)
    raise RunError(f"{path}: does not say where training stood; {_DAMAGED}")


def _check_shapes(path: Path, tensors: dict[str, Tensor], model: GoldE, progress: Progress) -> None:
    """Every tensor that training needs is there, in its shape."""
    wanted = {}
    for name, parameter in model.named_parameters():
        wanted[f"model/{name}"] = parameter.shape
        if progress.best_step:
            wanted[f"best/{name}"] = parameter.shape
        if progress.step and parameter.numel():  # no step ever touches an empty one
            wanted[f"optimiser/{name}/step"] = torch.Size()
            wanted[f"optimiser/{name}/exp_avg"] = parameter.shape
            wanted[f"optimiser/{name}/exp_avg_sq"] = parameter.shape
    for name, shape in wanted.items():
        found = tuple(tensors[name].shape) if name in tensors else "missing"
        if found != tuple(shape):
            raise RunError(f"{path}: {name} is {found}, not {tuple(shape)}; {_DAMAGED}")


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
