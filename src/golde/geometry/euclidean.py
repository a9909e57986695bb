"""Euclidean components: ``d(x, y) = ‖G x − y‖`` with G orthogonal (Eq. 10 at p = 1)."""

from __future__ import annotations

from typing import NamedTuple, Unpack

import torch
from torch import Tensor, nn

from golde.geometry.grouping import Grouping
from golde.geometry.rotation import Rotation, RotationOptions
from golde.kernels import Core, Root


class EuclideanMap(NamedTuple):
    G: Tensor  # (r, M, K, K)


class Euclidean(nn.Module):
    """A group of ``count`` Euclidean components of dimension ``dimension``."""

    letter = "E"
    word = "Euclidean"
    unstored = 0  # coordinates of the ambient space that follow from the others
    finish = Root()

    def __init__(
        self,
        dimension: int,
        count: int,
        relations: int,
        **rotation: Unpack[RotationOptions],
    ) -> None:
        super().__init__()
        self.dimension, self.count, self.numbers = dimension, count, dimension
        self.rotation = Rotation(relations, count, dimension, **rotation)

    def maps(self, relation: Tensor | None) -> EuclideanMap:
        """The map of each relation."""
        return EuclideanMap(self.rotation.matrices(relation))

    @staticmethod
    def inverse(maps: EuclideanMap) -> EuclideanMap:
        """``G⁻¹ = Gᵀ``."""
        return EuclideanMap(maps.G.mT)

    @staticmethod
    def query(head: Tensor, maps: EuclideanMap, groups: Grouping) -> Core:
        """Core ``[−2x, 1, ⟨x,x⟩]`` of ``x = G e_h``; head (B, M, K)."""
        x = groups.apply(maps.G, head).transpose(0, 1)
        xx = x.square().sum(-1, keepdim=True)
        return Core(torch.cat((-2 * x, torch.ones_like(xx), xx), -1), ())

    @staticmethod
    def transport(head: Tensor, maps: EuclideanMap, groups: Grouping) -> Tensor:
        """``G e_h``; head (B, M, K)."""
        return groups.apply(maps.G, head)

    @staticmethod
    def candidate(entity: Tensor) -> Core:
        """Core ``[y, ⟨y,y⟩, 1]``; with a query's it multiplies out to ``‖x − y‖²``; entity (N, M, K)."""
        y = entity.transpose(0, 1)
        yy = y.square().sum(-1, keepdim=True)
        return Core(torch.cat((y, yy, torch.ones_like(yy)), -1), ())
