"""What a result depends on besides its configuration: versions, hardware, threads, kernels."""

from __future__ import annotations

import platform
from typing import Any

import numpy
import torch

from golde._version import __version__
from golde.kernels.triton import has_triton


def environment(device: torch.device | str) -> dict[str, Any]:
    """Versions and hardware, as stored with every run and every figure."""
    found = {
        "golde": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "platform": platform.platform(),
        "device": str(device),
        "threads": torch.get_num_threads(),
    }
    if torch.device(device).type == "cuda":
        found["gpu"] = torch.cuda.get_device_name(device)
        found["kernels"] = _kernels()
    return found


def _kernels() -> str:
    """What float32 takes on a GPU: the kernels, by the compiler they depend on, or plain operations."""
    if not has_triton():
        return "plain"
    import triton

    return f"triton {triton.__version__}"
