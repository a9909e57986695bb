"""The measurement of shown answers: what it compares, and how it is written."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from golde.api import train
from golde.config import Config
from golde.data.synthetic import symmetric
from golde.report.shown_answers import WORDS, shown_answers

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield __import__("shown_answers")
    sys.modules.pop("shown_answers", None)


def test_every_fit_is_judged_on_answers_claims_and_missing_facts(
    study: Any, tmp_path: Path
) -> None:
    steps = {"steps": 150, "batch_size": 256, "log_every": 150, "validate_every": 150}
    config = Config().with_values(model={"signature": "P3x4"}, training=steps)
    run = train(symmetric(copies=60, held_out=0.4), tmp_path / "run", config, device="cpu")
    hard = run.graph.test.roll(1, 0) * torch.tensor([1, 1, 0]) + run.graph.test * torch.tensor(
        [0, 0, 1]
    )
    found = study.measure(run.model, run.graph, 0, hard)
    kinds = [(one["fitted_to"], one["method"]) for one in found["calibrations"]]
    assert kinds == [(kind, method) for method in study.METHODS for kind in WORDS]
    by_kind = {one["fitted_to"]: one for one in found["calibrations"][:3]}
    assert by_kind["answers"]["answers"]["ece"] < 0.1 < by_kind["claims"]["answers"]["ece"]
    assert by_kind["claims"]["claims"]["ece"] < by_kind["answers"]["claims"]["ece"]
    rate = found["answers"]["right"] / found["answers"]["count"]
    assert by_kind["answers"]["answers"]["true"] == pytest.approx(rate)
    assert found["claims"]["facts"] == len(run.graph.test)
    settings = {"training": {"steps": 150}, "model": {"signature": "P3x4"}}
    where = {"machine": {"cpu": "a CPU", "cores": 2}, "commit": "0" * 40, "seed": 0}
    where |= {"versions": {"python": "3.12", "torch": "2.13"}, "shown": 10, "likely": 0.9}
    text = shown_answers(where | {"results": {"mirrors": found | {"settings": settings}}})
    ece = ", ".join(
        f"{one['answers']['ece']:.3f}"
        for one in found["calibrations"]
        if one["fitted_to"] == "answers"
    )
    assert f"| mirrors | **shown answers** | {ece} |" in text
    assert text.count("| mirrors |") == 4
    told = by_kind["claims"]["hard"], by_kind["answers"]["hard"]
    assert told[0]["threshold"] == told[1]["threshold"]
    assert f"with an accuracy of {told[0]['probability']['accuracy']:.3f} by a" in text
    for one in found["calibrations"]:
        one["hard"] = None
    text = shown_answers(where | {"results": {"mirrors": found | {"settings": settings}}})
    assert "accuracy" not in text
