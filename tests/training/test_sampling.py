"""Batches and negatives against plain sets and counters."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor

from golde.kernels.counter import permuted, random_below, random_bits
from golde.training import sampling
from golde.training.sampling import Batch, Sampler
from oracles import seeded

ENTITIES, RELATIONS = 12, 3
Query = tuple[int, int]


def some_facts(count: int = 30, seed: int = 0) -> Tensor:
    """Distinct facts, some of them loops."""
    sizes = (ENTITIES, RELATIONS, ENTITIES)
    codes = torch.randperm(ENTITIES * RELATIONS * ENTITIES, generator=seeded(seed))[:count]
    return torch.stack(torch.unravel_index(codes, sizes), 1)


def sampler(train: Tensor | None = None, **changes: Any) -> Sampler:
    settings: dict[str, Any] = {
        "batch_size": 7,
        "negatives": 9,
        "subsampling": True,
        "seed": 5,
        "device": torch.device("cpu"),
    }
    facts = some_facts() if train is None else train
    return Sampler(facts, ENTITIES, RELATIONS, **(settings | changes))


def directed_facts(train: Tensor) -> list[tuple[int, int, int]]:
    rows = train.tolist()
    return [(h, r, t) for h, r, t in rows] + [(t, r + RELATIONS, h) for h, r, t in rows]


def answers(train: Tensor) -> dict[Query, set[int]]:
    known: dict[Query, set[int]] = {}
    for entity, direction, answer in directed_facts(train):
        known.setdefault((entity, direction), set()).add(answer)
    return known


def rows(batch: Batch) -> list[tuple[int, int, int]]:
    columns = (batch.entity, batch.direction, batch.answer)
    return list(zip(*(c.tolist() for c in columns), strict=True))


@pytest.mark.parametrize("batch_size", [1, 7, 60, 1000])
def test_every_directed_fact_comes_once_an_epoch(batch_size: int) -> None:
    train = some_facts()
    drawn = sampler(train, batch_size=batch_size)
    expected = Counter(directed_facts(train))
    total = len(expected)
    stream = [row for step in range(3 * total) for row in rows(drawn.seek(step).batch())]
    epochs = [stream[i * total : (i + 1) * total] for i in range(3)]
    for epoch in epochs:
        assert Counter(epoch) == expected
    assert epochs[0] != epochs[1]  # shuffled anew


def test_a_step_depends_on_nothing_but_seed_and_number() -> None:
    """Asked in any order, by any sampler of the same seed, a step is the same step."""
    first, other = sampler(), sampler(seed=6)
    steps = list(range(40))
    forwards = {step: first.seek(step).batch() for step in steps}
    negatives = {step: first.seek(step).candidates(forwards[step]) for step in steps}
    again = sampler()
    for step in reversed(steps):
        torch.testing.assert_close(again.seek(step).batch(), forwards[step], rtol=0, atol=0)
        torch.testing.assert_close(
            again.seek(step).candidates(forwards[step]), negatives[step], rtol=0, atol=0
        )
    assert not torch.equal(other.seek(0).batch().answer, forwards[0].answer)
    assert not torch.equal(other.seek(0).candidates(forwards[0]).entity, negatives[0].entity)
    drawn = {tuple(c.entity.tolist()) for c in negatives.values()}
    assert len(drawn) == len(steps)


@pytest.mark.parametrize("with_answers", [False, True])
@pytest.mark.parametrize("negatives", [1, 9, ENTITIES - 1, ENTITIES, 0, 500])
def test_masked_is_known_or_drawn_before(negatives: int, with_answers: bool) -> None:
    train = some_facts()
    known = answers(train)
    drawn = sampler(train, negatives=negatives, answers=with_answers)
    drawn.fixed_size = True
    seen = repeats = hits = 0
    for step in range(30):
        batch = drawn.seek(step).batch()
        candidates = drawn.seek(step).candidates(batch)
        names = candidates.entity.tolist()
        if negatives in (0, 500, ENTITIES):
            assert names == list(range(ENTITIES))
        for (entity, direction, answer), masked in zip(
            rows(batch), candidates.masked.tolist(), strict=True
        ):
            assert answer in known[entity, direction]
            for place, (name, hidden) in enumerate(zip(names, masked, strict=True)):
                repeated, true = name in names[:place], name in known[entity, direction]
                assert hidden == (repeated or true)
                seen, repeats, hits = seen + 1, repeats + repeated, hits + true
    assert hits  # something was put to the test
    assert repeats or negatives in (0, 1, 500, ENTITIES)


@pytest.mark.parametrize("unit", [1, 3, 100])
@pytest.mark.parametrize("with_answers", [False, True])
def test_repeated_draws_are_left_out_some_at_a_time(
    with_answers: bool, unit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left says the same of every entity as the whole draw, where repeats are masked."""
    monkeypatch.setattr(sampling, "LEFT_OUT", unit)
    few, whole = sampler(answers=with_answers), sampler(answers=with_answers)
    whole.fixed_size = True
    left_out = Counter[int]()

    def first(entity: Tensor) -> Tensor:
        return torch.cat((torch.tensor([True]), entity.diff() > 0))

    for step in range(20):
        batch = few.seek(step).batch()
        some, every = few.candidates(batch), whole.seek(step).candidates(batch)
        assert len(every.entity) == whole.negatives
        for one in (some, every):
            assert one.masked[:, ~first(one.entity)].all()
        assert torch.equal(some.entity.unique(), every.entity.unique())
        assert torch.equal(some.masked[:, first(some.entity)], every.masked[:, first(every.entity)])
        gone = len(every.entity) - len(some.entity)
        assert gone % unit == 0
        assert (~first(some.entity)).sum() < unit
        left_out[gone] += 1
    assert len(left_out) == 1 if unit == 100 else max(left_out) > 0


