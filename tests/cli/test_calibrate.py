"""``golde calibrate`` and ``classify``, and probabilities in what the other commands print."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Golde = Callable[..., Any]


@pytest.fixture
def copy(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run in a folder of its own, under a short name."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(run, "run"))


def test_probabilities_appear_once_a_run_is_calibrated(
    golde: Golde, copy: Path, tmp_path: Path
) -> None:
    (tmp_path / "claims.tsv").write_text("e3\tnext\te4\ne3\tnext\te9\n", encoding="utf-8")
    asked = (
        ("predict", copy, "--head", "e3", "--relation", "next"),
        ("complete", copy, "--heads", "known", "--top", 5),
        ("score", copy, tmp_path / "claims.tsv"),
    )
    for command in asked:
        assert "probability" not in golde(*command).stdout
    result = golde("calibrate", copy)
    assert result.exit_code == 0, result.stderr
    misses = "near misses among the best 10 answers to their questions"
    for words in ("10 of valid", misses, "before: σ(score + margin)", "calibration.json"):
        assert words in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    for command in asked:
        shown = golde(*command)
        assert "probability" in shown.stdout
        meant = "a probability is that of an answer: of answers with its score"
        assert shown.stderr.count(meant) == (command[0] != "score")
    true, false = json.loads(golde(*asked[2], "--json").stdout)
    assert 0 < false["probability"] < 0.5 < true["probability"] < 1
    answers = json.loads(golde(*asked[0], "--json").stdout)["answers"]
    assert answers[0]["probability"] > answers[-1]["probability"]
    likely = json.loads(
        golde(*asked[1], "--min-probability", answers[0]["probability"], "--json").stdout
    )
    assert all(fact["probability"] >= answers[0]["probability"] - 1e-9 for fact in likely)


def test_a_probability_is_the_only_limit(golde: Golde, copy: Path) -> None:
    assert "next  golde complete run --min-probability 0.9\n" in golde("calibrate", copy).stdout
    asked = ("complete", copy, "--heads", "all", "--min-probability")
    found = json.loads(golde(*asked, "0.05", "--json").stdout)
    assert len(found) > 100  # what there is without a probability
    assert min(fact["probability"] for fact in found) >= 0.05
    ordered = [fact["probability"] for fact in found]
    assert ordered == sorted(ordered, reverse=True)
    few = golde(*asked, "0.05", "--top", 7)
    assert "found  7 facts with a probability of 0.05 or more, by " in few.stdout
    fact = [f"--{part} {found[0][part]}" for part in ("head", "relation", "tail")]
    assert f"next   golde explain run {' '.join(fact)}\n" in few.stdout

    for out in ("none.tsv", "none.csv", "none.parquet"):
        none = golde(*asked, "0.9999", "--out", out)
        assert f"written  {out} (0 facts)\nnone     the largest probability by" in none.stdout
        assert f"is {ordered[0]:.3f}:\n" in none.stdout
    assert Path("none.csv").read_text("utf-8") == "head,relation,tail,score,probability\n"
    nothing = golde(*asked, "0.9999", "--json")
    assert nothing.stdout == "[]\n"
    assert "note: none: the largest probability" in nothing.stderr


def test_json_has_the_fit_and_how_it_was_judged(golde: Golde, copy: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "reliability.svg"
    result = golde(
        "calibrate", copy, "--method", "isotonic", "--prior", "0.2", "--plot", picture, "--json"
    )
    found = json.loads(result.stdout)
    assert (found["method"], found["prior"], found["negatives"]["each"]) == ("isotonic", 0.2, 10)
    assert set(found["judged"]) == {"bins", "before", "after", "relations"}
    assert set(found["judged"]["after"]) == {"ece", "brier", "log_loss", "bins"}
    assert found["forward"]["overall"]["probability"]
    assert picture.read_text("utf-8").startswith("<?xml")
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


def test_true_is_told_from_false(golde: Golde, copy: Path, tmp_path: Path) -> None:
    true, false = tmp_path / "true.tsv", tmp_path / "false.tsv"
    true.write_text("".join(f"e{i}\tnext\te{i + 1}\n" for i in range(20)), encoding="utf-8")
    false.write_text("".join(f"e{i}\tnext\te{i + 3}\n" for i in range(20)), encoding="utf-8")
    early = golde("classify", copy, true, false)
    assert early.exit_code == 2
    assert f"golde calibrate {copy}" in early.stderr
    golde("calibrate", copy)
    found = json.loads(golde("classify", copy, true, false, "--json").stdout)
    assert (found["positives"], found["negatives"]) == (20, 20)
    assert found["threshold"]["accuracy"] > 0.8
    shown = golde("classify", copy, true, false).stdout
    assert f"{found['probability']['f1']:.3f}" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_a_stale_calibration_is_noted_and_left_out(golde: Golde, copy: Path) -> None:
    golde("calibrate", copy)
    path = copy / "calibration.json"
    path.write_text(path.read_text("utf-8").replace('"model": "', '"model": "0'), "utf-8")
    shown = golde("complete", copy, "--top", 3)
    assert shown.exit_code == 0
    assert "probability" not in shown.stdout
    assert "note: no probabilities: " in shown.stderr
    assert "calibrate the run again" in shown.stderr
    refused = golde("complete", copy, "--top", 3, "--min-probability", "0.5")
    assert refused.exit_code == 2
    assert "is not calibrated" in refused.stderr


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--prior", "0"), "prior is 0.0; it must lie between 0 and 1"),
        (("--prior", "1e-320"), "prior is 1e-320; it must lie between 0 and 1"),
        (("--prior", "0.9999999999999999"), "prior is 0.9999999999999999; it must lie"),
        (("--plot", "picture.pdf"), "picture.pdf: pictures are written as .png or .svg"),
        (("--plot", "nowhere/picture.png"), "there is no folder nowhere"),
        (("--negatives", "none.tsv"), "none.tsv"),
        (("--negatives", "claims.tsv"), "claims.tsv:2: unknown entity 'e99'"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(
    golde: Golde,
    copy: Path,
    options: tuple[str, ...],
    named: str,
) -> None:
    Path("claims.tsv").write_text("e1\tnext\te2\ne1\tnext\te99\n", encoding="utf-8")
    result = golde("calibrate", copy, *options)
    assert result.exit_code == 2
    assert named in result.stderr
    assert result.stdout == ""
    assert not (copy / "calibration.json").exists()


def test_a_picture_that_cannot_be_drawn_leaves_the_calibration_alone(
    golde: Golde, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    golde("calibrate", copy)
    before = (copy / "calibration.json").read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
    result = golde("calibrate", copy, "--seed", 5, "--plot", "picture.png")
    assert result.exit_code == 2
    assert "picture.png: cannot be written: No space left" in result.stderr
    assert (copy / "calibration.json").read_bytes() == before


def damaged(path: Path, key: str, value: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {key: value}), "utf-8")


def nested(path: Path) -> None:
    path.write_text("[" * 100_000, "utf-8")


def as_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (lambda path: damaged(path, "prior", 2.0), "prior is 2.0"),
        (lambda path: damaged(path, "method", "foo"), "method is 'foo'"),
        (nested, "cannot be read"),
        (as_a_folder, "calibration.json: cannot be read: Is a directory"),
    ],
    ids=["prior", "method", "nested", "folder"],
)
def test_a_damaged_calibration_is_named_and_not_used(
    golde: Golde, copy: Path, damage: Callable[[Path], None], named: str
) -> None:
    golde("calibrate", copy)
    damage(copy / "calibration.json")
    shown = golde("predict", copy, "--head", "e1", "--relation", "next")
    assert shown.exit_code == 0
    assert "probability" not in shown.stdout
    assert "note: no probabilities: " in shown.stderr
    assert named in shown.stderr
    assert "calibrate the run again" in shown.stderr
    assert golde("show", copy).exit_code == 0


def test_a_calibration_without_its_facts_is_shown_as_none(golde: Golde, copy: Path) -> None:
    golde("calibrate", copy)
    damaged(copy / "calibration.json", "facts", {"next": "many"})
    shown = golde("show", copy)
    assert shown.exit_code == 0, shown.exception
    assert "cannot be used" in shown.stdout
