"""Filtered counts and the best candidates of queries on a GPU, with no table of all scores.

Memory is bounded whatever the graph: candidates are packed a span at a time, excluded pairs are bits,
and the scores that have to be looked at twice go to a scratch table. Nothing waits for the device.
The references are ``golde.evaluation.ranking`` and ``golde.inference.search``, which take blocks of scores;
kernels and their derivation are in ``ranks_kernels``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from golde.kernels.pairwise import Core
from golde.kernels.triton.blocks import Blocks, rounded_up
from golde.kernels.triton.distance import Packed, launch_pack
from golde.kernels.triton.distance_kernels import CANDIDATE_SIDES
from golde.kernels.triton.ranks_kernels import BEST, BITS, COUNTS, TRUTH, mark_kernel, tile_kernel

MOST_GROUPS = 3
"""Groups of components that one kernel takes."""

TILE = Blocks(64, 64, 4, 2)
"""That of the distance's forward pass, with one stage less. It is square, of one or two words of the mask."""

REGISTERS = 168
"""To a thread, so that three programs share a multiprocessor."""

SHORT = 32
"""Longer core vectors take more registers, and memory enough without stages."""

BAND = 16
"""Tiles of queries that share their candidates in the cache."""

PACKED = 1 << 26
"""What the candidates packed at a time may come to, in numbers (256 MB)."""

MASKED = 1 << 29
"""Pairs at a time, one bit each (64 MB)."""

SCRATCH = 1 << 24
"""Scores that are looked at twice, at a time (64 MB)."""

SCRATCH_ROWS = 512
"""Queries at a time where scores are looked at twice: enough tiles to keep a large GPU busy."""

MARKS = 128
"""Known answers of a query that are marked at a time."""

PRECISION = "tf32x3"

Scorer = Callable[[Tensor, Tensor, int, int], Tensor]


class Biases(NamedTuple):
    """Of B queries and all E entities: ``push[b] + pull[turned[b], n]`` is added to a score.

    Where the candidate is ``entity[b]``, so is ``loop[b]``.
    """

    push: Tensor  # (B,)
    turned: Tensor  # (B,), true or false
    entity: Tensor  # (B,)
    loop: Tensor  # (B,)
    pull: Tensor | None  # (2, E); none where all are 0, as a table may have a great many entities

    def of(self, queries: Tensor | slice, candidates: Tensor | slice) -> Biases:
        """Those of some queries and candidates."""
        return Biases(
            self.push[queries],
            self.turned[queries],
            self.entity[queries],
            self.loop[queries],
            None if self.pull is None else self.pull[:, candidates],
        )


Known = tuple[Tensor, Tensor, Tensor, Tensor]
"""``first, last, base, codes``: the known answers of query b are ``codes[first[b]:last[b]] − base[b]``."""


# Launchers.


def launch_marks(
    known: Known, entity: Tensor, start: int, stop: int, padded: int, *, own: bool = False
) -> Tensor:
    """The bits of known answers ``start..stop`` and, with ``own``, of the queries' own entities.

    A row of bits has room for as many candidates as were ``padded``.
    """
    rows, words = rounded_up(len(entity), TILE.rows), padded // BITS
    excluded = torch.zeros(rows, words, dtype=torch.int64, device=entity.device)
    mark_kernel[(len(entity),)](
        *known, entity, excluded, start, stop - start, words,
        OWN=own, BLOCK=MARKS, num_warps=MARKS // 32,
    )  # fmt: skip
    return excluded


