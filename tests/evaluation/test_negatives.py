"""Typed negatives: of the right type, false, different, drawn evenly."""

from __future__ import annotations

from collections import Counter

import torch

from golde.data.graph import KnowledgeGraph
from golde.evaluation.negatives import typed_negatives

# Eight people speak six languages; everybody has a home, of which there is one.
TRAIN = [(f"p{i}", "speaks", f"l{j}") for i in range(8) for j in range(6) if (i + j) % 3 == 0]
HOMES = [(f"p{i}", "lives in", "home") for i in range(8)]
GRAPH = KnowledgeGraph.from_triples(
    [*TRAIN, *HOMES[:7], ("p0", "knows", "p1")],
    valid=[("p1", "speaks", "l0"), HOMES[7]],
    test=[("p1", "speaks", "l1")],
)


def named(rows: torch.Tensor) -> list[tuple[str, str, str]]:
    e, r = GRAPH.entities, GRAPH.relations
    return [(e[h], r[k], e[t]) for h, k, t in rows.tolist()]


def test_one_side_is_replaced_by_what_train_shows_there_and_no_split_knows() -> None:
    made, source = typed_negatives(GRAPH, GRAPH.valid, 3)
    known = {*TRAIN, *HOMES, ("p1", "speaks", "l0"), ("p1", "speaks", "l1")}
    facts = named(GRAPH.valid)
    rows = named(made)
    assert len(set(rows)) == len(rows) == 2 + 3  # of the languages two are left
    for (head, relation, tail), i in zip(rows, source.tolist(), strict=True):
        assert i == 0  # of the home nobody is known not to have, nothing can be made
        assert (head, relation, tail) not in known
        assert relation == "speaks"
        assert head == facts[i][0] or tail == facts[i][2]
        assert head.startswith("p")
        assert tail.startswith("l")


def test_every_other_entity_of_the_type_comes_up_as_often() -> None:
    tails: Counter[str] = Counter()
    for seed in range(300):
        made, _ = typed_negatives(GRAPH, GRAPH.valid[:1], 1, seed)
        tails.update(tail for head, _, tail in named(made) if head == "p1" and tail != "l0")
    # Not those known of p1 from train (l2, l5), valid (l0) or test (l1).
    assert set(tails) == {"l3", "l4"}
    assert min(tails.values()) > 100


def test_the_seed_decides() -> None:
    first, again, other = (typed_negatives(GRAPH, GRAPH.valid, 2, seed)[0] for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_no_facts_make_no_negatives() -> None:
    made, source = typed_negatives(GRAPH, GRAPH.valid[:0], 2)
    assert made.shape == (0, 3)
    assert source.shape == (0,)