def test_answers_of_the_batch_come_on_top_of_the_uniform_negatives() -> None:
    plain, drawn = sampler(), sampler(answers=True)
    assert (plain.negatives, drawn.negatives) == (9, 9 + 7)
    for step in range(20):
        batch = drawn.seek(step).batch()
        uniform = plain.seek(step).candidates(batch).entity.tolist()
        found = drawn.candidates(batch).entity.tolist()
        assert found == sorted(uniform + batch.answer.tolist())


@pytest.mark.parametrize("negatives", [ENTITIES, 0])
def test_all_entities_are_all_there_can_be(negatives: int) -> None:
    drawn = sampler(negatives=negatives, answers=True)
    assert drawn.draw().candidates.entity.tolist() == list(range(ENTITIES))


def test_the_query_itself_is_masked_where_known() -> None:
    train = torch.cat([some_facts(), torch.tensor([[e, 0, e] for e in range(0, ENTITIES, 2)])])
    train = torch.unique(train, dim=0)
    known = answers(train)
    drawn = sampler(train, negatives=4)
    outcomes = set()
    for step in range(40):
        batch = drawn.seek(step).batch()
        masked = drawn.own_masked(batch).tolist()
        for (entity, direction, _), hidden in zip(rows(batch), masked, strict=True):
            assert hidden == (entity in known[entity, direction])
            outcomes.add(hidden)
    assert outcomes == {True, False}


def test_a_draw_is_all_of_the_step() -> None:
    drawn = sampler().seek(8)
    batch, candidates, own_masked, entities = drawn.draw()
    expected = drawn.batch()
    torch.testing.assert_close(batch, expected, rtol=0, atol=0)
    torch.testing.assert_close(candidates, drawn.candidates(expected), rtol=0, atol=0)
    assert torch.equal(own_masked, drawn.own_masked(expected))
    assert torch.equal(entities, torch.cat((batch.entity, batch.answer, candidates.entity)))


def test_negatives_are_uniform_over_entities() -> None:
    drawn = sampler(negatives=11)
    drawn.fixed_size = True  # with those drawn several times
    batch = drawn.seek(0).batch()
    counts = torch.zeros(ENTITIES)
    for step in range(2000):
        counts += torch.bincount(drawn.seek(step).candidates(batch).entity, minlength=ENTITIES)
    expected = 2000 * 11 / ENTITIES
    chi_square = ((counts - expected).square() / expected).sum()
    assert chi_square < 31.3  # the 99.9% quantile at 11 degrees of freedom


