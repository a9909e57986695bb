"""Where kernels are tested: on a GPU if there is one, else in Triton's interpreter.

Triton decides when it is imported, and for every kernel when that is defined, whether it interprets. So
all of them are imported here, before a test or ``torch.compile`` does.

A GPU makes a product the same way wherever in a tile it stands, and kernels that make it twice count on that.
The interpreter leaves products to NumPy's BLAS, where the order of a sum hangs on the processor and on where
it stands. So here they are summed in a fixed order.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from golde.kernels import triton


def _dot(builder: Any, a: Any, b: Any, d: Any, *precision: Any) -> Any:
    """``d + a b`` as the interpreter's, one rounded product after another, in the precision of ``d``."""
    total = np.zeros_like(d.data)
    for k in range(a.data.shape[-1]):
        row, column = a.data[..., :, k, None], b.data[..., None, k, :]
        total += np.multiply(row, column, dtype=total.dtype)
    return type(d)(total + d.data, d.dtype.scalar)


if find_spec("triton") is not None and not torch.cuda.is_available():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        for module in iter_modules(triton.__path__):
            import_module(f"{triton.__name__}.{module.name}")
    interpreter = import_module("triton.runtime.interpreter").InterpreterBuilder
    assert hasattr(interpreter, "create_dot"), "the interpreter makes its products elsewhere now"
    interpreter.create_dot = _dot


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
