"""The known-facts index against sets of Python tuples."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from golde.data.known import KnownFacts

ENTITIES, RELATIONS = 5, 3


def triples_of(facts: list[tuple[int, int, int]]) -> Tensor:
    return torch.tensor(facts, dtype=torch.int64).reshape(-1, 3)


facts = st.lists(
    st.tuples(
        st.integers(0, ENTITIES - 1), st.integers(0, RELATIONS - 1), st.integers(0, ENTITIES - 1)
    ),
    max_size=40,
)
queries = st.lists(
    st.tuples(st.integers(0, ENTITIES - 1), st.integers(0, 2 * RELATIONS - 1)), max_size=12
)


def oracle(facts: list[tuple[int, int, int]], entity: int, direction: int) -> list[int]:
    if direction < RELATIONS:
        return sorted({t for h, r, t in facts if (h, r) == (entity, direction)})
    return sorted({h for h, r, t in facts if (t, r) == (entity, direction - RELATIONS)})


@given(facts, queries)
def test_facts_that_are_asked_one_way_are_found_that_way(
    facts: list[tuple[int, int, int]], queries: list[tuple[int, int]]
) -> None:
    known = KnownFacts.of_queries(*triples_of(facts).unbind(1), ENTITIES, RELATIONS)
    for entity, direction in queries:
        _, found = known.answers(torch.tensor([entity]), torch.tensor([direction]))
        expected = oracle(facts, entity, direction) if direction < RELATIONS else []
        assert found.tolist() == expected


@given(facts, queries)
def test_answers_and_counts_of_a_batch(
    facts: list[tuple[int, int, int]], queries: list[tuple[int, int]]
) -> None:
    known = KnownFacts(triples_of(facts), ENTITIES, RELATIONS)
    entity, direction = torch.tensor(queries, dtype=torch.int64).reshape(-1, 2).unbind(1)
    row, answer = known.answers(entity, direction)
    expected = [(i, a) for i, query in enumerate(queries) for a in oracle(facts, *query)]
    assert list(zip(row.tolist(), answer.tolist(), strict=True)) == expected
    assert known.counts(entity, direction).tolist() == [len(oracle(facts, *q)) for q in queries]


@given(facts)
def test_contains_broadcasts_over_every_question(facts: list[tuple[int, int, int]]) -> None:
    known = KnownFacts(triples_of(facts), ENTITIES, RELATIONS)
    entity = torch.arange(ENTITIES)[:, None, None]
    direction = torch.arange(2 * RELATIONS)[:, None]
    found = known.contains(entity, direction, torch.arange(ENTITIES))
    assert found.shape == (ENTITIES, 2 * RELATIONS, ENTITIES)
    for e in range(ENTITIES):
        for d in range(2 * RELATIONS):
            assert found[e, d].nonzero().flatten().tolist() == oracle(facts, e, d)


def test_no_key_overflows_in_a_huge_vocabulary() -> None:
    entities, relations = 100_000_000, 10_000
    last = (entities - 1, relations - 1, entities - 1)
    facts = triples_of([last, (0, 0, entities - 1), (entities - 1, 0, 0)])
    known = KnownFacts(facts, entities, relations)
    head, relation, tail = facts.unbind(1)
    assert known.contains(head, relation, tail).all()
    assert known.contains(tail, relation + relations, head).all()
    assert not known.contains(head, relation, (tail - 1) % entities).any()
    row, answer = known.answers(tail, relation + relations)
    assert sorted(zip(row.tolist(), answer.tolist(), strict=True)) == [
        (0, entities - 1),
        (1, 0),
        (2, entities - 1),
    ]


def test_transposed_questions_get_transposed_answers() -> None:
    known = KnownFacts(triples_of([(0, 0, 1), (1, 0, 2)]), 3, 1)
    entity, direction = torch.arange(3)[:, None].expand(3, 2), torch.arange(2).expand(3, 2)
    answer = (entity + 1) % 3
    found = known.contains(entity, direction, answer)
    assert found.any()
    assert torch.equal(known.contains(entity.T, direction.T, answer.T), found.T)


def test_padding_is_never_known() -> None:
    known = KnownFacts(triples_of([(0, 0, 1), (1, 0, 1)]), 2, 1)
    entity, direction = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1])
    assert not known.contains(entity, direction, torch.tensor(-1)).any()


def test_the_index_moves_between_devices() -> None:
    known = KnownFacts(triples_of([(0, 0, 1)]), 2, 1)
    assert known.to("meta").codes.device.type == "meta"
    assert known.to("cpu").answers(torch.tensor([1]), torch.tensor([1]))[1].tolist() == [0]


@given(facts)
def test_all_facts_about_an_entity_are_found(rows: list[tuple[int, int, int]]) -> None:
    known = KnownFacts(triples_of(rows), ENTITIES, RELATIONS)
    for entity in range(ENTITIES):
        direction, other = known.about(entity)
        tails = {(r, t) for h, r, t in rows if h == entity}
        heads = {(r + RELATIONS, h) for h, r, t in rows if t == entity}
        found = list(zip(direction.tolist(), other.tolist(), strict=True))
        assert found == sorted(tails | heads)
