from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
import torch

from golde.data import synthetic
from golde.data.graph import SPLITS, KnowledgeGraph
from golde.errors import GoldeError

Fact = tuple[int, str, int]
SMALL: dict[str, Callable[[int], KnowledgeGraph]] = {
    "symmetric": lambda seed: synthetic.symmetric(copies=12, relations=3, seed=seed),
    "antisymmetric": lambda seed: synthetic.antisymmetric(copies=10, seed=seed),
    "inverse": lambda seed: synthetic.inverse(copies=15, seed=seed),
    "composition": lambda seed: synthetic.composition(copies=15, seed=seed),
    "cycles": lambda seed: synthetic.cycles(copies=15, seed=seed),
    "closure": lambda seed: synthetic.tree(4, 3, seed=seed),
    "families": lambda seed: synthetic.tree(4, 3, closure=False, seed=seed),
    "order": lambda seed: synthetic.order(20, seed=seed),
    "mixture": lambda seed: synthetic.mixture(copies=10, seed=seed),
    "random": lambda seed: synthetic.random_graph(60, 3, 900, zipf=0.8, held_out=0.1, seed=seed),
}


def facts(graph: KnowledgeGraph, *splits: str) -> set[Fact]:
    rows = torch.cat([graph.split(split) for split in splits]).tolist()
    return {(h, graph.relations[r], t) for h, r, t in rows}


def word(relation: str) -> tuple[str, str]:
    """ "ahead of 2" as the word that tells the relation's part in the rule, and the rule's number."""
    name, _, number = relation.rpartition(" ")
    return name, number


@pytest.mark.parametrize("make", SMALL.values(), ids=SMALL)
def test_splits_are_disjoint_seen_in_train_and_set_by_the_seed(
    make: Callable[[int], KnowledgeGraph],
) -> None:
    graph = make(3)
    rows = torch.cat([graph.split(split) for split in SPLITS])
    assert len(rows.unique(dim=0)) == len(rows)
    assert abs(len(graph.valid) - len(graph.test)) <= 5  # one to a pattern of the mixture
    assert len(graph.test) > 0
    for split in ("valid", "test"):
        for column in range(3):
            seen = graph.train[:, [0, 2]] if column != 1 else graph.train[:, 1]
            assert torch.isin(graph.split(split)[:, column], seen).all()
    assert make(3).digest == graph.digest
    assert make(4).digest != graph.digest


@pytest.mark.parametrize("name", ["symmetric", "antisymmetric", "inverse", "composition", "cycles"])
def test_share_held_out_is_the_one_asked_for(name: str) -> None:
    make = getattr(synthetic, name)
    couples = {
        "symmetric": 40,
        "antisymmetric": 100,
        "inverse": 30,
        "composition": 20,
        "cycles": 30,
    }
    graph = make(copies=10, held_out=0.5)
    assert len(graph.valid) + len(graph.test) == couples[name] / 2
    assert len(make(copies=10, held_out=0.0).test) == 0


def test_symmetric_holds_out_one_of_two_mirrors() -> None:
    graph = SMALL["symmetric"](0)
    train, held = facts(graph, "train"), facts(graph, "valid", "test")
    assert all((t, r, h) in train for h, r, t in held)
    assert all((t, r, h) in train | held for h, r, t in train)
    assert sum((t, r, h) in train for h, r, t in train) > 2 * len(held)


def test_antisymmetric_has_no_reverse_and_two_names_for_each_step() -> None:
    graph = SMALL["antisymmetric"](0)
    train, held = facts(graph, "train"), facts(graph, "valid", "test")
    other = {"before": "ahead of", "ahead of": "before"}
    for h, r, t in held:
        name, number = word(r)
        assert (h, f"{other[name]} {number}", t) in train
    joined = {(h, t) for h, _, t in train | held}
    assert not joined & {(t, h) for h, t in joined}
    assert not facts(graph, *SPLITS) & {
        (t, graph.relations[r], h) for h, r, t in graph.test.tolist()
    }


def test_inverse_holds_out_one_end_of_a_ray() -> None:
    graph = SMALL["inverse"](0)
    train, held = facts(graph, "train"), facts(graph, "valid", "test")
    other = {"out": "back", "back": "out"}

    def inverse(fact: Fact) -> Fact:
        name, number = word(fact[1])
        return fact[2], f"{other[name]} {number}", fact[0]

    assert all(inverse(fact) in train for fact in held)
    assert all(inverse(fact) in train | held for fact in train)
    assert {word(r)[0] for _, r, _ in held} == {"out", "back"}


