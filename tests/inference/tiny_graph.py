"""A graph with something of everything: loops, several splits, a fact held twice."""

from __future__ import annotations

from golde.data.graph import KnowledgeGraph

# Only "knows" has facts from an entity to itself.
TRAIN = [
    *((f"p{i}", "next", f"p{(i + 1) % 7}") for i in range(7)),
    *((f"p{i}", "twin", f"q{i}") for i in range(5)),
    *((f"q{i}", "knows", f"q{j}") for i in range(4) for j in range(5) if (i + j) % 3),
]
VALID = [("p5", "twin", "q5")]
TEST = [
    ("p6", "twin", "q6"),
    ("q0", "knows", "q3"),
    ("p0", "next", "p1"),
]  # the last is in train too


def graph() -> KnowledgeGraph:
    return KnowledgeGraph.from_triples(TRAIN, VALID, TEST, name="tiny")


def known_split(fact: tuple[str, str, str]) -> str | None:
    splits = {"train": TRAIN, "valid": VALID, "test": TEST}
    return next((name for name, facts in splits.items() if fact in facts), None)
