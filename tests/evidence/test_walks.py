"""Walks against a slow and plain way of taking them."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from golde.errors import ConfigError
from golde.evidence import Walks, walks

FACT = st.tuples(st.integers(0, 6), st.integers(0, 2), st.integers(0, 6))
GRAPH = st.lists(FACT, min_size=1, max_size=25, unique=True)


def plain(facts: list[tuple[int, int, int]], start: int, hops: int, without: int) -> set[tuple]:
    """Every (end, directions) from one entity."""
    steps = defaultdict(list)
    for number, (head, relation, tail) in enumerate(facts):
        if head != tail:
            steps[head].append((relation, tail, number))
            steps[tail].append((relation + 3, head, number))
    found, now = set(), [(start, (), -1)]
    for _ in range(hops):
        now = [
            (end, (*body, direction), number)
            for place, body, last in now
            for direction, end, number in steps[place]
            if number not in (last, without)
        ]
        found |= {(end, body) for end, body, _ in now}
    return found


def triples(facts: list[tuple[int, int, int]]) -> Tensor:
    return torch.tensor(facts)


@settings(max_examples=60, deadline=None)
@given(GRAPH, st.integers(1, 3), st.integers(0, 24))
def test_every_walk_is_found_once(facts: list[tuple[int, int, int]], hops: int, left: int) -> None:
    facts = [fact for fact in facts if fact[0] != fact[2]] or [(0, 0, 1)]
    left %= len(facts)
    found = Walks(triples(facts), 7, 3, hops)
    queries = torch.arange(7)
    for without in (None, torch.full((7,), left)):
        reached = found.reached(queries, without)
        assert sorted(reached.query.tolist()) == reached.query.tolist()
        for start in range(7):
            own = reached.query == start
            rows = [
                (end, tuple(found.directions(body)))
                for end, body in zip(
                    reached.end[own].tolist(), reached.body[own].tolist(), strict=True
                )
            ]
            assert len(rows) == len(set(rows))
            assert set(rows) == plain(facts, start, hops, -1 if without is None else left)


def test_walks_of_one_body_add_up_and_count_less_through_busy_entities() -> None:
    """From 0 to 3 by way of 1, which has two facts, and of 2, which has three; to 1 in one step."""
    facts = [(0, 0, 1), (0, 0, 2), (1, 1, 3), (2, 1, 3), (2, 2, 4)]
    found = Walks(triples(facts), 5, 3, 2)
    reached = found.reached(torch.tensor([0]))
    strength = {
        (end, *found.directions(body)): value
        for end, body, value in zip(
            reached.end.tolist(), reached.body.tolist(), reached.strength.tolist(), strict=True
        )
    }
    through = 1 / math.log(3) + 1 / math.log(4)
    assert strength[3, 0, 1] == pytest.approx(1 + math.log(1 + through))
    assert strength[4, 0, 2] == pytest.approx(1 + math.log(1 + 1 / math.log(4)))
    assert strength[1, 0] == pytest.approx(1 + math.log(2))


def test_facts_from_an_entity_to_itself_are_not_walked() -> None:
    found = Walks(triples([(0, 0, 0), (0, 1, 1)]), 2, 3, 2)
    assert found.reached(torch.tensor([0])).end.tolist() == [1]


def test_walks_end_at_an_entity_of_very_many_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    """They lead to it, and from it if they start there."""
    facts = triples([(0, 0, 1), (1, 0, 2), (1, 0, 3)])
    monkeypatch.setattr(walks, "MOST_FACTS", (1 << 62, 2, 2))
    found = Walks(facts, 4, 3, 2)
    assert found.reached(torch.tensor([0])).end.tolist() == [1]
    assert found.reached(torch.tensor([1])).end.tolist() == [0, 2, 3]


@pytest.mark.parametrize("at_once", [1, 5, 1 << 20])
def test_batches_are_all_queries_in_turn(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(walks, "WALKS_AT_ONCE", at_once)
    found = Walks(triples([(0, 0, 1), (1, 0, 2), (1, 0, 3)]), 5, 3, 2)
    entity = torch.tensor([1, 4, 0, 0, 2, 4])
    parts = list(found.batches(entity))
    assert torch.equal(torch.cat([entity[part] for part in parts]), entity)
    assert len(parts) == 1 if at_once > 99 else len(parts) > 1


def test_too_many_relations_for_so_many_hops_are_refused() -> None:
    with pytest.raises(ConfigError, match="too many for 100000 relations; take 2"):
        Walks(triples([(0, 0, 1)]), 2, 100_000, 3)


def test_entities_of_too_many_walks_have_shorter_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others keep theirs."""
    facts = triples([(0, 0, 1), (1, 0, 2), (1, 0, 3), (4, 0, 5), (5, 0, 6)])
    monkeypatch.setattr(walks, "MOST_WALKS", 5)
    found = Walks(facts, 7, 3, 2)  # of up to two facts 7 leave 1, counting those that would go back
    assert found.reached(torch.tensor([1])).end.tolist() == [0, 2, 3]
    assert found.reached(torch.tensor([4])).end.tolist() == [5, 6]


@pytest.mark.parametrize("hops", [5, -1, "2", 2.0])
def test_other_lengths_are_refused(hops: Any) -> None:
    with pytest.raises(ConfigError, match="it must be 1 to 4"):
        Walks(triples([(0, 0, 1)]), 2, 3, hops)
