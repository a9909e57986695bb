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
from golde.geometry import Signature
from golde.models import GoldE, build
from golde.training.row_adam import moves_rows

MOST_NUMBERS = 1_000_000
"""Numbers an entity may have where nobody can tell how much memory there is."""

_HOST = torch.device("cpu")

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
            f"{what} does not fit in memory; try a smaller model.signature or model.numbers, "
            "training.batch_size or training.negatives in a new run"
        ) from None


def refuse_oversize(
    config: Config, entities: int, relations: int, device: torch.device, *, rows: int = 0
) -> None:
    """An error, before anything is allocated, if the model cannot possibly be trained here.

    ``rows`` is how many entities a step gathers: queries, answers and candidates.
    """
    numbers, there = config.model.numbers, memory_of(device)
    setting = f"model.numbers = {numbers}"
    if numbers is None:
        signature = Signature.parse(config.model.signature or "")
        numbers, setting = signature.numbers, f"model.signature = {str(signature)!r}"
    if there is None:
        if numbers > MOST_NUMBERS:
            raise ConfigError(
                f"{setting} gives an entity {numbers:,} numbers; "
                f"at most {MOST_NUMBERS:,} are possible here"
            )
        return
    needed = least_memory(config, entities, relations, device, rows=rows)
    instead = ""
    if device.type == "cuda" and config.training.entity_table == "device":
        instead = ", or keep the entity table in host memory (training.entity_table = 'host')"
    _refuse(setting, entities, relations, device, needed, there, instead)
    if _staged(config, device) and (there := memory_of(_HOST)) is not None:
        on_host = 3 * entities * numbers * _itemsize(config)
        _refuse(setting, entities, relations, _HOST, on_host, there)


def _refuse(
    setting: str,
    entities: int,
    relations: int,
    device: torch.device,
    needed: int,
    there: int,
    instead: str = "",
) -> None:
    """An error if more is needed than there is."""
    if needed > there:
        raise ConfigError(
            f"{setting} needs at least {needed / 1e9:,.1f} GB to train on "
            f"{entities:,} entities and {relations:,} relations, and there are {there / 1e9:,.1f} GB of "
            f"memory on this {'GPU' if device.type == 'cuda' else 'machine'}; choose a smaller one{instead}"
        )


def least_memory(
    config: Config, entities: int, relations: int, device: torch.device, *, rows: int = 0
) -> int:
    """A lower bound of the bytes that training takes on ``device``.

    Beside parameters and the two moments of Adam there are, one after the other, what a step gathers and
    the gradient of all parameters; of the entity table there is none where only drawn rows have one. A GPU
    has nothing of a table in host memory but the rows of a step, as many that come and as many that go.
    """
    with torch.device("meta"):  # shapes alone
        model = build(config.model, entities, relations)
    numbers = sum(math.prod(parameter.shape) for parameter in model.parameters())
    without_gradient = model.entity.numel() if moves_rows(config.training, device) else 0
    row = model.entity.shape[1]
    gathered = 2 * row  # with its gradient
    if isinstance(model, GoldE) and device.type == "cpu":
        # with its core vectors (longer by a number or more each) and their gradient
        gathered = row + 2 * (row + model.signature.components)
    kept = 3 * numbers
    if _staged(config, device):
        kept += 3 * 3 * rows * row - 3 * model.entity.numel()
    return (kept + max(numbers - without_gradient, rows * gathered)) * _itemsize(config)


def _staged(config: Config, device: torch.device) -> bool:
    """Whether the entity table is not where the work is."""
    return config.training.entity_table == "host" and device.type == "cuda"


def _itemsize(config: Config) -> int:
    return int(getattr(torch, config.training.precision).itemsize)


def memory_of(device: torch.device) -> int | None:
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
