"""Walks against plain searches that share no code with them."""

from __future__ import annotations

import numpy as np
import pytest

from golde.analysis.paths import Links, knots, pieces, shortcuts
from golde.data.numbering import Ids


def some_links(seed: int, nodes: int = 30, links: int = 40) -> tuple[Ids, Ids]:
    """Links at random, and a shortcut: 0 → 1 → 2 and 0 → 2."""
    start, end = np.random.default_rng(seed).integers(nodes, size=(2, links))
    start, end = np.append(start, [0, 1, 0]), np.append(end, [1, 2, 2])
    return start[start != end], end[start != end]


def shortest(start: Ids, end: Ids, nodes: int) -> Ids:
    """Floyd and Warshall; −1 where there is no path."""
    steps = np.full((nodes, nodes), 10**6)
    steps[start, end] = 1
    np.fill_diagonal(steps, 0)
    for middle in range(nodes):
        steps = np.minimum(steps, steps[:, middle, None] + steps[None, middle])
    return np.where(steps < 10**6, steps, -1)


@pytest.mark.parametrize("seed", range(5))
def test_walks_are_those_of_an_exhaustive_search(seed: int) -> None:
    nodes = 30
    start, end = some_links(seed)
    links = Links.of(np.append(start, start[0]), np.append(end, end[0]), nodes)  # one of them twice
    steps = shortest(start, end, nodes)
    sources = np.array([7, 0, 7, 29])
    assert np.array_equal(links.distances(sources), steps[sources])
    assert np.array_equal(links.distances(sources, 2), np.where(steps > 2, -1, steps)[sources])

    knot = knots(links)
    assert np.array_equal(knot[:, None] == knot, (steps >= 0) & (steps.T >= 0))

    either = shortest(np.append(start, end), np.append(end, start), nodes) >= 0
    assert np.array_equal(pieces(start, end, nodes), either.argmax(1))

    linked = steps == 1
    twice = linked.astype(int) @ linked.astype(int) > 0
    assert twice[linked].any()
    for at_a_time in (7, 1000):
        assert np.array_equal(shortcuts(links, at_a_time), twice[links.start, links.to])


def test_there_may_be_no_links_and_a_very_long_chain() -> None:
    none = Links.of(np.empty(0, np.int64), np.empty(0, np.int64), 3)
    assert none.distances(np.array([1])).tolist() == [[-1, 0, -1]]
    assert len(set(knots(none))) == 3
    line = np.arange(50_000)
    assert len(set(knots(Links.of(line[:-1], line[1:], 50_000)))) == 50_000
    assert len(set(knots(Links.of(line, np.roll(line, 1), 50_000)))) == 1
