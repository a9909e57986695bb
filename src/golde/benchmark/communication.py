"""What exchanges between processes cost: ``seconds = latency · hops + bytes moved / bandwidth``.

Of P processes, each moves 2(P − 1)/P of the bytes of a sum and P − 1 times what it tells to all, and what has
to reach everyone takes ⌈log₂ P⌉ hops. With two processes that is one latency, and the bytes once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np

Kind = Literal["add_up", "collect"]


class Exchange(NamedTuple):
    """One exchange of a step, and the bytes that each process puts into it."""

    kind: Kind
    bytes: int


class Link(NamedTuple):
    """The way from one process to another."""

    latency: float  # seconds
    bandwidth: float  # bytes a second

    def seconds(self, exchange: Exchange, processes: int) -> float:
        """How long an exchange takes among so many."""
        if processes == 1:
            return 0.0
        share = 2 * (processes - 1) / processes if exchange.kind == "add_up" else processes - 1
        hops = math.ceil(math.log2(processes))
        return self.latency * hops + share * exchange.bytes / self.bandwidth

    def step_seconds(self, exchanges: Iterable[Exchange], processes: int) -> float:
        """How long all exchanges of a step take, one after the other."""
        return sum(self.seconds(exchange, processes) for exchange in exchanges)


def fit_link(measured: Sequence[tuple[int, float]]) -> Link:
    """Latency and bandwidth from (bytes, seconds) of exchanges between two, by least relative error."""
    latency, slope = fit_line(measured)
    return Link(max(latency, 0.0), 1 / max(slope, 1e-15))


def fit_line(measured: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """``a`` and ``b`` of y = a + b·x from (x, y), by least relative error."""
    x, y = np.array(measured, dtype=np.float64).T
    rows = np.stack([np.ones_like(x), x], axis=1) / y[:, None]
    (a, b), *_ = np.linalg.lstsq(rows, np.ones_like(y), rcond=None)
    return float(a), float(b)
