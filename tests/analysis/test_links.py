"""Walks along facts, against plain loops over all of them."""

from __future__ import annotations

import pytest
import torch

from golde.analysis.links import Links
from golde.data.graph import KnowledgeGraph

Ids = tuple[int, int, int]


def random_facts(seed: int, count: int = 120) -> list[Ids]:
    """Facts among nine entities under three relations, loops and several relations a pair among them."""
    ends = torch.randint(9, (count, 3), generator=torch.Generator().manual_seed(seed))
    return sorted({(h, r % 3, t) for h, r, t in ends.tolist()})


def graph(facts: list[Ids]) -> KnowledgeGraph:
    """Ids are kept: every entity and relation is first seen in order."""
    order = [(f"e{i}", f"r{i % 3}", f"e{i}") for i in range(9)]
    return KnowledgeGraph.from_triples(
        [*order, *((f"e{h}", f"r{r}", f"e{t}") for h, r, t in facts)]
    )


@pytest.mark.parametrize("seed", range(3))
def test_walks_are_all_there_is(seed: int) -> None:
    facts = random_facts(seed)
    links = Links(graph(facts))
    real = {fact for fact in facts if fact[0] != fact[2]}
    assert {tuple(fact) for fact in links.triples.tolist()} == real
    assert [tuple(f) for f in links.facts(1).tolist()] == [
        tuple(f) for f in links.triples.tolist() if f[1] == 1
    ]
    x, z = (side.flatten() for side in torch.meshgrid(*[torch.arange(9)] * 2, indexing="ij"))
    which, relation = links.between(x, z)
    assert sorted(zip(x[which].tolist(), relation.tolist(), z[which].tolist(), strict=True)) == (
        sorted(real)
    )
    paths = links.paths(x, z, most=1000)
    columns = x[paths.which], paths.first, paths.middle, paths.second, z[paths.which]
    found = sorted(zip(*(column.tolist() for column in columns), strict=True))
    assert found == sorted((a, r, b, s, d) for a, r, b in real for c, s, d in real if b == c)


def test_facts_of_a_relation_and_about_an_entity_have_loops_last() -> None:
    facts = [tuple(fact) for fact in graph(random_facts(0)).train.tolist()]
    links = Links(graph(random_facts(0)))

    def in_turn(some: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        return sorted(
            some, key=lambda fact: fact[0] == fact[2]
        )  # stable: else as the graph has them

    for relation in range(3):
        wanted = in_turn([fact for fact in facts if fact[1] == relation])
        assert [tuple(fact) for fact in links.of(relation).tolist()] == wanted
    for entity in range(9):
        wanted = in_turn([fact for fact in facts if entity in (fact[0], fact[2])])
        assert [tuple(fact) for fact in links.about(entity).tolist()] == wanted


def test_of_many_facts_so_many_are_looked_at() -> None:
    """Two hubs with fifty middles between them."""
    facts = [(f"m{i}", r, f"m{i}") for i in range(50) for r in ("in", "out")]
    facts += [("a", "in", f"m{i}") for i in range(50)] + [(f"m{i}", "out", "b") for i in range(50)]
    hubs = KnowledgeGraph.from_triples(facts)
    links, ends = Links(hubs), [hubs.entities.ids([name]) for name in "ab"]
    assert len(links.paths(*ends, most=50).which) == 50
    some = links.paths(*ends, most=7)
    assert len(set(some.middle.tolist())) == 7


@pytest.mark.parametrize("seed", range(3))
def test_pairs_that_two_relations_join(seed: int) -> None:
    facts = random_facts(seed)
    links, generator = Links(graph(facts)), torch.Generator().manual_seed(0)
    real = [fact for fact in facts if fact[0] != fact[2]]
    walks = [(a, d) for a, r, b in real for c, s, d in real if (r, s) == (0, 2) and b == c]
    x, z, total = links.joined(0, 2, 10_000, generator)
    assert total == len(walks)
    assert sorted(zip(x.tolist(), z.tolist(), strict=True)) == sorted(
        {(a, d) for a, d in walks if a != d}
    )
    x, z, total = links.joined(0, 2, 10, generator)
    assert total == len(walks)
    assert set(zip(x.tolist(), z.tolist(), strict=True)) <= set(walks)
    assert 0 < len(x) <= 10


def test_without_facts_there_is_nothing_to_walk() -> None:
    lonely = KnowledgeGraph.from_triples([("a", "r", "a")])
    links, nobody = Links(lonely), torch.tensor([0])
    assert len(links.triples) == len(links.between(nobody, nobody)[0]) == 0
    assert len(links.paths(nobody, nobody, most=5).which) == 0
    x, _, total = links.joined(0, 0, 5, torch.Generator())
    assert len(x) == total == 0
