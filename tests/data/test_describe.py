"""What is said about a graph, on facts small enough to count by hand."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from golde.data.describe import _mirrors, describe, relation_categories
from golde.data.graph import KnowledgeGraph


def facts(relation: str, *pairs: str) -> Iterator[tuple[str, str, str]]:
    for head, tail in pairs:
        yield head, relation, tail


def test_everything_counted_by_hand() -> None:
    graph = KnowledgeGraph.from_triples(
        train=[
            *facts("married", "ab", "ba", "cd", "dc", "ee", "ef"),  # 4 of 5 mirrored, ee aside
            *facts("parent", "ac", "ad", "bc", "bd"),
            *facts("child", "ca", "da", "cb"),
            *facts("married", "ab"),
        ],
        valid=[*facts("child", "db", "ca"), *facts("parent", "xc")],
        test=[*facts("child", "db"), *facts("parent", "xd", "xy", "ac")],
    )
    told = describe(graph)
    assert json.loads(json.dumps(told)) == told
    assert (told["entities"], told["relations"]) == (8, 3)
    assert told["facts"] == {"train": 13, "valid": 3, "test": 4}
    assert told["duplicates_dropped"] == 1
    assert told["overlap"] == {"train-valid": 1, "train-test": 1, "valid-test": 1}
    assert told["unseen_in_train"] == {
        "valid": {"entities": 1, "facts": 1},
        "test": {"entities": 2, "facts": 2},
    }
    assert told["symmetric"] == [{"relation": "married", "share": 0.8}]
    assert told["inverse"] == [{"relation": "parent", "inverse": "child", "share": 0.75}]
    assert told["per_relation"][1] == {
        "relation": "parent",
        "category": "N-N",
        "tails_per_head": 2.0,
        "heads_per_tail": 2.0,
        "train": 4,
        "valid": 1,
        "test": 3,
    }
    assert sum(told["categories"].values()) == 3
    assert describe(graph, threshold=0.9)["symmetric"] == []


def test_categories_take_the_usual_threshold() -> None:
    graph = KnowledgeGraph.from_triples(
        [
            *facts("capital", "ab", "cd"),
            *facts("has city", "ab", "ax", "cd"),  # 1.5 tails a head is already many
            *facts("in", "ba", "xa", "dc"),
            *facts("trades with", "ab", "ad", "cb", "cd"),
            *facts("almost", "ab", "ax", "cd", "ef", "gh"),  # 1.25
        ]
    )
    assert relation_categories(graph) == ["1-1", "1-N", "N-1", "N-N", "1-1"]


small = st.integers(0, 3)


@given(st.lists(st.tuples(small, small, small), max_size=40, unique=True), st.integers(1, 9))
def test_mirrored_pairs_against_a_double_loop(
    triples: list[tuple[int, int, int]], at_a_time: int
) -> None:
    expected = Counter(4 * r + s for h, r, t in triples for a, s, b in triples if (a, b) == (t, h))
    rows = np.array(triples, dtype=np.int64).reshape(-1, 3)
    codes, counts = _mirrors(rows, entities=4, relations=4, at_a_time=at_a_time)
    assert dict(zip(codes.tolist(), counts.tolist(), strict=True)) == expected
