"""What a graph is shaped like, relation by relation: how much of a tree, of a ring, of a plane.

Everything is measured on training facts, those that link an entity to itself aside. What would take too
long in full is sampled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from golde.analysis.paths import Links, contained, knots, pieces, shortcuts
from golde.data.describe import relation_categories
from golde.data.graph import KnowledgeGraph
from golde.data.numbering import Ids
from golde.progress import Progress, silent

SOURCES = 64
"""Entities of a relation that paths are followed from, or about as many as it has."""

TOGETHER = 8
"""Sources that lie in the same piece of the graph, so that there are distances between them."""

DRAWS = 64
"""Quadruples for δ, and as many triples for the curvature, that are drawn for each source."""

Measured = NDArray[np.float64]


@dataclass(frozen=True)
class Structure:
    """Measures of one relation, or of all together; None where there is nothing to measure."""

    name: str
    facts: int
    entities: int
    category: str | None
    """1-1, 1-N, N-1 or N-N; None for all relations together."""
    symmetry: float
    """Share of facts whose reverse is a fact too."""
    cyclicity: float
    """Share of facts that lie on a directed cycle; a fact and its reverse are one."""
    krackhardt: float | None
    """Of all ordered pairs of which the first leads to the second, those where there is no way back."""
    delta: float | None
    """Gromov's δ, the mean over quadruples, in links: 0 in a tree."""
    delta_relative: float | None
    """The mean of 2δ / diameter: from 0, a tree, to 1."""
    diameter: int
    """The longest distance met."""
    curvature: float | None
    """By the parallelogram law: negative where paths branch, 0 on lines and grids, positive on rings."""


def measure(
    graph: KnowledgeGraph, *, seed: int = 0, progress: Progress = silent
) -> tuple[Structure, list[Structure]]:
    """All relations together, and each of them in the order of the vocabulary."""
    head, relation, tail = graph.train.numpy().T
    sizes = np.bincount(relation, minlength=len(graph.relations))
    order = np.argsort(relation, kind="stable")
    categories, total, done = relation_categories(graph), 2 * len(head), 0
    found = []
    for i, rows in enumerate(np.split(order, np.cumsum(sizes)[:-1])):
        rng = np.random.default_rng([seed, i])
        found.append(_measure(graph.relations[i], head[rows], tail[rows], categories[i], rng))
        done += len(rows)
        progress(done, total)
    whole = _measure(graph.name, head, tail, None, np.random.default_rng([seed, len(sizes)]))
    progress(total, total)
    return whole, found


def _measure(
    name: str, head: Ids, tail: Ids, category: str | None, rng: np.random.Generator
) -> Structure:
    names, ends = np.unique(np.concatenate([head, tail]), return_inverse=True)
    start, end = ends.reshape(2, -1)[:, head != tail]
    nodes = len(names)
    onward = Links.of(start, end, nodes)
    knot = knots(onward)
    around = joined(onward, knot)
    delta, relative, xi, diameter = _from_sources(around, rng)
    return Structure(
        name=name,
        facts=len(head),
        entities=nodes,
        category=category,
        symmetry=_mean(np.isin(end * nodes + start, start * nodes + end)) or 0.0,
        cyclicity=_mean(knot[start] == knot[end]) or 0.0,
        krackhardt=krackhardt(onward, knot, rng),
        delta=delta,
        delta_relative=relative,
        diameter=diameter,
        curvature=xi,
    )


def krackhardt(onward: Links, knot: Ids, rng: np.random.Generator) -> float | None:
    """``#{(a, b): a → b, not b → a} / #{(a, b): a → b}`` over a sample of a (Krackhardt, 1994).

    ``a → b`` means that a path leads from a to b, of one link or more.
    """
    sources = _draw(np.flatnonzero(onward.degree), SOURCES, rng)
    reached = mutual = 0
    for i in range(0, len(sources), TOGETHER):
        some = sources[i : i + TOGETHER]
        row, node = np.nonzero(onward.distances(some) > 0)
        reached += len(node)
        mutual += int((knot[some[row]] == knot[node]).sum())
    return 1 - mutual / reached if reached else None


def joined(onward: Links, knot: Ids) -> Links:
    """Links in both directions, without shortcuts: where a → b → c, a link a → c says nothing of the shape.

    A hierarchy told with all ancestors is then the tree it comes from. Only links that lie on no directed
    cycle can be shortcuts; among those nothing is cut off.
    """
    start, end = onward.start, onward.to
    steps = knot[start] != knot[end]
    away = np.zeros(len(end), dtype=np.bool_)
    away[steps] = shortcuts(Links.of(start[steps], end[steps], onward.nodes))
    start, end = start[~away], end[~away]
    return Links.of(np.concatenate([start, end]), np.concatenate([end, start]), onward.nodes)