def test_weights_are_the_subsampling_formula() -> None:
    train = some_facts()
    known = answers(train)
    batch = sampler(train).seek(3).batch()
    raw = [
        (len(known[e, d]) + len(known[a, (d + RELATIONS) % (2 * RELATIONS)]) + 6) ** -0.5
        for e, d, a in rows(batch)
    ]
    assert batch.weight.tolist() == pytest.approx([w / sum(raw) for w in raw], rel=1e-6)
    even = sampler(train, subsampling=False).seek(3).batch().weight
    assert even.tolist() == pytest.approx([1 / 7] * 7)


def test_one_fact_between_one_entity() -> None:
    """The smallest graph there is: everything is masked, nothing breaks."""
    drawn = Sampler(
        torch.tensor([[0, 0, 0]]),
        1,
        1,
        batch_size=10,
        negatives=3,
        subsampling=True,
        seed=0,
        device=torch.device("cpu"),
    )
    batch = drawn.seek(4).batch()
    assert sorted(rows(batch)) == [(0, 0, 0), (0, 1, 0)]
    assert drawn.seek(4).candidates(batch).masked.tolist() == [[True], [True]]


def test_streams_and_counters_do_not_meet() -> None:
    streams = [
        random_bits(seed, stream, torch.arange(1000)) for seed in (0, 1) for stream in (0, 1)
    ]
    assert len(torch.cat(streams).unique()) == 4000


def test_random_numbers_are_uniform() -> None:
    """Every residue and every pair of neighbours about as often as chance has it (chi-square)."""
    bound, count = 7, 70_000
    drawn = random_below(bound, random_bits(3, 1, torch.arange(count)))
    pairs = drawn[:-1] * bound + drawn[1:]
    for values, kinds in ((drawn, bound), (pairs, bound * bound)):
        expected = len(values) / kinds
        found = torch.bincount(values, minlength=kinds)
        chi_square = float(((found - expected) ** 2 / expected).sum())
        assert abs(chi_square - (kinds - 1)) < 5 * (2 * (kinds - 1)) ** 0.5


@pytest.mark.parametrize("total", [1, 2, 3, 4, 5, 16, 17, 1000, 4097])
def test_every_epoch_is_another_permutation(total: int) -> None:
    index = torch.arange(total)
    orders = [permuted(total, 3, 0, torch.full_like(index, epoch), index) for epoch in (0, 1)]
    for order in orders:
        assert torch.equal(order.sort().values, index)
    assert total < 16 or not torch.equal(*orders)
    both = torch.cat(orders)
    assert torch.equal(
        both,
        permuted(total, 3, 0, index.new_tensor([0, 1]).repeat_interleave(total), index.repeat(2)),
    )


def test_permutations_forget_where_numbers_were() -> None:
    """Each place goes to every tenth of the range about equally often over many epochs (chi-square)."""
    epochs, total, parts = 3000, 1000, 10
    epoch = torch.arange(epochs)
    for place in (0, 1, 500, 999):
        found = permuted(total, 1, 0, epoch, torch.full_like(epoch, place))
        counts = torch.bincount(found * parts // total, minlength=parts)
        chi_square = float(((counts - epochs / parts) ** 2 / (epochs / parts)).sum())
        assert chi_square < parts - 1 + 5 * (2 * (parts - 1)) ** 0.5


def test_batches_can_be_made_of_some_facts_while_all_are_masked() -> None:
    """As for new entities: only their facts are asked, no known fact becomes a negative."""
    train = some_facts(200)
    asked = train[:5]
    drawing = sampler(train, asked=asked, batch_size=10).seek(3)
    batch, candidates, _, _ = drawing.draw()
    assert sorted(rows(batch)) == sorted(directed_facts(asked))
    facts = {tuple(fact) for fact in train.tolist()}
    hidden = 0
    for b, (entity, direction, _) in enumerate(rows(batch)):
        seen = set()
        for n, other in enumerate(candidates.entity.tolist()):
            asks_heads = direction >= RELATIONS
            fact = (other, direction % RELATIONS, entity)
            known = (fact if asks_heads else fact[::-1]) in facts
            assert bool(candidates.masked[b, n]) == (known or other in seen)
            hidden += known
            seen.add(other)
    assert hidden > 0
