"""Penalties on entity embeddings."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor


def penalty(kind: Literal["norm", "n3"], rows: Tensor) -> Tensor:
    """``mean ‖e‖`` ("norm") or ``mean Σ|e_i|³`` ("n3") over entity rows (n, numbers)."""
    if kind == "norm":
        lengths: Tensor = torch.linalg.vector_norm(rows, dim=1)
        return lengths.mean()
    return rows.abs().pow(3).sum(1).mean()
