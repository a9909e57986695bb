"""The figures and the picture on the page about probabilities are those of the result file."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = runpy.run_path(str(ROOT / "benchmarks" / "codex_classification.py"))


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    path = ROOT / "results" / "codex_classification.json"
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def test_figures_are_those_of_the_result_file(result: dict[str, Any]) -> None:
    page = (ROOT / "docs" / "calibrate.md").read_text("utf-8")
    for one in result["calibrations"]:
        before, after = (one["judged"][when]["ece"] for when in ("before", "after"))
        told = [one["test"][by] for by in ("probability", "threshold")]
        figures = [before, after, *(by[name] for by in told for name in ("accuracy", "f1"))]
        row = " | ".join([one["negatives"], one["method"], *(f"{x:.3f}" for x in figures)])
        assert f"| {row} |" in page
    alone = result["relation_alone"]
    assert f"{alone['accuracy']:.3f} and F1 {alone['f1']:.3f}" in page
    assert f"validation MRR {result['validation_mrr']:.3f}" in page


def test_the_picture_is_drawn_from_it(result: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.image import imread

    drawn = tmp_path / "reliability.png"
    SCRIPT["draw"](result, drawn)
    now, kept = imread(drawn), imread(ROOT / "docs" / "assets" / "reliability.png")
    assert now.shape == kept.shape
    assert float(np.abs(now - kept).mean()) < 3e-4


def test_what_the_relation_alone_gives_away() -> None:
    often, seldom = ("a", "often true", "b"), ("a", "seldom true", "b")
    facts, negatives = [often, often, seldom], [often, seldom, seldom]
    found = SCRIPT["relation_alone"](facts, negatives, [often, seldom], [seldom, ("a", "new", "b")])
    assert found == {"accuracy": 0.75, "precision": 1.0, "recall": 0.5, "f1": pytest.approx(2 / 3)}


def test_what_is_said_of_shown_answers_is_what_was_measured() -> None:
    path = ROOT / "results" / "shown_answers.json"
    results: dict[str, Any] = json.loads(path.read_text("utf-8"))["results"]
    page = " ".join((ROOT / "docs" / "calibrate.md").read_text("utf-8").split())

    def errors(kind: str, *names: str) -> list[float]:
        return sorted(
            one["answers"]["ece"]
            for name in names or results
            for one in results[name]["calibrations"]
            if one["fitted_to"] == kind
        )

    shown, claims = errors("answers"), errors("claims")
    wrong = errors("answers, test facts wrong", "umls")
    assert f"[is {shown[0]:.3f} to {shown[-1]:.3f}]" in page
    assert f"off by {claims[0]:.2f} to {claims[-1]:.2f}" in page
    assert f"{wrong[0]:.2f} and {wrong[-1]:.2f} on UMLS" in page
    assert errors("answers, test facts wrong", "world", "codex-s")[-1] < 0.015
    missing = results["world"]["calibrations"][1]["missing"]
    promised, found = missing["said"]["1000"], missing["found"]["1000"]
    assert f"({promised:.0f} promised on `world`, {found} found)" in page
