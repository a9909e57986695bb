"""Graphs whose shape is known."""

from __future__ import annotations

import numpy as np

from golde.data.graph import KnowledgeGraph

Facts = list[tuple[str, str, str]]


def tree(branching: int = 3, depth: int = 5, name: str = "t") -> Facts:
    """Every node but the root under its parent."""
    count = sum(branching**level for level in range(depth + 1))
    return [(f"{name}{i}", "parent", f"{name}{(i - 1) // branching}") for i in range(1, count)]


def grown_tree(entities: int, seed: int) -> Facts:
    """Each entity under one that was there before it, drawn at random."""
    rng = np.random.default_rng(seed)
    return [(f"g{i}", "parent", f"g{rng.integers(i)}") for i in range(1, entities)]


def ring(length: int, name: str = "c") -> Facts:
    return [(f"{name}{i}", "next", f"{name}{(i + 1) % length}") for i in range(length)]


def rings(copies: int, length: int) -> Facts:
    return [fact for copy in range(copies) for fact in ring(length, f"c{copy}-")]


def chain(length: int) -> Facts:
    return [(f"l{i}", "then", f"l{i + 1}") for i in range(length)]


def grid(side: int) -> Facts:
    """A step to the right and a step up from every place."""
    places = [(x, y) for x in range(side) for y in range(side)]
    right = [(f"{x},{y}", "right", f"{x + 1},{y}") for x, y in places if x + 1 < side]
    return right + [(f"{x},{y}", "up", f"{x},{y + 1}") for x, y in places if y + 1 < side]


def both_ways(facts: Facts) -> Facts:
    return [*facts, *((tail, relation, head) for head, relation, tail in facts)]


def in_one_relation(facts: Facts) -> Facts:
    return [(head, "link", tail) for head, _, tail in facts]


def graph(facts: Facts) -> KnowledgeGraph:
    return KnowledgeGraph.from_triples(facts, name="planted")
