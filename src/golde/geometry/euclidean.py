"""Euclidean components: ``d(x, y) = ‖G x − y‖`` with G orthogonal (Eq. 10 at p = 1)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from golde.geometry.numerics import DISTANCE_FLOOR
from golde.geometry.rotation import ReflectionCount, Rotation
from golde.kernels import Core


class EuclideanMap(NamedTuple):
    G: Tensor  # (r, M, K, K)


class Euclidean(nn.Module):
    """A group of ``count`` Euclidean components of dimension ``dimension``."""

    letter = "E"
    unstored = 0  # coordinates of the ambient space that follow from the others

    def __init__(
        self,
        dimension: int,
        count: int,
        relations: int,
        *,
        reflections: ReflectionCount = "k",
        block: int | None = None,
        scale: float = 0.1,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.dimension, self.count, self.numbers = dimension, count, dimension
        self.rotation = Rotation(
            relations,
            count,
            dimension,
            reflections=reflections,
            block=block,
            scale=scale,
            generator=generator,
        )

    def maps(self, relation: Tensor) -> EuclideanMap:
        """The map of each relation."""
        return EuclideanMap(self.rotation.matrices(relation))

    @staticmethod
    def inverse(maps: EuclideanMap) -> EuclideanMap:
        """``G⁻¹ = Gᵀ``."""
        return EuclideanMap(maps.G.mT)

    @staticmethod
    def query(head: Tensor, maps: EuclideanMap) -> Core:
        """``x = G e_h`` with ``⟨x, x⟩``; head (B, M, K), maps gathered per query."""
        x = torch.einsum("bmij,bmj->mbi", maps.G, head)
        return Core(x, (x.square().sum(-1),))

    @staticmethod
    def candidate(entity: Tensor) -> Core:
        """``y = e_t`` with ``⟨y, y⟩``; entity (N, M, K)."""
        y = entity.transpose(0, 1)
        return Core(y, (y.square().sum(-1),))

    @staticmethod
    def finish(dot: Tensor, query: tuple[Tensor, ...], candidate: tuple[Tensor, ...]) -> Tensor:
        """``d = √(⟨x,x⟩ − 2⟨x,y⟩ + ⟨y,y⟩)``."""
        (xx,), (yy,) = query, candidate
        return (torch.clamp_min(xx + yy - 2 * dot, 0) + DISTANCE_FLOOR).sqrt()
