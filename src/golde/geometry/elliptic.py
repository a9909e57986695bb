"""Elliptic components: relation-specific ellipsoids with weights p > 0 (Eq. 1, 9, 10)."""

from __future__ import annotations

from typing import NamedTuple, Unpack

import torch
from torch import Tensor, nn

from golde.geometry.constraints import positive
from golde.geometry.grouping import Grouping, gather
from golde.geometry.reflections import orth_inverse
from golde.geometry.rotation import Rotation, RotationOptions
from golde.kernels import Core, Root


class EllipticMap(NamedTuple):
    G: Tensor  # (r, M, K, K), orthogonal for ⟨·,·⟩_p
    p: Tensor  # (r, M, K)


class Elliptic(nn.Module):
    """A group of ``count`` elliptic components of dimension ``dimension``."""

    letter = "P"
    word = "elliptic"
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
        self.free_p = nn.Parameter(torch.zeros(relations, count, dimension))

    def maps(self, relation: Tensor | None) -> EllipticMap:
        """``Orth(U_r, p_r)`` and ``p_r`` of each relation (Eq. 9)."""
        p = positive(gather(self.free_p, relation))
        return EllipticMap(self.rotation.matrices(relation, p), p)

    @staticmethod
    def inverse(maps: EllipticMap) -> EllipticMap:
        """``G⁻¹ = P⁻¹ Gᵀ P`` on the same ellipsoid (the paper's ``Gᵀ`` holds only for p = 1)."""
        return EllipticMap(orth_inverse(maps.G, maps.p), maps.p)

    @staticmethod
    def query(head: Tensor, maps: EllipticMap, groups: Grouping) -> Core:
        """Core ``[−2 p∘x, p, ⟨x,x⟩_p]`` of ``x = G e_h``; head (B, M, K)."""
        x = groups.apply(maps.G, head).transpose(0, 1)
        p = groups.rows(maps.p).transpose(0, 1)
        px = p * x
        xx = (px * x).sum(-1, keepdim=True)
        return Core(torch.cat((-2 * px, p, xx), -1), ())

    @staticmethod
    def transport(head: Tensor, maps: EllipticMap, groups: Grouping) -> Tensor:
        """``G e_h``; head (B, M, K)."""
        return groups.apply(maps.G, head)

    @staticmethod
    def candidate(entity: Tensor) -> Core:
        """Core ``[y, y∘y, 1]``; with a query's it multiplies out to Eq. 10 squared; entity (N, M, K)."""
        y = entity.transpose(0, 1)
        return Core(torch.cat((y, y.square(), torch.ones_like(y[..., :1])), -1), ())
