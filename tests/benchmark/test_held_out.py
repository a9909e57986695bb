"""What the experiments on new entities and on paths hold out does not leak into what they train on."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from golde.data.synthetic import random_graph
from golde.inference.paths import reached

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
NAMES = ("common", "extend_experiment", "paths")


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield __import__
    for name in NAMES:
        sys.modules.pop(name, None)


def test_held_out_entities_are_in_no_fact_that_is_trained_on(
    load: Callable[[str], ModuleType],
) -> None:
    graph = random_graph(60, 3, 500, held_out=0.1)
    task = load("extend_experiment").hold_out(graph, 0.1, seed=2)
    known = set(task.rest.entities.names)
    given, ranked = set(task.given), set(task.ranked)
    new = {name for fact in given for name in (fact[0], fact[2])} - known
    assert len(new) == 6
    assert all({fact[0], fact[2]} & new for fact in given | ranked)
    assert not given & ranked
    assert 0.8 < len(given) / len(ranked) < 1.3
    assert {fact[0] for fact in ranked} | {fact[2] for fact in ranked} <= known | new
    trained = len(task.rest.train) + len(task.rest.valid)
    assert trained + len(given) + len(ranked) == len(task.everything) == 500


@pytest.mark.parametrize("hops", [2, 3])
def test_no_path_of_training_facts_leads_to_a_sampled_answer(
    load: Callable[[str], ModuleType], hops: int
) -> None:
    graph = random_graph(80, 4, 250, held_out=0.3)
    queries = load("paths").sample(graph, hops, 30, seed=1)
    assert queries.shape == (30, hops + 2)
    for start, *path, answer in queries.tolist():
        assert answer in reached(graph, start, path).tolist()
        assert answer not in reached(graph, start, path, "train").tolist()
        assert all((a + 4) % 8 != b for a, b in itertools.pairwise(path))
    assert len({tuple(row) for row in queries.tolist()}) > 25
