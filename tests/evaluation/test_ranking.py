"""Ranks against a brute-force oracle, and the ways a rank could flatter."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from golde.data.known import KnownFacts
from golde.evaluation.ranking import (
    EvaluationError,
    NonFiniteScoreError,
    Ranks,
    Scorer,
    both_sides,
    rank_queries,
)

MB_A_SCORE = 32 / 2**20


def table_scorer(table: Tensor) -> Scorer:
    """Scores read from a (2R, E, E) table: the same bits whatever the block."""
    return lambda entity, direction, start, stop: table[direction, entity, start:stop]


def row_scorer(row: Tensor) -> Scorer:
    """The same scores (E,) for every query, as a view that must not be written to."""
    return lambda entity, direction, start, stop: row[start:stop].expand(len(entity), -1)


def rank_all(
    score: Scorer,
    triples: Tensor,
    entities: int,
    relations: int,
    *,
    known: Tensor | None = None,
    self_filter: bool = False,
    memory_mb: float = 1.0,
) -> Ranks:
    """Ranks of both sides of the triples, which are the known facts too unless others are."""
    filters = KnownFacts(triples if known is None else known, entities, relations)
    return rank_queries(
        score,
        *both_sides(triples, relations),
        filters,
        entities=entities,
        self_filter=self_filter,
        memory_mb=memory_mb,
    )


def oracle(
    table: Tensor, triples: Tensor, known: Tensor, relations: int, self_filter: bool
) -> list[tuple[int, int, int]]:
    """(better, ties, candidates) of every query, in plain Python."""
    facts = {tuple(fact) for fact in known.tolist()}
    queries = [(h, r, t) for h, r, t in triples.tolist()]
    queries += [(t, r + relations, h) for h, r, t in triples.tolist()]
    found = []
    for entity, direction, answer in queries:
        better = ties = candidates = 0
        for other in range(table.shape[1]):
            if direction < relations:
                fact = (entity, direction, other)
            else:
                fact = (other, direction - relations, entity)
            if other != answer and (fact in facts or (self_filter and other == entity)):
                continue
            candidates += 1
            value, truth = table[direction, entity, other], table[direction, entity, answer]
            better += bool(value > truth)
            ties += bool(value == truth) and other != answer
        found.append((better, ties, candidates))
    return found


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Tensor, Tensor, int]:
    """Distinct triples, a table of few distinct scores, and the number of relations."""
    entities, relations = draw(st.integers(1, 7)), draw(st.integers(1, 3))
    entity, relation = st.integers(0, entities - 1), st.integers(0, relations - 1)
    triples = draw(st.lists(st.tuples(entity, relation, entity), min_size=1, unique=True))
    size = 2 * relations * entities**2
    table = draw(st.lists(st.integers(-1, 2), min_size=size, max_size=size))
    shape = (2 * relations, entities, entities)
    return torch.tensor(triples), torch.tensor(table, dtype=torch.float32).view(shape), relations


@settings(max_examples=150, deadline=None)
@given(graph=graphs(), self_filter=st.booleans(), scores_at_once=st.integers(1, 100))
def test_ranks_are_those_of_a_brute_force_oracle_in_any_blocks(
    graph: tuple[Tensor, Tensor, int], self_filter: bool, scores_at_once: int
) -> None:
    facts, table, relations = graph
    # Some facts are ranked and known, some only one of the two.
    triples, known = facts[: 2 * len(facts) // 3 + 1], facts[len(facts) // 3 :]
    ranks = rank_all(
        table_scorer(table),
        triples,
        table.shape[1],
        relations,
        known=known,
        self_filter=self_filter,
        memory_mb=scores_at_once * MB_A_SCORE * 1.0001,
    )
    expected = oracle(table, triples, known, relations, self_filter)
    found = list(
        zip(ranks.better.tolist(), ranks.ties.tolist(), ranks.candidates.tolist(), strict=True)
    )
    assert found == expected


def test_the_three_ranks_of_a_tied_answer() -> None:
    # Candidate 0 scores above the answer 1; 2 and 3 tie with it; 4 is below.
    score = row_scorer(torch.tensor([3.0, 2.0, 2.0, 2.0, 1.0]))
    ranks = rank_all(score, torch.tensor([[4, 0, 1]]), 5, 1)[:1]
    assert ranks.optimistic.tolist() == [2.0]
    assert ranks.realistic.tolist() == [3.0]
    assert ranks.pessimistic.tolist() == [4.0]


def test_known_facts_are_no_candidates_and_the_answer_stays_one() -> None:
    # Every entity above the answer is a known tail of (0, 0), so the answer 1 comes first.
    triples = torch.tensor([[0, 0, 1], [0, 0, 2], [0, 0, 3]])
    score = row_scorer(torch.tensor([0.0, 1.0, 2.0, 3.0]))
    ranks = rank_all(score, triples, 4, 1)[:3]
    assert ranks.realistic.tolist() == [1.0, 1.0, 1.0]
    assert ranks.candidates.tolist() == [2, 2, 2]


def test_self_filter_leaves_out_the_query_entity_unless_it_is_the_answer() -> None:
    triples = torch.tensor([[0, 0, 1], [2, 0, 2]])
    score = row_scorer(torch.tensor([9.0, 1.0, 2.0]))
    plain = rank_all(score, triples, 3, 1)[:2]
    filtered = rank_all(score, triples, 3, 1, self_filter=True)[:2]
    assert plain.realistic.tolist() == [3.0, 2.0]
    assert filtered.realistic.tolist() == [2.0, 2.0]
    assert filtered.candidates.tolist() == [2, 3]


def test_split_candidates_give_the_same_ranks_bit_for_bit_within_the_memory_asked_for() -> None:
    entities, relations = 300, 4
    random = torch.Generator().manual_seed(0)
    table = torch.randint(0, 40, (2 * relations, entities, entities), generator=random) / 7
    triples = torch.stack(
        [torch.randint(0, n, (200,), generator=random) for n in (entities, relations, entities)], 1
    ).unique(dim=0)
    widest: list[int] = []

    def watched(entity: Tensor, direction: Tensor, start: int, stop: int) -> Tensor:
        assert (direction.diff() >= 0).all(), "queries come grouped by direction"
        widest.append(len(entity) * (stop - start))
        return table[direction, entity, start:stop]

    whole = rank_all(watched, triples, entities, relations, memory_mb=64)
    assert len(widest) == 1
    widest.clear()
    split = rank_all(watched, triples, entities, relations, memory_mb=1000 * MB_A_SCORE)
    assert max(widest) <= 1000
    for name in ("better", "ties", "candidates", "answer"):
        assert torch.equal(getattr(whole, name), getattr(split, name))


def test_a_query_asked_twice_is_scored_once() -> None:
    asked: list[int] = []

    def score(entity: Tensor, direction: Tensor, start: int, stop: int) -> Tensor:
        asked.append(len(entity))
        return torch.arange(start, stop).double().expand(len(entity), -1)

    triples = torch.tensor([[0, 0, 1], [0, 0, 2], [0, 0, 3]])
    rank_all(score, triples, 4, 1)
    assert asked == [4]  # (0, 0, ?) once, and three different head queries


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("memory_mb", [1.0, 4 * MB_A_SCORE])
def test_a_score_that_is_not_finite_is_an_error_that_names_the_query(
    value: float, memory_mb: float
) -> None:
    table = torch.zeros(2, 3, 3)
    table[0, 2, 1] = value
    triples = torch.tensor([[0, 0, 1], [2, 0, 0]])
    with pytest.raises(NonFiniteScoreError, match=r"candidate 1 .*entity 2, direction 0"):
        rank_all(table_scorer(table), triples, 3, 1, memory_mb=memory_mb)


def test_a_scorer_of_the_wrong_shape_is_told_so() -> None:
    with pytest.raises(EvaluationError, match=r"must return floats of shape \(2, 3\)"):
        rank_all(lambda *_: torch.zeros(3, 3), torch.tensor([[0, 0, 1]]), 3, 1)
