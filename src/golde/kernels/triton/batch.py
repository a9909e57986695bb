"""All scores of a training step from the rows of its entities, on a GPU.

The reference is the chain ``Geometry.query``, ``Geometry.candidate``, ``paired`` and ``pairwise_reference``
of every group of components; here it is one autograd function over a few kernels, whose derivation is in
``batch_kernels`` and, for the distance of every query to every candidate, in ``distance_kernels``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from golde.kernels.triton.batch_kernels import (
    candidate_backward_kernel,
    candidate_kernel,
    query_backward_kernel,
    query_kernel,
    shares_kernel,
    tiles_kernel,
)
from golde.kernels.triton.blocks import SMALLEST, configuration, kept, rounded_up, width
from golde.kernels.triton.distance import (
    Gradients,
    Packed,
    launch_backward,
    launch_forward,
    new_packed,
    padded,
    shared_memory,
)
from golde.kernels.triton.distance_kernels import CANDIDATE_SIDES, QUERY_SIDES
from golde.kernels.triton.groups import KINDS, Group
from golde.kernels.triton.memory import new
from golde.kernels.triton.sorting import sorted_few
from golde.kernels.triton.streams import side_by_side

CANDIDATES = 64
"""Candidates that a program packs."""

SHARES = 1024
"""Numbers of a relation's maps that a program adds up."""


class Tiles(NamedTuple):
    """Queries sorted by relation, cut into tiles that share one; see ``tiles_kernel``."""

    size: int  # most queries in a tile
    order: Tensor  # (B,)
    relation: Tensor  # (T,)
    begin: Tensor  # (T,)
    end: Tensor  # (T,)
    first: Tensor  # (R + 1,)


# Launchers.


def launch_tiles(which: Tensor, count: int) -> Tiles:
    """The tiles of queries that use the maps ``which`` (B,) of ``count`` ones."""
    B = len(which)
    ordered, order = sorted_few(which)
    size = 32 if 16 * count <= B else 16
    most = B // size + min(B, count)
    relation, begin, end = which.new_empty(3, most, dtype=torch.int32)
    first = which.new_empty(count + 1, dtype=torch.int32)
    tiles_kernel[(1,)](
        ordered, relation, begin, end, first, B, count, most,
        TILE=size, STEPS=B.bit_length(), BLOCK=1024, num_warps=4,
    )  # fmt: skip
    return Tiles(size, order, relation, begin, end, first)


