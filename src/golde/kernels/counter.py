"""Random numbers as a pure function of (seed, stream, counter), alike on every device.

Nothing is kept between draws: any process or device can draw any part of a stream, and a captured
step that is replayed draws anew because its counter moved on.
"""

from __future__ import annotations

import torch
from torch import Tensor

# A golden-ratio step and the finalising mix of 64 bits known as splitmix64, as signed integers.
STEP = 0x9E3779B97F4A7C15 - 2**64
FIRST, SECOND = 0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64
BITS = 32
"""How many of the 64 bits a number below a bound is made of."""

ROUNDS = 4
"""Of the network that permutes."""


def random_bits(seed: int, stream: int, counter: Tensor) -> Tensor:
    """64 random bits for each counter, as int64; streams of one seed do not overlap."""
    x = counter * STEP + stream_start(seed, stream)
    x = (x ^ _shifted(x, 30)) * FIRST
    x = (x ^ _shifted(x, 27)) * SECOND
    return x ^ _shifted(x, 31)


def random_below(bound: int, bits: Tensor) -> Tensor:
    """Numbers in [0, bound) from random bits: no number is likelier than another by over bound/2³²."""
    assert 0 < bound < 2**31
    return (_shifted(bits, 64 - BITS) * bound) >> BITS


def permuted(total: int, seed: int, stream: int, epoch: Tensor, index: Tensor) -> Tensor:
    """Where ``index`` comes in a random order of [0, total), another one in each epoch, (n,) all three.

    A Feistel network over the next power of four permutes that many numbers; who leaves [0, total) walks on
    until it is back, as whoever began inside comes back.
    """
    half = max(1, ((total - 1).bit_length() + 1) // 2)
    mask = (1 << half) - 1
    place = index
    while True:
        left, right = place >> half, place & mask
        for turn in range(ROUNDS):
            mixed = random_bits(seed, stream, ((epoch * ROUNDS + turn) << 40) + right)
            left, right = right, left ^ (mixed & mask)
        walked = (left << half) | right
        place = walked if place is index else torch.where(place < total, place, walked)
        if (place < total).all():
            return place


def stream_start(seed: int, stream: int) -> int:
    """What the counters of a stream are counted from, as a signed integer of 64 bits."""
    start = _mixed(_mixed(seed) + stream)
    return start if start < 2**63 else start - 2**64


def _shifted(x: Tensor, places: int) -> Tensor:
    """A shift to the right that fills with zeros, where ``>>`` repeats the sign."""
    return (x >> places) & ((1 << (64 - places)) - 1)


def _mixed(x: int) -> int:
    """The same mix of one plain number."""
    mask = 2**64 - 1
    x = (x + 1) * (STEP & mask) & mask
    x = (x ^ x >> 30) * (FIRST & mask) & mask
    x = (x ^ x >> 27) * (SECOND & mask) & mask
    return x ^ x >> 31
