"""Triton decides when it is imported whether it interprets; ``torch.compile`` imports it, so do so first."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import pytest
import torch

if find_spec("triton") is not None and not torch.cuda.is_available():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        import_module("triton")
