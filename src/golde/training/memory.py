"""Running out of memory, told as something to put right."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from golde.errors import ConfigError, GoldeError

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
