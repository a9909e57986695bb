"""The trainable reflections of one group of components, and the matrices they make."""

from __future__ import annotations

from typing import Literal, TypedDict

import torch
from torch import Tensor, nn

from golde.errors import ConfigError
from golde.geometry.grouping import gather
from golde.geometry.reflections import orth_matrix


class RotationOptions(TypedDict, total=False):
    """How the maps of a group are built and started; every geometry passes them on."""

    reflections: Literal["k", "k-1", "alternating"]
    block: int | None
    scale: float
    generator: torch.Generator | None


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
        reflections: Literal["k", "k-1", "alternating"] = "k",
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
        self.dimension, self.block = dimension, block
        blocks, rows = dimension // block, block if reflections == "k" else block - 1
        self.U = _uniform((relations, count, blocks, rows, block), scale, generator)
        self.last: nn.Parameter | None = None
        if reflections == "alternating":
            # The K-th row of even components, kept apart so that every number is live.
            even = (count + 1) // 2
            self.last = _uniform((relations, even, blocks, 1, block), scale, generator)

    def matrices(self, relation: Tensor | None, w: Tensor | None = None) -> Tensor:
        """``Orth(U_r, w)`` of each relation as (…, M, K, K); ``w`` (…, M, K) defaults to ones."""
        U = gather(self.U, relation)  # (r, M, blocks, rows, block)
        if self.last is not None:
            last = U.new_zeros(*U.shape[:3], 1, self.block)  # a zero row reflects nothing
            last[:, ::2] = gather(self.last, relation)
            U = torch.cat((U, last), -2)
        ones = U.new_ones(()).expand(*U.shape[:3], self.block)
        weight = ones if w is None else w.unflatten(-1, (-1, self.block))
        G = orth_matrix(U, weight)  # (r, M, blocks, block, block)
        if self.block == self.dimension:
            return G.squeeze(2)
        blocks = torch.eye(G.shape[2], dtype=G.dtype, device=G.device)
        spread = torch.einsum("rmbij,bc->rmbicj", G, blocks)
        return spread.reshape(*G.shape[:2], self.dimension, self.dimension)


def _uniform(
    shape: tuple[int, ...], scale: float, generator: torch.Generator | None
) -> nn.Parameter:
    return nn.Parameter(torch.empty(shape).uniform_(-scale, scale, generator=generator))