def _from_sources(
    around: Links, rng: np.random.Generator
) -> tuple[float | None, float | None, float | None, int]:
    """Means of δ, of δ over half the diameter and of ξ, and the longest distance met."""
    if not len(around.to):
        return None, None, None, 0
    piece = pieces(around.start, around.to, around.nodes)
    members, sizes = np.argsort(piece, kind="stable"), np.bincount(piece)
    starts = np.cumsum(sizes) - sizes
    delta, relative, xi, diameter = [np.empty(0)], [np.empty(0)], [np.empty(0)], 1
    inside = np.flatnonzero(sizes[piece] > 2)  # in a pair there is nothing to compare
    left = min(SOURCES, len(inside))
    for chosen in rng.permutation(inside):  # a piece comes up in proportion to its size
        if left <= 0:
            break
        there = members[starts[piece[chosen]] :][: sizes[piece[chosen]]]
        sources = _draw(there, TOGETHER, rng)
        steps = around.distances(sources)
        longest = int(steps.max())
        delta.append(deltas(steps, sources, there, rng))
        relative.append(delta[-1] / (longest / 2))
        xi.append(curvatures(around, steps, there, rng))
        diameter = max(diameter, longest)
        left -= len(sources)
    # Pairs are lines, and lines are flat.
    branching = len(inside) / int((sizes[piece] > 1).sum())
    curvature = branching * (_mean(np.concatenate(xi)) or 0.0)
    return _mean(np.concatenate(delta)), _mean(np.concatenate(relative)), curvature, diameter


def deltas(
    steps: NDArray[np.int32], sources: Ids, there: Ids, rng: np.random.Generator
) -> Measured:
    """``δ = (S₁ − S₂) / 2``, where ``S₁ ≥ S₂ ≥ S₃`` are ``xy + zw``, ``xz + yw``, ``xw + yz`` (Gromov, 1987).

    x, y, z are sources, w is any entity of their piece, ``there``; ``steps`` are the distances of sources.
    """
    if len(sources) < 3 or len(there) < 4:
        return np.empty(0)
    count = DRAWS * len(sources)
    order = rng.permuted(np.tile(np.arange(len(sources)), (count, 1)), axis=1)
    x, y, z = order[:, :3].T
    w = rng.choice(there, count)
    far = np.stack([steps[x, w], steps[y, w], steps[z, w]])  # (3, count)
    near = np.stack([steps[y, sources[z]], steps[x, sources[z]], steps[x, sources[y]]])
    reached = ((far > 0) & (near > 0)).all(0)
    sums = np.sort((far + near)[:, reached], axis=0)
    drawn: Measured = (sums[2] - sums[1]) / 2
    return drawn


def curvatures(
    around: Links, steps: NDArray[np.int32], there: Ids, rng: np.random.Generator
) -> Measured:
    """``ξ = (d(a,m)² + d(b,c)²/4 − (d(a,b)² + d(a,c)²)/2) / 2d(a,m)`` (Gu et al., 2019).

    a is a source, b and c are two neighbours of m. m comes up in proportion to its neighbours: where ten
    thousand entities have one parent, nearly all there is to see is seen from the parent.
    """
    middles = there[around.degree[there] > 1]
    if not len(middles):
        return np.empty(0)
    weight = around.degree[middles] / around.degree[middles].sum()
    a = np.repeat(np.arange(len(steps)), DRAWS)
    m = rng.choice(middles, len(a), p=weight)
    reached = steps[a, m] > 0
    a, m = a[reached], m[reached]
    one, other = rng.integers(around.degree[m]), rng.integers(around.degree[m] - 1)
    other += other >= one  # two different ones
    b, c = around.to[around.first[m] + one], around.to[around.first[m] + other]
    # No search: neighbours of m are one link apart or two.
    linked = contained(b * around.nodes + c, around.codes)
    bc = np.where(linked, 1.0, 2.0)
    reached = (steps[a, b] >= 0) & (steps[a, c] >= 0)
    am, ab, ac = (steps[a, node][reached].astype(np.float64) for node in (m, b, c))
    drawn: Measured = (am**2 + bc[reached] ** 2 / 4 - (ab**2 + ac**2) / 2) / (2 * am)
    return drawn


def _draw(members: Ids, most: int, rng: np.random.Generator) -> Ids:
    """All members, or as many as allowed, none twice."""
    return members if len(members) <= most else rng.choice(members, most, replace=False)


def _mean(values: NDArray[np.bool_] | Measured) -> float | None:
    return float(values.mean()) if len(values) else None