def launch_ranks(
    what: int,
    query: Sequence[Packed],
    candidate: Sequence[Packed],
    weights: Sequence[float],
    norm: int,
    doubt: Tensor,
    B: int,
    N: int,
    *,
    start: int = 0,
    biases: Biases | None = None,
    **tensors: Tensor,
) -> None:
    """The tiles of B queries, possibly a slice of those packed, and N candidates from ``start`` on.

    ``tensors`` are those that ``tile_kernel`` needs for what it is to do.
    """
    down, over = -(-B // TILE.rows), _rows(candidate) // TILE.columns
    groups: list[Tensor | float] = []
    shapes: dict[str, int] = {}
    for i in range(MOST_GROUPS):
        there = i < len(query)
        q, c = query[i if there else 0], candidate[i if there else 0]
        groups += [*q.halves, *c.halves, q.sides, c.sides]
        scale = weights[i] / weights[i + 1] if i + 1 < len(query) else weights[-1]
        groups += [scale, len(q.vectors)] if there else [1.0, 0]
        shapes[f"GEODESIC_{i}"] = q.geodesic
        shapes[f"WIDTH_{i}"] = q.vectors.shape[2] if there else 0
    options: dict[str, int] = {"num_warps": TILE.warps, "num_stages": 1}
    if max(q.vectors.shape[2] for q in query) <= SHORT:
        options |= {"num_stages": TILE.stages, "maxnreg": REGISTERS}
    named = ("truth", "answers", "offsets", "counts", "excluded", "scores", "maxima")
    push = turned = entity = loop = pull = doubt
    if biases is not None:
        push, turned, entity, loop, _ = biases
        turned = turned.view(torch.uint8)
        pull = push.new_zeros(2, N) if biases.pull is None else biases.pull
    tile_kernel[(down if what == TRUTH else down * over,)](
        *groups, *(tensors.get(name, doubt) for name in named), push, turned, entity, loop, pull, doubt,
        B, N, len(tensors.get("answers", ())), start, pull.stride(0), _rows(query), _rows(candidate),
        WHAT=what, BIASED=biases is not None, NORM=norm, PRECISION=PRECISION, **shapes,
        BLOCK_B=TILE.rows, BLOCK_N=TILE.columns, BAND=BAND, **options,
    )  # fmt: skip


def _rows(side: Sequence[Packed]) -> int:
    """How many rows were packed, also where ``side`` is a slice of them."""
    vectors = side[0].vectors
    return vectors.stride(0) // vectors.shape[2]


# Public.


class FusedScorer:
    """Scores ``−Σ w d^norm`` of up to ``MOST_GROUPS`` groups: in blocks when called, or used up as made.

    ``queries`` and ``candidates`` give the cores of rows of the table, ``biases`` what is added for queries
    by entity and direction; parameters must not change in between. A table in host memory goes through the
    device a span at a time. Where ``doubt`` comes back as other than 0, a score is not finite (or was not the
    same when it was made twice), and blocks of scores have to tell.
    """

    def __init__(
        self,
        score: Scorer,
        table: Tensor,
        queries: Callable[[Tensor, Tensor], Sequence[Core]],
        candidates: Callable[[Tensor], Sequence[Core]],
        weights: Sequence[float],
        norm: int,
        biases: Callable[[Tensor, Tensor], Biases] | None = None,
    ) -> None:
        self.score, self.table, self.weights, self.norm = score, table, weights, norm
        self.queries, self.candidates, self.biases = queries, candidates, biases
        self.kept: dict[tuple[int, int], list[Packed]] = {}

    def __call__(self, entity: Tensor, direction: Tensor, start: int, stop: int) -> Tensor:
        return self.score(entity, direction, start, stop)

    def count(
        self,
        entity: Tensor,
        direction: Tensor,
        row: Tensor,
        answer: Tensor,
        known: Known,
        *,
        own: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Candidates above and level with answer (A,) of query ``row`` (A,), (2, A), and ``doubt``, (1,).

        Queries are entity (B,) and direction (B,); ``row`` ascends. Known answers do not count, nor with
        ``own`` does a query's own entity.
        """
        B = len(entity)
        query = self._packed_queries(entity, direction)
        counts = torch.zeros(2, len(answer), dtype=torch.int32, device=entity.device)
        doubt = counts.new_zeros(1)
        offsets = torch.searchsorted(row, torch.arange(B + 1, device=row.device))
        biases = None if self.biases is None else self.biases(entity, direction)
        truth = self._true_distances(query, row, answer, biases, doubt)
        for start, stop, candidate in self._spans(query, MASKED // _rows(query)):
            launch_ranks(
                COUNTS, query, candidate, self.weights, self.norm, doubt, B, stop - start,
                start=start, truth=truth, answers=answer, offsets=offsets, counts=counts,
                excluded=launch_marks(known, entity, start, stop, _rows(candidate), own=own),
                biases=biases and biases.of(slice(None), slice(start, stop)),
            )  # fmt: skip
        return counts, doubt

    def top(
        self, entity: Tensor, direction: Tensor, k: int, known: Known
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Scores and entities of each query's k best, (B, min(k, E)), best first, and ``doubt``, (1,).

        Of equal scores that of the lower entity comes first; known answers score −∞.
        """
        k = min(k, len(self.table))
        query = self._packed_queries(entity, direction)
        # ``_best_of_tiles`` copies k tiles of each query, with wide integers beside them.
        fit = SCRATCH // (4 * k * TILE.columns) // TILE.rows * TILE.rows
        rows = max(TILE.rows, min(SCRATCH_ROWS, _rows(query), fit))
        doubt = torch.zeros(1, dtype=torch.int32, device=entity.device)
        biases = None if self.biases is None else self.biases(entity, direction)
        values = torch.empty(len(entity), 0, device=entity.device)
        best = entity.new_empty(len(entity), 0)
        for start, stop, candidate in self._spans(query, SCRATCH // rows):
            tiles = _rows(candidate) // TILE.columns
            scores = values.new_empty(rows, tiles, TILE.columns)
            maxima = values.new_empty(rows, tiles)
            found = []
            for at in range(0, len(entity), rows):
                some = slice(at, at + rows)
                asked = entity[some]
                own = [
                    Packed(q.vectors[:, some], q.split[:, :, some], q.sides[:, :, some])
                    for q in query
                ]
                first, last, base, codes = known
                marks = first[some], last[some], base[some], codes
                launch_ranks(
                    BEST, own, candidate, self.weights, self.norm, doubt, len(asked), stop - start,
                    start=start, excluded=launch_marks(marks, asked, start, stop, _rows(candidate)),
                    scores=scores, maxima=maxima,
                    biases=biases and biases.of(some, slice(start, stop)),
                )  # fmt: skip
                found.append(_best_of_tiles(scores[: len(asked)], maxima[: len(asked)], k))
            more = [torch.cat(parts) for parts in zip(*found, strict=True)]
            values, best = torch.cat([values, more[0]], 1), torch.cat([best, more[1] + start], 1)
            values, best = _first(values, best, k)
        return values, best, doubt

    def _packed_queries(self, entity: Tensor, direction: Tensor) -> list[Packed]:
        return _pack(self.queries(self._table_rows(entity), direction))

    def _table_rows(self, ids: Tensor) -> Tensor:
        """Some rows of the table, where the ids are."""
        return self.table.index_select(0, ids.to(self.table.device)).to(ids.device)

    def _true_distances(
        self,
        query: Sequence[Packed],
        row: Tensor,
        answer: Tensor,
        biases: Biases | None,
        doubt: Tensor,
    ) -> Tensor:
        """The distance of query ``row`` to its answer, (A,)."""
        candidate = _pack(self.candidates(self._table_rows(answer)))
        which = torch.nn.functional.pad(row, (0, _rows(candidate) - len(row)))
        own = [
            Packed(
                q.vectors.index_select(1, which),
                q.split.index_select(2, which),
                q.sides.index_select(2, which),
            )
            for q in query
        ]
        truth = torch.empty(len(answer), device=answer.device)
        launch_ranks(
            TRUTH, own, candidate, self.weights, self.norm, doubt, len(answer), len(answer),
            truth=truth, answers=answer, biases=biases and biases.of(row, answer),
        )  # fmt: skip
        return truth

    def _spans(self, query: Sequence[Packed], most: int) -> Iterator[tuple[int, int, list[Packed]]]:
        """All candidates, packed, at most so many at a time; what is packed last is kept."""
        # A candidate's vectors as they are and in halves, and what the finish needs of it.
        numbers = sum(3 * q.vectors[:, 0].numel() + CANDIDATE_SIDES * len(q.vectors) for q in query)
        columns = max(min(most, PACKED // numbers) // TILE.columns, 1) * TILE.columns
        for start in range(0, len(self.table), columns):
            stop = min(start + columns, len(self.table))
            packed = self.kept.get((start, stop))
            if packed is None:
                self.kept.clear()
                block = self.table[start:stop].to(query[0].sides.device)
                packed = self.kept[start, stop] = _pack(self.candidates(block))
            yield start, stop, packed


def _pack(cores: Sequence[Core]) -> list[Packed]:
    return [
        launch_pack(core.vector, [s.contiguous() for s in core.scalars], TILE.rows, PRECISION)
        for core in cores
    ]


def _best_of_tiles(scores: Tensor, maxima: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k best (B, k) of scores (B, tiles, columns): they lie in the k tiles with the best maxima."""
    B, tiles, columns = scores.shape
    number = torch.arange(tiles * columns, device=scores.device)
    _, chosen = _first(maxima, number[:tiles].expand(B, -1), k)  # (B, min(k, tiles))
    at = chosen.unsqueeze(2)
    values = scores.gather(1, at.expand(-1, -1, columns)).flatten(1)
    return _first(values, (at * columns + number[:columns]).flatten(1), k)


def _first(values: Tensor, columns: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k highest values of each row, best first, and their columns; of equal values the lower column's.

    A value and its column make one integer that sorts like the pair, so no two are equal and ``topk``
    has no choice. The bits of a float sort like an integer once those below the sign of negative ones
    are turned round.
    """
    bits = values.contiguous().view(torch.int32)
    key = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits).long() * 2**32 - columns
    place = key.topk(min(k, key.shape[1])).indices
    return values.gather(1, place), columns.gather(1, place)
