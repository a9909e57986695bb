"""Penalties on entity embeddings.

``λ · mean ‖e‖`` is over all entities, whether a step draws them or not, because what it is for are those that
training says little about: its gradient goes straight to Adam. ``λ · mean Σ|e_i|³`` is over the entities of
the facts of a step, and part of its loss.
"""

from __future__ import annotations

import torch
from torch import Tensor

from golde.config import TrainingConfig
from golde.kernels.adam import TINY


def pull(config: TrainingConfig, entities: int) -> float:
    """How hard ``λ · mean ‖e‖`` pulls each entity towards the origin: λ/E; 0 where it is not asked for."""
    if config.regulariser != "norm" or config.regulariser_weight is None:
        return 0.0
    return config.regulariser_weight / entities


def add_pull(gradient: Tensor, table: Tensor, force: Tensor) -> None:
    """``gradient += force · e/‖e‖`` for every row of a table (E, D), in place; rows of zeros stay."""
    norm = torch.linalg.vector_norm(table, dim=1, keepdim=True)
    gradient.addcmul_(table, force / norm.clamp_min(TINY))


def cubes(rows: Tensor) -> Tensor:
    """``mean Σ|e_i|³`` over rows (n, numbers)."""
    return rows.abs().pow(3).sum(1).mean()
