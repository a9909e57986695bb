"""``golde explain``, ``rules`` and ``geometry`` on a run that has learned a ring."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

import golde as package
from tiny import quick, ring

Golde = Callable[..., Any]

FACT = ("--head", "e3", "--relation", "next", "--tail", "e4")


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "distmult"
    settings = quick({"signature": None, "kind": "distmult", "numbers": 6})
    package.train(ring(), folder, settings, device="cpu")
    return folder


def test_a_fact_is_explained(golde: Golde, run: Path) -> None:
    found = json.loads(golde("explain", run, *FACT, "--json").stdout)
    assert found["fact"] == ["e3", "next", "e4"]
    assert found["score"] < 0
    held = {rule["words"] for rule in found["rules"] if rule["holds"]}
    assert held <= {"x previous y ⇒ y next x"}
    shown = golde("explain", run, *FACT).stdout
    for heading in ("Rules that imply it", "Nearest training facts", "Components that carried"):
        assert heading in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_a_calibrated_run_explains_with_the_probability_that_score_gives(
    golde: Golde, run: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "calibrated"
    copytree(run, copy)
    assert json.loads(golde("explain", copy, *FACT, "--json").stdout)["probability"] is None
    assert "probability" not in golde("explain", copy, *FACT).stdout
    assert "calibrated  no" in golde("show", copy).stdout
    assert json.loads(golde("show", copy, "--json").stdout)["calibration"] is None
    assert "Not calibrated" in (copy / "MODEL_CARD.md").read_text("utf-8")

    assert golde("calibrate", copy, "--prior", "0.2").exit_code == 0
    (tmp_path / "claim.tsv").write_text("e3\tnext\te4\n", "utf-8")
    (scored,) = json.loads(golde("score", copy, tmp_path / "claim.tsv", "--json").stdout)
    found = json.loads(golde("explain", copy, *FACT, "--json").stdout)
    assert found["probability"] == scored["probability"]
    assert "probability  " in golde("explain", copy, *FACT).stdout
    assert "platt, prior 0.2" in golde("show", copy).stdout
    kept = json.loads(golde("show", copy, "--json").stdout)["calibration"]
    assert (kept["method"], kept["prior"]) == ("platt", 0.2)
    assert "prior 0.2" in (copy / "MODEL_CARD.md").read_text("utf-8")


def test_rules_are_listed(golde: Golde, run: Path) -> None:
    found = json.loads(golde("rules", run, "--json").stdout)
    assert {rule["rule"] for rule in found} >= {
        "x next y ⇒ y previous x",
        "x previous y ⇒ y next x",
        "x opposite y ⇒ y opposite x",
    }
    assert all(rule["confidence"] >= 0.3 and rule["error"] <= 0.5 for rule in found)
    assert all(rule["confidence"] <= rule["pca_confidence"] <= 1 for rule in found)
    some = json.loads(golde("rules", run, "--relation", "next", "--json").stdout)
    assert [rule for rule in found if rule["head"] == "next"] == some
    shown = golde("rules", run).stdout
    assert "x opposite y ⇒ y opposite x" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_the_geometry_is_shown_and_drawn(golde: Golde, run: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found = {one["relation"]: one for one in json.loads(golde("geometry", run, "--json").stdout)}
    assert set(found) == {"next", "previous", "opposite", "is"}
    assert found["opposite"]["involution_error"] < 0.5 < found["next"]["involution_error"]
    shown = golde("geometry", run, "--plot", tmp_path / "pictures")
    assert max(map(len, shown.stdout.splitlines()[:12])) <= 80
    assert {path.name for path in (tmp_path / "pictures").iterdir()} == {
        "poincare.png",
        "ellipsoids.png",
        "rotations.png",
    }
    (one,) = json.loads(golde("geometry", run, "--relation", "next", "--json").stdout)
    assert len(one["groups"][0]["stretch"]["components"]) == 2
    assert "curvature" in golde("geometry", run, "--relation", "next").stdout


def test_a_baseline_explains_by_facts_and_has_no_geometry(golde: Golde, baseline: Path) -> None:
    asked = golde("explain", baseline, *FACT)
    assert asked.exit_code == 0, asked.stderr
    assert "Components" not in asked.stdout
    assert golde("rules", baseline).exit_code == 0
    refused = golde("geometry", baseline)
    assert refused.exit_code == 2
    assert "'distmult' has no curved components" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("explain", "<run>", *FACT[:4], "--tail", "evn"), "'even'"),
        (("explain", "<run>", *FACT[:4]), "--tail"),
        (("explain", "none", *FACT), "no run here"),
        (("rules", "<run>", "--relation", "nxt"), "'next'"),
        (("geometry", "<run>", "--relation", "nxt"), "'next'"),
        (("geometry", "<run>", "--plot", "file"), "file: is a file; name a folder"),
    ],
)
def test_a_mistake_is_named(
    golde: Golde,
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    named: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("kept", encoding="utf-8")
    result = golde(*(run if word == "<run>" else word for word in arguments))
    assert result.exit_code == 2
    assert named in result.stderr
    assert result.stdout == ""
    assert [path.read_text("utf-8") for path in tmp_path.iterdir()] == ["kept"]
