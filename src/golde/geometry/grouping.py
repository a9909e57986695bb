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
    """Which of ``count`` relations each query uses, and the tiles that suit K×K maps of them.

    With ``fixed`` (by default on a GPU) there are as many tiles as there can be, some of them empty, so
    that nothing waits.
    """

    def __init__(
        self, index: Tensor, count: int, dimension: int, *, fixed: bool | None = None
    ) -> None:
        fixed = index.device.type != "cpu" if fixed is None else fixed
        self.index = index  # (B,)
        self.width = _width(len(index) // max(1, count), dimension)
        queries = torch.arange(len(index), device=index.device)
        sizes = torch.zeros(count, dtype=torch.int64, device=index.device)
        sizes.index_add_(0, index, torch.ones_like(index))
        tiles = (sizes + self.width - 1) // self.width
        ends = tiles.cumsum(0)
        order = torch.argsort(index, stable=True)
        place = torch.empty_like(order)
        place[order] = queries
        rank = place - (sizes.cumsum(0) - sizes)[index]  # among the queries of its relation
        most = (len(index) + count * (self.width - 1)) // self.width
        total = most if fixed else int(tiles.sum())
        number = torch.arange(total, device=index.device)
        # (T,) relation of each tile; an empty tile at the end takes the last
        self.relation = torch.searchsorted(ends, number, right=True).clamp_(max=count - 1)
        self.slot = (ends - tiles)[index] * self.width + rank  # (B,)
        # (T·width,) the query in each slot; past the end where a tile is not full
        self.source = torch.full((total * self.width,), len(index), device=index.device)
        self.source[self.slot] = queries

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


def present(
    direction: Tensor, directions: int, *, fixed: bool | None = None
) -> tuple[Tensor | None, Tensor]:
    """The directions that maps are needed of, and which of those each query (B,) uses.

    Those that occur; with ``fixed`` (by default on a GPU, where counting them would wait) ``None`` for
    all of them if they are few, and else as many as can occur.
    """
    fixed = direction.device.type != "cpu" if fixed is None else fixed
    if not fixed:
        found, which = torch.unique(direction, return_inverse=True)
        return found, which
    if directions <= len(direction):
        return None, direction
    ordered, order = direction.sort()
    first = torch.ones_like(ordered)
    first[1:] = ordered[1:] != ordered[:-1]
    number = first.cumsum(0) - 1
    found, which = torch.zeros_like(ordered), torch.empty_like(ordered)
    found[number], which[order] = ordered, number
    return found, which


def gather(table: Tensor, index: Tensor | None) -> Tensor:
    """``table[index]``, or all of it; the gradient adds up in a fixed order on a CPU, else as is quickest.

    Rows come out where the index is, also of a table that lies elsewhere.
    """
    if index is None:
        return table
    if index.device != table.device:
        return gather(table, index.to(table.device)).to(index.device)
    flat = table.flatten(1)
    rows: Tensor = (
        embedding(index, flat) if index.device.type == "cpu" else flat.index_select(0, index)
    )
    return rows.view(len(index), *table.shape[1:])
