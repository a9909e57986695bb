"""A guard that the geometries share."""

from __future__ import annotations

import torch
from torch import Tensor


def safe_norm(x: Tensor) -> Tensor:
    """``√(Σ x² + tiny)``: the norm over the last axis, with a finite gradient at zero."""
    tiny = 1e-30 if x.dtype == torch.float32 else 1e-60
    return (x.square().sum(-1) + tiny).sqrt()