class _Launch:
    """The kernels of one group in one step: where its columns, maps and constants are."""

    def __init__(
        self, group: Group, column: int, rows: Tensor, tiles: Tiles, maps: Sequence[Tensor],
        *, norm: int, own: bool, precision: str,
    ) -> None:  # fmt: skip
        self.group, self.rows, self.tiles = group, rows[:, column:], tiles
        self.column = column
        self.maps = maps
        self.B = len(tiles.order)
        self.N = len(rows) - 2 * self.B
        self.chosen = configuration(
            group.core, geodesic=group.letter == "Q", shared=shared_memory(rows.device)
        )
        self.padded_q = rounded_up(self.B, self.chosen.multiple)
        self.padded_c = rounded_up(self.N, self.chosen.multiple)
        self.across = width(group.core)
        self.norm, self.own, self.precision = norm, own, precision
        block = max(SMALLEST, 1 << (group.K - 1).bit_length())
        self.shape = {"KIND": KINDS[group.letter], "BLOCK_K": block}
        self.usual = {"OWN": own, "NORM": norm, "PRECISION": precision, "TILE": tiles.size}
        self.usual |= {"num_warps": 2 if block <= 32 else 8}  # a larger map needs more registers

    def queries(self, paired: Tensor) -> Packed:
        """Pack the queries; their distances to answers and themselves go to ``paired`` (M, 2, B)."""
        M, K, B = self.group.M, self.group.K, self.B
        sides = QUERY_SIDES if self.group.letter == "Q" else 0
        packed = new_packed(self.rows, M, self.padded_q, self.across, sides, self.precision)
        count = len(self.tiles.relation)
        query_kernel[((count + 1) * M,)](
            self.rows, *self.tiles[1:5], *_three(self.maps), *packed, paired,
            M, B, self.padded_q, self.rows.stride(0), K, count, -self.group.weight,
            WIDTH=self.across, **self.shape, **self.usual,
        )  # fmt: skip
        return packed

    def candidates(self) -> Packed:
        """Pack the candidates."""
        M, K = self.group.M, self.group.K
        sides = CANDIDATE_SIDES if self.group.letter == "Q" else 0
        packed = new_packed(self.rows, M, self.padded_c, self.across, sides, self.precision)
        candidate_kernel[(-(-self.padded_c // CANDIDATES) * M,)](
            self.rows[2 * self.B :], *packed,
            M, self.N, self.padded_c, self.rows.stride(0), K,
            KIND=KINDS[self.group.letter], PRECISION=self.precision, WIDTH=self.across,
            BLOCK=CANDIDATES, num_warps=4,
        )  # fmt: skip
        return packed

    def forward(self, query: Packed, candidate: Packed, out: Tensor, accumulate: bool) -> None:
        """Scores of shared candidates into ``out`` (B, N)."""
        launch_forward(
            query, candidate, self.norm, -self.group.weight, out,
            accumulate=accumulate, precision=self.precision, blocks=self.chosen.forward,
        )  # fmt: skip

    def backward(self, query: Packed, candidate: Packed, grad: Tensor) -> Gradients:
        """Gradients of what was packed under that of the shared scores (B, N), padded."""
        return launch_backward(
            query, candidate, self.norm, -self.group.weight, grad,
            core=self.group.core, precision=self.precision, blocks=self.chosen.backward,
        )  # fmt: skip

    @property
    def passing(self) -> int:
        """About how many numbers ``backward`` takes in passing: a part of the queries' for every tile."""
        tiles = self.padded_c // self.chosen.backward.columns
        return tiles * self.group.M * self.padded_q * kept(self.group.core)

    def unpack(self, found: Gradients, to_paired: Tensor, to_rows: Tensor) -> list[Tensor]:
        """Gradients of rows into ``to_rows``, and of the maps, which are returned.

        ``to_paired`` (1 or 2, B) is the gradient of each query's own scores.
        """
        M, K, B = self.group.M, self.group.K, self.B
        to_rows = to_rows[:, self.column :]
        numbers = found.to_q.shape[2]
        tiles, count = len(self.tiles.relation), len(self.tiles.first) - 1
        shares = new(self.rows, tiles, M * (K * K + K + 1))
        to_maps = [new(given, *given.shape) for given in self.maps]
        candidate_backward_kernel[(-(-self.N // CANDIDATES) * M,)](
            self.rows[2 * B :], found.to_c, found.to_candidate, to_rows[2 * B :],
            M, self.N, self.padded_c, self.rows.stride(0), K,
            KEPT=numbers, **self.shape, BLOCK=CANDIDATES, num_warps=4,
        )  # fmt: skip
        query_backward_kernel[(tiles * M,)](
            self.rows, *self.tiles[1:5], *_three(self.maps), found.to_q, found.to_query, to_paired,
            to_rows, shares,
            M, B, self.padded_q, self.rows.stride(0), K, -self.group.weight,
            KEPT=numbers, **self.shape, **self.usual,
        )  # fmt: skip
        shares_kernel[(count, -(-shares.shape[1] // SHARES))](
            shares, self.tiles.first, *_three(to_maps), M, K,
            KIND=KINDS[self.group.letter], BLOCK=SHARES, num_warps=4,
        )  # fmt: skip
        return to_maps


def _three(maps: Sequence[Tensor]) -> Sequence[Tensor]:
    """As many as kernels take; what a geometry does not have is not looked at."""
    return [*maps, maps[0], maps[0]][:3]


# Autograd.


class _Batch(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        groups: Sequence[Group],
        settings: dict[str, Any],
        tiles: Tiles,
        rows: Tensor,
        *maps: Tensor,
    ) -> tuple[Tensor, Tensor]:
        maps = tuple(given.contiguous() for given in maps)
        launches = list(_launches(groups, settings, tiles, rows, maps))
        B = len(tiles.order)
        shared = new(rows, B, len(rows) - 2 * B)
        paired = new(rows, sum(group.M for group in groups), 1 + settings["own"], B)
        starts = [sum(group.M for group in groups[:place]) for place in range(len(groups))]

        def pack(launch: _Launch, start: int) -> tuple[Packed, Packed]:
            return launch.queries(paired[start:]), launch.candidates()

        jobs = [partial(pack, *each) for each in zip(launches, starts, strict=True)]
        packed = side_by_side(rows.device, jobs)
        for launch, start, sides in zip(launches, starts, packed, strict=True):
            launch.forward(*sides, shared, accumulate=start > 0)
        flat = (t for sides in packed for side in sides for t in side.without_halves())
        ctx.save_for_backward(rows, *tiles[1:], *maps, *flat)
        ctx.groups, ctx.settings, ctx.maps, ctx.size = groups, settings, len(maps), tiles.size
        return paired.sum(0), shared

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        rows, *saved = ctx.saved_tensors
        tiles = Tiles(ctx.size, *saved[:5])
        maps, packed = saved[5 : 5 + ctx.maps], saved[5 + ctx.maps :]
        to_paired, to_shared = grads[0].contiguous(), grads[1]
        to_rows = new(rows, *rows.shape)
        launches = list(_launches(ctx.groups, ctx.settings, tiles, rows, maps))
        fitting: dict[tuple[int, int], Tensor] = {}  # padded alike for most groups
        found = []  # until all is done: other streams read it

        def jobs(places: Iterable[int]) -> Iterator[Callable[[], list[Tensor]]]:
            for place in places:
                launch = launches[place]
                sizes = launch.padded_q, launch.padded_c
                if sizes not in fitting:
                    fitting[sizes] = padded(to_shared, *sizes)
                query, candidate = (
                    Packed(*packed[at : at + 3]) for at in (6 * place, 6 * place + 3)
                )
                found.append(launch.backward(query, candidate, fitting[sizes]))
                yield partial(launch.unpack, found[-1], to_paired, to_rows)

        # What the largest group takes in passing then does for the others, one after the other.
        order = sorted(range(len(launches)), key=lambda place: -launches[place].passing)
        by_place = zip(order, side_by_side(rows.device, jobs(order)), strict=True)
        to_maps = [each for _, of_group in sorted(by_place, key=itemgetter(0)) for each in of_group]
        return None, None, None, to_rows, *to_maps


def _launches(
    groups: Sequence[Group],
    settings: dict[str, Any],
    tiles: Tiles,
    rows: Tensor,
    maps: Sequence[Tensor],
) -> Iterator[_Launch]:
    """One for each group, with its columns and maps."""
    column, taken = 0, 0
    for group in groups:
        count = 1 + KINDS[group.letter]
        yield _Launch(group, column, rows, tiles, maps[taken : taken + count], **settings)
        column, taken = column + group.M * group.K, taken + count


_batch: Callable[..., tuple[Tensor, Tensor]] = _Batch.apply


def fused_batch(
    rows: Tensor,
    which: Tensor,
    groups: Sequence[Group],
    maps: Sequence[Sequence[Tensor]],
    *,
    norm: int,
    own: bool,
    precision: str = "tf32x3",
) -> tuple[Tensor, Tensor | None, Tensor]:
    """Scores of each query's answer (B,), if asked for of its own entity (B,), of all candidates (B, N).

    ``rows`` (2B + N, numbers) in float32 are those of the queries' entities, of their answers and of the
    candidates; ``which`` (B,) says which of the maps each query goes through. A group's maps are those
    of its geometry: G; G and p; Q, b and β. Every group must be ``known``.
    """
    tiles = launch_tiles(which, len(maps[0][0]))
    settings = {"norm": norm, "own": own, "precision": precision}
    flat = [given for of_group in maps for given in of_group]
    paired, shared = _batch(tuple(groups), settings, tiles, rows.contiguous(), *flat)
    return paired[0], paired[1] if own else None, shared
