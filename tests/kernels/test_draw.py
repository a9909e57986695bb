"""What a step draws as kernels, bit for bit against the plain form on a CPU."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
import torch
from torch import Tensor

from golde.data.known import KnownFacts
from golde.training import sampling
from golde.training.sampling import Draw, Sampler
from oracles import seeded

pytest.importorskip("triton", reason="Triton is not installed (extra: kernels)")

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
RELATIONS = 2

CASES = [  # batch size, negatives (0: all), entities, facts, queries or negatives a program
    (1, 1, 40, 3, 256),
    (3, 17, 40, 30, 256),
    (17, 3, 40, 60, 16),
    (40, 0, 40, 100, 16),  # most candidates are known answers
    (3, 1030, 1031, 60, 256),
    (3, 0, 1030, 40, 256),
    (10, 3, 1, 1, 256),  # everything is known
]
if CUDA:
    CASES += [(1030, 3001, 40_000, 20_000, 256), (1030, 0, 5_000, 20_000, 256)]

kernels: Any = import_module("golde.kernels.triton.draw")


pytestmark = pytest.mark.usefixtures("surroundings")


def some_facts(count: int, entities: int) -> Tensor:
    """Facts with repetitions and, for every third entity, a loop."""
    draw = seeded(count)
    columns = [torch.randint(n, (count,), generator=draw) for n in (entities, RELATIONS, entities)]
    columns[2] = torch.where(columns[0] % 3 == 0, columns[0], columns[2])
    return torch.stack(columns, 1)


def samplers(
    facts: int, entities: int, monkeypatch: pytest.MonkeyPatch, **settings: Any
) -> tuple[Sampler, Sampler]:
    """The plain form on a CPU, drawing as many as on a GPU, and the kernels."""
    train = some_facts(facts, entities)

    def made(device: torch.device, fused: bool) -> Sampler:
        monkeypatch.setattr(sampling, "fuses", lambda tensor: fused)
        return Sampler(train, entities, RELATIONS, seed=5, device=device, **settings)

    plain, fused = made(torch.device("cpu"), False), made(DEVICE, True)
    plain.fixed_size = True
    return plain, fused


def assert_same_bits(found: Draw, expected: Draw) -> None:
    for one, other in zip(
        (*found.batch, *found.candidates, *found[2:]),
        (*expected.batch, *expected.candidates, *expected[2:]),
        strict=True,
    ):
        assert one.dtype == other.dtype
        assert one.is_contiguous()
        assert torch.equal(one.cpu(), other)
        if one.dtype == torch.bool:
            assert one.view(torch.uint8).max() <= 1


@pytest.mark.parametrize("subsampling", [True, False], ids=["weighted", "even"])
@pytest.mark.parametrize(("batch_size", "negatives", "entities", "facts", "block"), CASES)
def test_a_draw_is_that_of_the_plain_form(
    batch_size: int,
    negatives: int,
    entities: int,
    facts: int,
    block: int,
    subsampling: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Next to each other, across the end of an epoch, and so late that counters are large."""
    monkeypatch.setattr(kernels, "DRAWN", block)
    settings = {"batch_size": batch_size, "negatives": negatives, "subsampling": subsampling}
    settings["answers"] = not subsampling
    plain, fused = samplers(facts, entities, monkeypatch, **settings)
    epoch = 2 * facts // plain.batch_size
    loops, masks = set(), set()
    for step in (0, 1, epoch, 10**9):
        expected = plain.seek(step).draw()
        assert_same_bits(fused.seek(step).draw(), expected)
        loops |= set(expected.own_masked.tolist())
        masks |= set(expected.candidates.masked.flatten().tolist())
    if batch_size >= 17:
        assert loops == masks == {True, False}  # all of it was put to the test


def test_the_parts_of_a_draw_are_its_entities(monkeypatch: pytest.MonkeyPatch) -> None:
    """Views of one piece, so that nothing is copied together."""
    settings = {"batch_size": 5, "negatives": 7, "subsampling": True}
    for drawn in samplers(20, 40, monkeypatch, **settings):
        draw = drawn.seek(2).draw()
        parts = draw.batch.entity, draw.batch.answer, draw.candidates.entity
        assert torch.equal(torch.cat(parts), draw.entities)
    assert all(part.untyped_storage().data_ptr() == draw.entities.data_ptr() for part in parts)


@pytest.mark.parametrize("facts", [1, 40, 3000])
@pytest.mark.parametrize("candidates", [1, 17, 61])
def test_known_pairs_are_those_of_the_index(facts: int, candidates: int) -> None:
    """Queries with one answer and with many; candidates at both ends; repeated ones."""
    entities = 60
    known = KnownFacts(some_facts(facts, entities), entities, RELATIONS).to(DEVICE)
    asked = known.keys[:-1:3]
    entity, direction = asked // (2 * RELATIONS), asked % (2 * RELATIONS)
    chosen = torch.arange(candidates, device=DEVICE)
    chosen[-1] = entities - 1
    chosen[5:9] = 7
    chosen = chosen.sort().values
    found = kernels.known_pairs(
        known.places(entity, direction), known.offsets, known.codes, known.stride, chosen
    )
    expected = known.contains(entity.unsqueeze(1), direction.unsqueeze(1), chosen)
    expected[:, 1:] |= chosen[1:] == chosen[:-1]
    assert torch.equal(found, expected)
