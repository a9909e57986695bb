"""What a step of training draws, on a GPU: two kernels and a sort.

The reference is the plain form of ``golde.training.sampling.Sampler``, and what is drawn is the same bit
for bit.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from golde.kernels.triton.draw_kernels import draw_kernel, known_kernel
from golde.kernels.triton.memory import new
from golde.kernels.triton.sorting import sorted_few

DRAWN = 256
"""Queries or negatives that a program draws."""

COLUMNS = 1024
"""Candidates of a query that a program looks for."""


class Source(NamedTuple):
    """What to draw from: F facts as queries, in an order, and the step to draw for; all contiguous."""

    facts: Tensor  # (3, F): entity, direction, answer
    weight: Tensor  # (F,): how much each counts
    place: Tensor  # (F,): where its query stands among the known ones
    loop: Tensor  # (F,): the query's own entity is a known answer
    order: Tensor  # (F + B,): of an epoch, and as much of the next as a batch can reach into
    step: Tensor  # ()


class Drawn(NamedTuple):
    """B queries, their own facts, and N sorted negatives."""

    entities: Tensor  # (2B + N,): entities asked about, their answers, negatives
    direction: Tensor  # (B,)
    weight: Tensor  # (B,), adding up to one
    place: Tensor  # (B,)
    own_masked: Tensor  # (B,)


def draw(source: Source, B: int, uniform: int, E: int, start: int, *, answers: bool) -> Drawn:
    """The batch and the negatives of a step: uniform from the stream that ``start`` begins.

    As many as there are entities, E, asks for each of them once; ``answers`` adds those of the batch.
    """
    takes_all = uniform == E
    N = uniform + answers * B
    drawn = Drawn(
        new(source.facts, 2 * B + N),
        new(source.facts, B),
        new(source.weight, B),
        new(source.place, B),
        new(source.loop, B),
    )
    candidates = drawn.entities[2 * B :]
    unsorted = candidates if takes_all else new(source.facts, N)
    draw_kernel[(-(-B // DRAWN) + -(-uniform // DRAWN),)](
        *source.facts, source.weight, source.place, source.loop.view(torch.uint8),
        source.order, source.step,
        *drawn[:4], drawn.own_masked.view(torch.uint8), unsorted,
        start, source.facts.shape[1], B, uniform, E,
        TAKES_ALL=takes_all, ANSWERS=answers, BLOCK=DRAWN, num_warps=4,
    )  # fmt: skip
    if not takes_all:
        sorted_few(unsorted, candidates)
    return drawn


def known_pairs(
    place: Tensor, offsets: Tensor, codes: Tensor, stride: int, candidates: Tensor
) -> Tensor:
    """Which sorted candidates (N,) are repeated or known answers of which queries, (B, N).

    The answers of query b are ``codes[offsets[place[b]]:offsets[place[b] + 1]] − place[b] · stride``,
    in order.
    """
    B, N = len(place), len(candidates)
    masked = new(codes, B, N, dtype=torch.bool)
    known_kernel[(B, -(-N // COLUMNS))](
        place, offsets, codes, candidates, masked.view(torch.uint8), stride, N,
        BLOCK=COLUMNS, num_warps=4,
    )  # fmt: skip
    return masked
