"""Measures of graphs for which they are known, or counted one by one."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import planted
import pytest

from golde.analysis.paths import Links
from golde.analysis.structure import Structure, curvatures, deltas, measure
from golde.data import synthetic


def shape(facts: planted.Facts, seed: int = 0) -> Structure:
    """The measures of the only relation."""
    _, (one,) = measure(planted.graph(facts), seed=seed)
    return one


@pytest.mark.parametrize("seed", range(3))
def test_a_tree_has_no_way_back_no_delta_and_negative_curvature(seed: int) -> None:
    for facts in (planted.tree(3), planted.tree(2, 7), planted.grown_tree(500, seed)):
        one = shape(facts, seed)
        assert (one.krackhardt, one.delta, one.cyclicity, one.symmetry) == (1, 0, 0, 0)
        assert one.curvature is not None
        assert one.curvature < -0.25
        assert one.category == "N-1"


def test_the_curvature_of_a_star_is_counted() -> None:
    """From a leaf two of n leaves: −1 unless it is one of them, so −(n − 2)/n."""
    one = shape([(f"leaf {i}", "of", "hub") for i in range(10)])
    assert one.curvature == pytest.approx(-0.8, abs=0.05)
    assert one.diameter == 2


@pytest.mark.parametrize("length", [5, 12, 61, 5000])
def test_round_a_ring_every_way_leads_back(length: int) -> None:
    one = shape(planted.ring(length))
    assert (one.krackhardt, one.cyclicity, one.symmetry) == (0, 1, 0)
    assert one.curvature is not None
    assert one.curvature >= 0
    if length < 100:  # beyond that sources are too far from each other
        assert one.delta is not None
        assert one.delta > 0.1


def test_chains_and_grids_are_flat() -> None:
    assert shape(planted.chain(200)).curvature == 0
    one = shape(planted.in_one_relation(planted.grid(15)))
    assert one.curvature == pytest.approx(0, abs=0.06)
    assert one.delta_relative is not None
    assert one.delta_relative > 0.05
    assert one.krackhardt == 1


def test_both_directions_are_symmetric_and_pairs_are_flat() -> None:
    one = shape(planted.both_ways(planted.tree()))
    assert (one.symmetry, one.cyclicity, one.krackhardt) == (1, 1, 0)
    pairs = shape([(f"a{i}", "of", f"b{i}") for i in range(50)])
    assert (pairs.curvature, pairs.delta, pairs.krackhardt, pairs.category) == (0, None, 1, "1-1")
    star = [(f"leaf {i}", "of", "hub") for i in range(50)]
    mostly_pairs = shape([*star, *((f"a{i}", "of", f"b{i}") for i in range(500))])
    assert mostly_pairs.curvature is not None
    assert -0.1 < mostly_pairs.curvature < 0


def test_a_hierarchy_told_with_all_ancestors_is_measured_as_the_tree_it_is() -> None:
    graph = synthetic.tree(closure=True)
    relations = dict(zip(graph.relations, measure(graph)[1], strict=True))
    parent, ancestor = relations["parent"], relations["ancestor"]
    assert ancestor.delta == 0
    assert ancestor.curvature == pytest.approx(parent.curvature, abs=0.1)


def test_an_entity_linked_to_itself_tells_nothing() -> None:
    one = shape([("a", "is", "a"), ("b", "is", "b")])
    assert (one.facts, one.krackhardt, one.delta, one.curvature) == (2, None, None, None)
    facts = planted.tree()
    looped = shape([*facts, ("t0", "parent", "t0")])
    assert (looped.cyclicity, looped.krackhardt) == (0, 1)


def test_all_relations_together_are_measured_too_and_the_seed_decides() -> None:
    graph = planted.graph(planted.grid(12))
    whole, relations = measure(graph, seed=3)
    assert [one.name for one in relations] == list(graph.relations)
    assert whole.category is None
    assert whole.facts == len(graph.train)
    assert whole.delta is not None
    assert whole.delta > 0
    assert [one.delta for one in relations] == [0, 0]  # rows, and columns, are lines
    assert (whole, relations) == measure(graph, seed=3)
    assert whole != measure(graph, seed=4)[0]


def test_samples_of_delta_and_curvature_agree_with_counting_all() -> None:
    """A wheel with a tail, small enough for every quadruple and every triple."""
    nodes = 9
    rim = [(i, (i + 1) % 6) for i in range(6)]
    start, end = np.array([*rim, *((i, 6) for i in range(0, 6, 2)), (6, 7), (7, 8)]).T
    around = Links.of(np.append(start, end), np.append(end, start), nodes)
    everyone = np.arange(nodes)
    steps = around.distances(everyone)
    d = steps.tolist()
    all_deltas = []
    for x, y, z, w in combinations(range(nodes), 4):
        sums = sorted([d[x][y] + d[z][w], d[x][z] + d[y][w], d[x][w] + d[y][z]])
        all_deltas.append((sums[2] - sums[1]) / 2)
    by_middle: dict[int, list[float]] = {m: [] for m in range(nodes)}
    for m, b, c, a in permutations(range(nodes), 4):
        if d[m][b] == d[m][c] == 1:
            by_middle[m] += [_xi(d, a, m, b, c)]
    for m, b, c in permutations(range(nodes), 3):  # a may be b or c
        if d[m][b] == d[m][c] == 1:
            by_middle[m] += [_xi(d, b, m, b, c), _xi(d, c, m, b, c)]
    many = [m for m in range(nodes) if around.degree[m] > 1]
    expected = np.average(
        [np.mean(by_middle[m]) for m in many], weights=[around.degree[m] for m in many]
    )

    rng = np.random.default_rng(0)
    drawn = [deltas(steps, everyone, everyone, rng) for _ in range(40)]
    assert np.concatenate(drawn).mean() == pytest.approx(np.mean(all_deltas), abs=0.01)
    drawn = [curvatures(around, steps, everyone, rng) for _ in range(40)]
    assert np.concatenate(drawn).mean() == pytest.approx(expected, abs=0.02)


def _xi(d: list[list[int]], a: int, m: int, b: int, c: int) -> float:
    apart = (d[a][b] ** 2 + d[a][c] ** 2) / 2
    return float((d[a][m] ** 2 + d[b][c] ** 2 / 4 - apart) / (2 * d[a][m]))
