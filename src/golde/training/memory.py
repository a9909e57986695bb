"""Running out of memory, told as something to put right."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from golde.config import Config
from golde.errors import ConfigError, GoldeError
from golde.models import GoldE
from golde.training.row_adam import moves_rows

MOST_NUMBERS = 1_000_000
"""Numbers an entity may have where nobody can tell how much memory there is."""

_SIGNS = ("allocate memory", "not enough memory", "overflow")
"""What torch says on the CPU: an allocator that refuses, or a size past 64 bits."""


@contextmanager
def enough_memory(what: str) -> Iterator[None]:
    """Whatever is done inside; if it does not fit, an error that names the settings to lower."""
    try:
        yield
    except GoldeError:
        raise
    except (MemoryError, RuntimeError, TypeError, ValueError) as error:
        text = str(error).lower()
        if not isinstance(error, MemoryError | torch.OutOfMemoryError) and not any(
            sign in text for sign in _SIGNS
        ):
            raise
        raise ConfigError(
            f"{what} does not fit in memory; try a smaller model.signature, training.batch_size "
            "or training.negatives in a new run"
        ) from None


def refuse_oversize(config: Config, entities: int, relations: int, device: torch.device) -> None:
    """An error, before anything is allocated, if the model cannot possibly be trained here.

    A lower bound is compared: the parameters, their gradient and the two moments of Adam; of the entity
    table no gradient where only drawn rows have one. What a batch takes comes on top.
    """
    with torch.device("meta"):  # shapes alone
        model = GoldE(config.model, entities, relations)
    signature, there = model.signature, _memory(device)
    if there is None:
        if signature.numbers > MOST_NUMBERS:
            raise ConfigError(
                f"model.signature = {str(signature)!r} gives an entity {signature.numbers:,} numbers; "
                f"at most {MOST_NUMBERS:,} are possible here"
            )
        return
    numbers = sum(math.prod(parameter.shape) for parameter in model.parameters())
    without_gradient = model.entity.numel() if moves_rows(config.training, device) else 0
    needed = (4 * numbers - without_gradient) * getattr(torch, config.training.precision).itemsize
    if needed > there:
        raise ConfigError(
            f"model.signature = {str(signature)!r} needs at least {needed / 1e9:,.1f} GB to train on "
            f"{entities:,} entities and {relations:,} relations, and there are {there / 1e9:,.1f} GB "
            f"of memory on this {'GPU' if device.type == 'cuda' else 'machine'}; choose a smaller one"
        )


def _memory(device: torch.device) -> int | None:
    """Bytes of memory in all, if the system tells."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    if sys.platform == "win32":
        return None
    try:
        pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None
    return pages * size if pages > 0 and size > 0 else None
