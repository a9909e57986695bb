"""``golde extend`` and ``golde predict --path`` as a person meets them."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Golde = Callable[..., Any]

NEWS = "e3\tnext\tnew\nnew\tnext\tnewer\nnew\tis\teven\nlost\tnext\tfound\ne0\topposite\te3\ne1\tnext\te2\n"


@pytest.fixture
def news(tmp_path: Path) -> Path:
    path = tmp_path / "news.tsv"
    path.write_text(NEWS, encoding="utf-8")
    return path


def test_a_run_is_extended_and_asked(golde: Golde, run: Path, news: Path, tmp_path: Path) -> None:
    out = tmp_path / "more"
    done = golde("extend", run, news, "--out", out, "--steps", 20)
    assert done.exit_code == 0, done.stderr
    for said in (
        "5 new, 1 known before or repeated",
        "1 between known entities: now known, nothing moved",
        "4 new, 2 placed by their neighbours in 2 sweeps",
        "2 without a way to a known entity start at the mean: lost, found",
        "20 local steps, loss ",
    ):
        assert said in done.stdout
    assert f"{run} with {news}" in " ".join(golde("show", out).stdout.split())
    answers = json.loads(
        golde("predict", out, "--head", "e3", "--relation", "next", "--json").stdout
    )
    assert ["new", "train"] in [[a["tail"], a["known"]] for a in answers["answers"]]
    evaluated = golde("evaluate", out, "--no-baselines")
    assert evaluated.exit_code == 0, evaluated.stderr


def test_json_is_the_record_of_the_run(golde: Golde, run: Path, news: Path, tmp_path: Path) -> None:
    done = golde("extend", run, news, "--out", tmp_path / "more", "--steps", 0, "--json")
    found = json.loads(done.stdout)
    stored = json.loads((tmp_path / "more" / "run.json").read_text("utf-8"))["extensions"][0]
    assert found == {"run": str(tmp_path / "more"), **stored}
    assert (found["new_entities"], found["steps"]) == (4, 0)


def test_a_path_is_answered_by_maps_and_by_beam(golde: Golde, run: Path, tmp_path: Path) -> None:
    composed = golde("predict", run, "--head", "e3", "--path", "next,next", "--top", 3)
    assert composed.exit_code == 0, composed.stderr
    assert composed.stdout.startswith("(e3, next,next, ?)\n")
    assert "best path" not in composed.stdout
    beam = "--path", "next,next", "--beam", 4
    shown = golde("predict", run, "--tail", "e5", *beam).stdout
    assert "best path by way of" in shown
    assert max(len(line) for line in shown.splitlines()) <= 80
    found = json.loads(golde("predict", run, "--head", "e3", *beam, "--json").stdout)
    assert found["query"] == {"head": "e3", "tail": None, "path": "next,next", "beam": 4}
    assert {a["answer"]: a["known"] for a in found["answers"]}["e5"] is True
    assert all(len(answer["via"]) == 1 for answer in found["answers"])
    table = tmp_path / "ends.tsv"
    written = golde("predict", run, "--head", "e3", *beam, "--out", table, "--known", "drop")
    assert written.exit_code == 0, written.stderr
    heading, *rows = table.read_text("utf-8").splitlines()
    assert heading.split("\t") == ["rank", "answer", "score", "known", "via"]
    assert "e5" not in [row.split("\t")[1] for row in rows]


def test_paths_of_a_calibrated_run_have_probabilities_or_the_reason_why_not(
    golde: Golde, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    assert golde("calibrate", copy).exit_code == 0
    asked = ("predict", copy, "--head", "e3", "--path", "next,next", "--top", 3)
    plain = golde(*asked)
    assert plain.exit_code == 0, plain.stderr
    assert "probability" not in plain.stdout
    assert "no probabilities: validation facts add too few ends to this path" in plain.stderr
    fewest = {"platt": 1}
    monkeypatch.setattr("golde.inference.path_probability.FEWEST_FACTS", fewest)
    for beam in ((), ("--beam", 4)):
        shown = golde(*asked, *beam)
        assert "probability" in shown.stdout
        assert "a probability is that of one claim" in shown.stderr
        assert max(len(line) for line in shown.stdout.splitlines()) <= 80
        only = tmp_path / "only.txt"
        only.write_text("e5\n", "utf-8")
        none = golde(*asked, *beam, "--candidates", only, "--known", "drop")
        assert (none.exit_code, none.stderr) == (0, "")  # nothing is there to have a probability
        answers = json.loads(golde(*asked, *beam, "--json").stdout)["answers"]
        assert answers[0]["probability"] > answers[-1]["probability"]
        table = tmp_path / "ends.csv"
        assert golde(*asked, *beam, "--out", table).exit_code == 0
        rows = list(csv.DictReader(table.read_text("utf-8").splitlines()))
        assert [float(row["probability"]) for row in rows] == [a["probability"] for a in answers]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("predict", "--head", "e1", "--path", "next,nexxt"), "did you mean 'next'"),
        (("predict", "--path", "next"), "either --head or --tail"),
        (("predict", "--head", "e1", "--tail", "e2", "--path", "next"), "either --head or --tail"),
        (("predict", "--head", "e1", "--relation", "next", "--path", "next"), "--relation"),
        (("predict", "--head", "e1", "--relation", "next", "--beam", "3"), "--path"),
        (("predict", "--head", "e1", "--path", "next", "--out", "found.xls"), ".parquet"),
        (("extend", "none.tsv", "--out", "more"), "none.tsv: cannot be read"),
        (("extend", "bad.tsv", "--out", "more"), "bad.tsv:2: unknown relation 'above'"),
        (("extend", "bad.tsv", "--out", "bad.tsv"), "bad.tsv"),
        (("extend", "bad.tsv"), "--out"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_mistake_is_named_and_nothing_is_written(
    golde: Golde,
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    named: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.tsv").write_text("e1\tnext\tnew\nnew\tabove\te2\n", encoding="utf-8")
    result = golde(arguments[0], run, *arguments[1:])
    assert result.exit_code == 2, result.output
    assert named in result.stderr
    assert result.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == ["bad.tsv"]
