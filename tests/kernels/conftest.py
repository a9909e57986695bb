"""Where kernels are tested: on a GPU if there is one, else in Triton's interpreter.

Triton decides when it is imported whether it interprets; ``torch.compile`` imports it, so do so first.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec

import pytest
import torch
from torch import Tensor

if find_spec("triton") is not None and not torch.cuda.is_available():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        import_module("triton")


@pytest.fixture
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter where there is no GPU, and memory that holds nonsense until it is written to."""
    if not torch.cuda.is_available():
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    plain = import_module("golde.kernels.triton.memory").new

    def poisoned(like: Tensor, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        room: Tensor = plain(like, *shape, dtype=dtype)
        if room.is_floating_point():
            return room.fill_(torch.nan)
        room.view(torch.uint8).fill_(77)  # no number of the tests, and no Boolean
        return room

    for name, module in list(sys.modules.items()):
        if name.startswith("golde.kernels.triton.") and hasattr(module, "new"):
            monkeypatch.setattr(module, "new", poisoned)
