"""The trainable reflections of one group of components, and the matrices they make."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from golde.errors import ConfigError
from golde.geometry.reflections import orth_matrix, reflect

ReflectionCount = Literal["k", "k-1", "alternating"]


class Rotation(nn.Module):
    """One orthogonal K×K map per relation and component: ``Orth(U_r, w)``.

    Reflections have determinant −1, so their number fixes which half of the group is reached:
    ``"k"`` uses K of them everywhere (the paper), ``"k-1"`` the other parity, ``"alternating"`` K in
    every even component and K−1 in every odd one, so that both halves are at hand.

    With ``block`` the map is block diagonal, made of ``block``-dimensional maps (2 gives the Givens
    rotations or reflections of RotH and RefH).
    """

    def __init__(
        self,
        relations: int,
        count: int,
        dimension: int,
        *,
        reflections: ReflectionCount = "k",
        block: int | None = None,
        scale: float = 0.1,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        block = dimension if block is None else block
        if dimension % block:
            raise ConfigError(
                f"model.block = {block} does not divide a component's {dimension} numbers; "
                "choose a divisor or another dimension"
            )
        self.count, self.dimension, self.block = count, dimension, block
        blocks = dimension // block
        extra = {"k": count, "k-1": 0, "alternating": (count + 1) // 2}[reflections]
        self.U = _uniform((relations, count, blocks, block - 1, block), scale, generator)
        # The reflection that some components have beyond K−1, kept apart so that every number is live.
        self.last = _uniform((relations, extra, blocks, block), scale, generator)
        self.stride = 2 if reflections == "alternating" else 1

    def matrices(self, relation: Tensor, w: Tensor | None = None) -> Tensor:
        """``Orth(U_r, w)`` of each relation as (…, M, K, K); ``w`` (…, M, K) defaults to ones."""
        U = self.U[relation]  # (r, M, blocks, block-1, block)
        ones = U.new_ones(()).expand(*U.shape[:3], self.block)
        weight = ones if w is None else w.unflatten(-1, (-1, self.block))
        G = orth_matrix(U, weight)  # (r, M, blocks, block, block)
        if self.last.shape[1]:
            chosen = slice(None, None, self.stride)
            u = self.last[relation].unsqueeze(-2)
            # H(u) G: reflect every column of G, that is, every row of its transpose.
            reflected = reflect(G[:, chosen].mT, u, weight[:, chosen].unsqueeze(-2)).mT
            if self.stride == 1:
                G = reflected
            else:
                G = G.index_copy(1, torch.arange(0, self.count, 2, device=G.device), reflected)
        if self.block == self.dimension:
            return G.squeeze(2)
        blocks = torch.eye(G.shape[2], dtype=G.dtype, device=G.device)
        spread = torch.einsum("rmbij,bc->rmbicj", G, blocks)
        return spread.reshape(*G.shape[:2], self.dimension, self.dimension)


def _uniform(
    shape: tuple[int, ...], scale: float, generator: torch.Generator | None
) -> nn.Parameter:
    return nn.Parameter(torch.empty(shape).uniform_(-scale, scale, generator=generator))
