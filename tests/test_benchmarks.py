"""The clock and our side of the speed comparison, on a small random graph."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from golde.config import Config
from golde.data.synthetic import random_graph
from golde.geometry import Signature
from golde.training.defaults import resolve

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import a benchmark by name, as if it were run from its folder."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))

    def load(name: str) -> ModuleType:
        return __import__(name)

    yield load
    for name in ("common", "golde_side", "pykeen_speed"):
        sys.modules.pop(name, None)


def test_the_clock_leaves_warm_up_out(load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    common = load("common")
    ticks = iter([10.0, 11.0, 12.0, 12.5, 13.0, 14.0])
    monkeypatch.setattr(common.time, "perf_counter", lambda: next(ticks))
    meter = common.Meter(warmup=2.0, seconds=1.5)
    ends = [meter.tick(work) for work in (1000, 1000, 1000, 3, 4, 5)]
    assert ends == [False] * 5 + [True]
    assert meter.steps == 3
    assert meter.rate == 12 / 2.0


def test_a_loop_too_short_to_measure_is_an_error(load: Any) -> None:
    meter = load("common").Meter(warmup=0.0, seconds=1.0)
    meter.tick(1)
    with pytest.raises(RuntimeError, match="before anything was measured"):
        _ = meter.rate


def test_a_turn_of_ours_has_every_figure(load: Any) -> None:
    graph = random_graph(600, 4, 3000, held_out=0.1)
    job = {
        "signature": "P2x2 Q3x2",
        "negatives": 64,
        "set": [],
        "train_batch_sizes": [256],
        "trial": False,
        "sample": [5, 3, 8],
        "seed": 1,
        "warmup": 0.0,
        "seconds": 0.05,
    }
    turn = load("golde_side").turn(graph, job)
    asked = {"candidates": 64, "batch_size": 256}
    assert {key: turn["train"][0][key] for key in asked} == asked
    assert turn["train_default"]["candidates"] == resolve(Config(), graph).training.negatives
    rates = [turn["train"][0]["rate"], turn["train_default"]["rate"]]
    rates += [turn["evaluate"], turn["evaluate_sample"]]
    assert min(rates) > 0


def test_both_sides_have_as_many_numbers(load: Any) -> None:
    for numbers, signature in load("pykeen_speed").SIGNATURES.items():
        assert Signature.parse(signature).numbers == numbers


def test_ratios_compare_turns_that_followed_each_other(load: Any) -> None:
    speed = load("pykeen_speed")

    def ours(rate: float) -> dict[str, Any]:
        trained = {"rate": rate, "batch_size": 8, "candidates": 64, "compiled": False}
        both = {"train": [trained], "train_default": trained}
        return both | {"evaluate": rate, "evaluate_sample": rate}

    def theirs(rate: float) -> dict[str, Any]:
        figure = [{"rate": rate, "batch_size": 16}]
        return {"train": figure, "evaluate": figure, "versions": {}}

    turns = [(ours(100), theirs(10)), (ours(30), theirs(1)), (ours(40), theirs(2))]
    job = {"negatives": 64, "sample": [0, 1]}
    trials = {"golde": {"train": ours(1)["train"]}, "pykeen": theirs(5)}
    result = speed.summarise("tiny", 128, 7, job, trials, turns)
    assert result["ratio"]["train"] == 20.0
    assert result["golde"]["train"]["median"] == 40
    assert result["golde"]["evaluate"]["test_facts"] == 7
    assert "| tiny | 128 | test queries/s | 40 (30–100) | 2 (1–10) | 20.0× | 5× |" in speed.table(
        [result]
    )


def test_a_run_of_one_size_leaves_the_others(load: Any, tmp_path: Path) -> None:
    speed, path = load("pykeen_speed"), tmp_path / "speed.json"
    one, two, newer = (
        {"dataset": "umls", "numbers": n, "commit": c}
        for n, c in ((128, "a"), (512, "a"), (512, "b"))
    )
    assert speed.replaced(path, [one, two]) == [one, two]
    path.write_text(json.dumps({"results": [one, two]}))
    assert speed.replaced(path, [newer]) == [one, newer]
