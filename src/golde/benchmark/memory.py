"""Whether what is to be measured fits into memory, before any of it is allocated."""

from __future__ import annotations

import torch

from golde.benchmark.gathered import NEGATIVES
from golde.benchmark.task import Task
from golde.errors import ConfigError
from golde.geometry import Signature
from golde.training.memory import enough_memory, least_memory, memory_of

FACT_BYTES = 300
"""That a fact takes on the host, at the least: it is kept in both directions, sorted by either side."""

PAIR_TENSORS = 3
"""As large as all pairs that the plain form holds at a time, at the least."""

HOST = torch.device("cpu")


def refuse_oversize(task: Task) -> None:
    """An error that names the options to lower, if this machine cannot possibly hold the task.

    What a step takes on a GPU is not held against it: there the forms that do not fit are left out.
    """
    on_host = {"--facts": FACT_BYTES * task.size.facts}
    on_device = {"--signature, --entities or --relations": _state(task)}
    if task.device.type == "cpu":
        on_host |= on_device | {"--batch, --negatives or --signature": _step(task)}
    else:
        _refuse(on_device, task.device)
    _refuse(on_host, HOST)


def _refuse(parts: dict[str, int], device: torch.device) -> None:
    """Compare the bytes that options ask for with those there are."""
    needed, there = sum(parts.values()), memory_of(device)
    if there is not None and needed > there:
        most = max(parts, key=lambda options: parts[options])
        raise ConfigError(
            f"this needs at least {needed / 1e9:,.1f} GB, and there are {there / 1e9:,.1f} GB of memory on "
            f"this {'GPU' if device.type == 'cuda' else 'machine'}; lower {most}, which takes "
            f"{parts[most] / 1e9:,.1f} GB"
        )


def _state(task: Task) -> int:
    """Parameters, gradient and moments."""
    with enough_memory(f"a model of {task.size.signature}"):  # a size may be past 64 bits
        return least_memory(task.config, task.size.entities, task.size.relations, task.device)


def _step(task: Task) -> int:
    """The distances of all pairs, or the rows that are gathered for every query on its own."""
    size, signature = task.size, Signature.parse(task.size.signature)
    pairs = size.batch * (size.negatives or size.entities) * signature.components
    gathered = size.batch * (1 + NEGATIVES) * signature.numbers
    itemsize: int = getattr(torch, task.config.training.precision).itemsize
    return PAIR_TENSORS * max(pairs, gathered) * itemsize
