"""A checkpoint is one file: parameters, optimiser moments, the best parameters so far, progress.

Batches, negatives and learning rate are functions of (seed, step), so the step is the whole of the
schedule, the random state and the position in the data.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from golde.errors import RunError
from golde.models import GoldE
from golde.runs.atomic import read_tensors, write_tensors


@dataclass
class Progress:
    """Where training stands."""

    step: int = 0
    seconds: float = 0.0
    best_mrr: float = -1.0
    best_step: int = 0
    worse: int = 0  # validations since the best
    validations: list[dict[str, float]] = field(default_factory=list)


def save(
    path: Path,
    model: GoldE,
    optimiser: torch.optim.Optimizer,
    best: dict[str, Tensor] | None,
    progress: Progress,
    digest: str,
) -> None:
    """Write everything training needs to go on as if it had never stopped."""
    names = {id(p): name for name, p in model.named_parameters()}
    tensors = {f"model/{name}": t for name, t in model.state_dict().items()}
    for parameter, state in optimiser.state.items():
        for key, value in state.items():
            tensors[f"optimiser/{names[id(parameter)]}/{key}"] = value
    for name, value in (best or {}).items():
        tensors[f"best/{name}"] = value
    write_tensors(path, tensors, {"progress": asdict(progress), "digest": digest})


def load(
    path: Path, model: GoldE, optimiser: torch.optim.Optimizer, digest: str
) -> tuple[Progress, dict[str, Tensor] | None]:
    """Put a checkpoint back into the model and the optimiser."""
    tensors, metadata = read_tensors(path)
    if metadata.get("digest") != digest:
        raise RunError(f"{path}: was written for other data or settings; start a new run folder")
    model.load_state_dict(_under("model/", tensors))
    for name, parameter in model.named_parameters():
        state: dict[str, Any] = {}
        for key, value in _under(f"optimiser/{name}/", tensors).items():
            state[key] = value.to(parameter.device)
        if state:
            optimiser.state[parameter] = state
    best = _under("best/", tensors)
    return Progress(**metadata["progress"]), best or None


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