def test_composition_keeps_the_steps_and_most_sums() -> None:
    graph = SMALL["composition"](0)
    train, held = facts(graph, "train"), facts(graph, "valid", "test")
    sums = {
        (a, f"both {word(r)[1]}", c)
        for a, r, b in train
        if word(r)[0] == "first"
        for b_, s, c in train
        if b_ == b and s == f"second {word(r)[1]}"
    }
    assert {fact for fact in train if word(fact[1])[0] == "both"} | held == sums
    assert len(held) == round(0.2 * len(sums))


def test_cycles_close_after_their_length() -> None:
    graph = SMALL["cycles"](0)
    everything, held = facts(graph, *SPLITS), facts(graph, "valid", "test")
    step = {(h, r): t for h, r, t in everything}
    assert len(step) == len(everything)
    for h, r, _ in everything:
        walk = [h]
        for _ in range(int(word(r)[1])):
            walk.append(step[walk[-1], r])
        assert walk[-1] == h
        assert len(set(walk)) == len(walk) - 1
        assert sum((a, r, b) in held for a, b in pairwise(walk)) <= 1


def test_tree_closure_is_every_ancestor_and_only_far_ones_are_held_out() -> None:
    graph = SMALL["closure"](0)
    train, held = facts(graph, "train"), facts(graph, "valid", "test")
    parent = {h: t for h, r, t in train if r == "parent"}
    assert len(graph.entities) == 1 + 3 + 9 + 27 + 81
    assert parent.keys() == set(range(1, 121))
    assert all(sum(p == node for p in parent.values()) in (0, 3) for node in range(121))
    ancestors = set()
    for node in parent:
        above = node
        while above in parent:
            above = parent[above]
            ancestors.add((node, "ancestor", above))
    assert {fact for fact in train if fact[1] == "ancestor"} | held == ancestors
    assert all(parent[h] != t for h, _, t in held)


def test_tree_families_give_a_lost_parent_away() -> None:
    graph = SMALL["families"](0)
    train, held = facts(graph, "train"), facts(graph, "valid", "test")
    parent = {h: t for h, r, t in train if r == "parent"}
    sibling = {h: t for h, r, t in train if r == "sibling"}
    assert len(parent) + len(held) == len(sibling) == 120
    for h, r, t in held:
        assert r == "parent"
        assert parent[sibling[h]] == parent[sibling[sibling[h]]] == t
        assert sibling[sibling[sibling[h]]] == h


def test_order_is_told_in_part_and_held_out_pairs_follow_from_its_steps() -> None:
    graph = synthetic.order(20, told=0.4, held_out=0.25, seed=2)
    train, held = facts(graph, "train"), facts(graph, "valid", "test")
    later = {entity: {t for h, _, t in train if h == entity} for entity in range(20)}
    line = [next(entity for entity, tails in later.items() if not tails)]  # the last has none
    while len(line) < 20:
        (before,) = (
            e for e, tails in later.items() if tails and tails <= set(line) and e not in line
        )
        line.append(before)
    place = {entity: -i for i, entity in enumerate(line)}
    assert all(place[h] < place[t] for h, _, t in train | held)
    assert all((h, "before", t) in train for t, h in pairwise(line))
    farther = 20 * 19 // 2 - 19
    assert len(held) == round(0.25 * round(0.4 * farther))
    assert len(train) + len(held) == 19 + round(0.4 * farther)


def test_random_graph_follows_zipf() -> None:
    graph = synthetic.random_graph(1000, 5, 20_000, zipf=1.0, seed=1)
    rows = torch.cat([graph.split(split) for split in SPLITS])
    assert len(rows) == 20_000
    assert (rows[:, 0] != rows[:, 2]).all()
    counts = rows[:, [0, 2]].reshape(-1).bincount(minlength=1000)
    # 1/1 … 1/1000 sum to 7.49: the ten after the first ten take (1/11 + … + 1/20)/7.49 = 8.9%.
    assert counts[10:20].sum() / counts.sum() == pytest.approx(0.089, rel=0.1)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: synthetic.symmetric(copies=0), "copies is 0"),
        (lambda: synthetic.inverse(held_out=1.5), r"held_out is 1\.5"),
        (lambda: synthetic.order(told=-0.1), r"told is -0\.1"),
        (lambda: synthetic.antisymmetric(length=2), "length is 2"),
        (lambda: synthetic.cycles(lengths=()), r"lengths is \(\)"),
        (lambda: synthetic.tree(3, 1, closure=False), "branching is 1"),
        (lambda: synthetic.random_graph(10, 1, 80), "triples is 80"),
        (lambda: synthetic.random_graph(1000, 1, 5000, zipf=9.0), r"zipf is 9\.0"),
    ],
)
def test_impossible_graphs_are_refused(make: Callable[[], object], problem: str) -> None:
    with pytest.raises(GoldeError, match=problem):
        make()
