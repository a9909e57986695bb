"""Applying one map per relation to many queries without copying the map for each of them.

A map is K² numbers a component where a query is K, so gathering it per query moves far more memory
than the product needs. Queries are laid out in tiles of ``width`` that share a relation instead, and
a map is gathered once a tile.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
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
        """``G_r x_b`` with r the relation of query b; G (count, M, K, K), x (B, M, K)."""
        padded = torch.cat((x.flatten(1), x.new_zeros(1, x.shape[1] * x.shape[2])))
        tiles = gather(padded, self.source).view(-1, self.width, *x.shape[1:])  # (T, width, M, K)
        moved = tiles.transpose(1, 2) @ gather(G, self.relation).mT  # (T, M, width, K)
        flat = moved.transpose(1, 2).flatten(0, 1).flatten(1)
        return gather(flat, self.slot).view(x.shape)


def _width(mean: int, dimension: int) -> int:
    """Tiles as wide as a relation has queries; up to twice that where it makes the product quick."""
    mean = max(1, mean)
    quick = math.ceil(QUICK_PRODUCT / dimension**2)
    return min(MAX_WIDTH, quick if mean < quick <= 2 * mean else mean)


def gather(table: Tensor, index: Tensor) -> Tensor:
    """``table[index]`` whose backward is deterministic and quick on every device."""
    rows: Tensor = embedding(index, table.flatten(1))
    return rows.view(len(index), *table.shape[1:])
