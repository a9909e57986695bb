"""TransE (Bordes et al., 2013): ``s(h, r, t) = −‖h + r − t‖``."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from golde.config import ModelConfig
from golde.models.vectors import VectorModel

DEVICE_BLOCK_ELEMENTS = 1 << 26
"""Queries × candidates × numbers compared at a time on a GPU, where their gradient is held one by one."""


class TransE(VectorModel):
    """Relations are translations; ``norm`` is that of the difference, ℓ1 or ℓ2."""

    @classmethod
    def initial_scale(cls, config: ModelConfig, numbers: int) -> float:
        """The first distances are about the margin, or less where that would be a start far out."""
        spread = numbers if config.norm == 1 else math.sqrt(numbers)
        return min((cls.margin_of(config) + 2.0) / spread, 0.1)

    @staticmethod
    def moved(rows: Tensor, relation: Tensor) -> Tensor:
        """``h + r``."""
        return rows + relation

    @staticmethod
    def inverse(relation: Tensor) -> Tensor:
        """The way back: ``‖h + r − t‖ = ‖t − r − h‖``."""
        return -relation

    def _score_all(self, queries: Tensor, candidates: Tensor) -> Tensor:
        """Differences are taken as such: by way of products, small distances would be lost in rounding."""
        parts = queries.split(_block(len(queries), candidates))
        return -torch.cat([_distances(part, candidates, self.config.norm) for part in parts])

    def _score_own(self, queries: Tensor, candidates: Tensor) -> Tensor:
        distances: Tensor = torch.linalg.vector_norm(
            queries - candidates, ord=self.config.norm, dim=-1
        )
        return -distances


def _distances(queries: Tensor, candidates: Tensor, norm: int) -> Tensor:
    found: Tensor = torch.cdist(
        queries, candidates, p=norm, compute_mode="donot_use_mm_for_euclid_dist"
    )
    return found


def _block(queries: int, candidates: Tensor) -> int:
    """How many queries to compare at a time; a CPU and a comparison without gradient need no memory."""
    if candidates.device.type == "cpu" or not torch.is_grad_enabled():
        return max(1, queries)
    return max(1, DEVICE_BLOCK_ELEMENTS // max(1, candidates.numel()))
