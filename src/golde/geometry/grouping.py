"""Applying one map per relation to many queries without copying the map for each of them.

A map is K² numbers a component where a query is K, so gathering it per query moves far more memory
than the product needs. Queries are laid out in tiles of ``width`` that share a relation instead, and
a map is gathered once a tile.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import embedding

MAX_WIDTH = 32

QUICK_PRODUCT = 512
"""Multiplications a tile and component from which its product is quick on the CPU: below 400 of them
PyTorch leaves the batched routine for a plain loop, several times slower."""


class Grouping:
    """Which of ``count`` relations each query uses, and the tiles that suit K×K maps of them."""

    def __init__(self, index: Tensor, count: int, dimension: int) -> None:
        self.index = index  # (B,)
        self.width = _width(len(index) // max(1, count), dimension)
        sizes = torch.bincount(index, minlength=count)
        tiles = (sizes + self.width - 1) // self.width
        order = torch.argsort(index, stable=True)
        place = torch.empty_like(order)
        place[order] = torch.arange(len(index), device=index.device)
        rank = place - (sizes.cumsum(0) - sizes)[index]  # among the queries of its relation
        self.relation = torch.repeat_interleave(
            torch.arange(count, device=index.device), tiles
        )  # (T,) relation of each tile
        self.slot = (tiles.cumsum(0) - tiles)[index] * self.width + rank  # (B,)
        self.source = torch.full(
            (len(self.relation) * self.width,), len(index), device=index.device
        )  # (T·width,) the query in each slot; past the end where a tile is not full
        self.source[self.slot] = torch.arange(len(index), device=index.device)

    def rows(self, table: Tensor) -> Tensor:
        """``table[index]``: a relation's parameters for each of its queries, (B, …)."""
        return gather(table, self.index)

    def apply(self, G: Tensor, x: Tensor) -> Tensor:
        """``G_r x_b`` with r the relation of query b; G (count, M, J, K), x (B, M, K)."""
        return _apply(G, x, self)

    def to_tiles(self, x: Tensor) -> Tensor:
        """Queries (B, M, K) as tiles (T, M, K, width), zero where a tile is not full."""
        padded = x.new_zeros(len(x) + 1, *x.shape[1:])
        padded[:-1] = x
        rows = padded.flatten(1)[self.source]
        return self._order(rows.view(-1, self.width, *x.shape[1:]).permute(0, 2, 3, 1))

    def from_tiles(self, tiles: Tensor) -> Tensor:
        """The inverse of ``to_tiles``, which is also the transpose of it."""
        rows = tiles.permute(0, 3, 1, 2).flatten(0, 1).flatten(1)
        return rows[self.slot].view(-1, *tiles.shape[1:3])

    def _order(self, tiles: Tensor) -> Tensor:
        """The memory order in which the products of such tiles are quick: the longer axis last."""
        return tiles.contiguous() if self.width > tiles.shape[2] else tiles.mT.contiguous().mT


class _Apply(torch.autograd.Function):
    """A product a tile. Slots and queries are a permutation, so both ways are plain gathers."""

    @staticmethod
    def forward(ctx: Any, G: Tensor, x: Tensor, groups: Grouping) -> Tensor:
        maps, tiles = G[groups.relation], groups.to_tiles(x)
        ctx.save_for_backward(maps, tiles)
        ctx.groups, ctx.count = groups, len(G)
        return groups.from_tiles(maps @ tiles)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        maps, tiles = ctx.saved_tensors
        groups: Grouping = ctx.groups
        grad = groups.to_tiles(grads[0])
        to_maps = (grad @ tiles.mT).flatten(1)
        grad_G = scatter(to_maps, groups.relation, ctx.count).view(ctx.count, *maps.shape[1:])
        return grad_G, groups.from_tiles(maps.mT @ grad), None


_apply: Callable[..., Tensor] = _Apply.apply


def _width(mean: int, dimension: int) -> int:
    """Tiles as wide as a relation has queries; up to twice that where it makes the product quick."""
    mean = max(1, mean)
    quick = math.ceil(QUICK_PRODUCT / dimension**2)
    return min(MAX_WIDTH, quick if mean < quick <= 2 * mean else mean)


def gather(table: Tensor, index: Tensor) -> Tensor:
    """``table[index]`` whose backward is deterministic and quick on every device."""
    rows: Tensor = embedding(index, table.flatten(1))
    return rows.view(len(index), *table.shape[1:])


def scatter(rows: Tensor, index: Tensor, count: int) -> Tensor:
    """Sums of the ``rows`` (n, …) with equal ``index``, (count, …): the transpose of ``gather``."""
    total: Tensor = torch.ops.aten.embedding_dense_backward(rows, index, count, -1, False)
    return total
