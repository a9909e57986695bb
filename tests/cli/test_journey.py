"""From a file of facts to answers, each step through the command line."""

from __future__ import annotations

import json
import math
import re
import shlex
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

from golde.cli import train as train_command
from golde.training.loop import Report, Watcher

Golde = Callable[..., Any]

SIDES = {"both", "head", "tail"}
FIGURES = {"mr", "mrr", "hits@1", "hits@3", "hits@10"}


def test_evaluate_prints_one_object_that_beats_the_baselines(golde: Golde, run: Path) -> None:
    result = golde("evaluate", run, "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert {"protocol", "metrics", "relations", "categories", "baselines"} <= set(found)
    assert set(found["metrics"]) == SIDES
    assert all(set(found["metrics"][side]) >= FIGURES for side in SIDES)
    mrr = found["metrics"]["both"]["mrr"]
    assert mrr > 1.5 * found["baselines"]["popularity"]["both"]["mrr"]

    shown = golde("show", run, "--json")
    assert json.loads(shown.stdout)["metrics"]["test"]["metrics"]["both"]["mrr"] == mrr
    assert f"{mrr:.3f}" in golde("show", run).stdout


def test_figures_of_a_sample_are_shown_as_such(
    golde: Golde,
    facts: Path,
    small: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # a path of any length is shown whole
    few = ("--set", "training.steps=20", "--set", "training.validate_limit=2")
    trained = golde("train", facts, "--out", "run", *small, *few)
    assert "on 2 of 10 facts" in trained.stdout
    shown = golde("show", "run").stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert re.search(r"^valid\+sample +2 of 10 ", shown, re.MULTILINE)
    assert golde("evaluate", "run", "--split", "valid").exit_code == 0
    shown = golde("show", "run").stdout
    assert re.search(r"^valid +10 ", shown, re.MULTILINE)


def test_a_training_that_ends_early_says_why(
    golde: Golde,
    facts: Path,
    small: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    values = {"steps": 100_000, "validate_every": 1, "patience": 1, "learning_rate": 1e-12}
    settings = [
        word for key, value in values.items() for word in ("--set", f"training.{key}={value}")
    ]
    trained = golde("train", facts, "--out", "run", *small, *settings)
    (why,) = [line for line in trained.stdout.splitlines() if line.startswith("ended early")]
    assert why.split(maxsplit=2)[2] == (
        "step 2 of 100,000: no better MRR in 1 validation (patience)"
    )
    assert max(map(len, trained.stdout.splitlines())) <= 80
    assert why in golde("show", "run").stdout
    whole = golde("train", facts, "--out", "whole", *small, "--set", "training.steps=2")
    assert "ended early" not in whole.stdout


def test_each_command_says_what_may_come_next(
    golde: Golde, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(run, "a run")
    Path("news.tsv").write_text("e3\tnext\tnew\n", encoding="utf-8")

    def following(*command: object) -> str:
        shown = golde(*command)
        assert shown.exit_code == 0, shown.stderr
        last: str = shown.stdout.splitlines()[-1]
        assert last.startswith("next ")
        return last.removeprefix("next").strip()

    assert following("evaluate", "a run", "--no-baselines") == "golde calibrate 'a run'"
    extend = ("extend", "a run", "news.tsv", "--steps", 0, "--out")
    assert following(*extend, "more") == "golde complete more"
    # All that is known of the new entity is what comes before it: the inverse is what is missing.
    explained = following("complete", "more", "--top", 1)
    assert explained == "golde explain more --head new --relation previous --tail e3"
    assert golde(*shlex.split(explained)[1:]).exit_code == 0
    assert following("calibrate", "a run") == "golde complete 'a run' --min-probability 0.9"
    assert following("evaluate", "a run", "--no-baselines") == "golde complete 'a run'"
    assert following(*extend, "again") == "golde calibrate again"


def test_evaluate_for_people_fits_80_columns(golde: Golde, run: Path) -> None:
    result = golde("evaluate", run, "--split", "valid", "--hits", "2", "--self-filter")
    assert result.exit_code == 0
    assert "self-filter ON" in result.stdout
    assert "H@2" in result.stdout
    assert "popularity" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "popularity" not in golde("evaluate", run, "--no-baselines").stdout


def test_predict_marks_drops_and_restricts(golde: Golde, run: Path, tmp_path: Path) -> None:
    asked = ("predict", run, "--head", "e3", "--relation", "next", "--top", "4")
    result = golde(*asked, "--json")
    answers = json.loads(result.stdout)["answers"]
    assert answers[0]["tail"] == "e4"
    assert answers[0]["known"] in ("train", "valid", "test")
    assert answers[0]["known"] in golde(*asked).stdout

    dropped = json.loads(golde(*asked, "--known", "drop", "--json").stdout)["answers"]
    assert "e4" not in [answer["tail"] for answer in dropped]
    (tmp_path / "names.txt").write_text("e5\ne6\n", encoding="utf-8")
    few = json.loads(golde(*asked, "--candidates", tmp_path / "names.txt", "--json").stdout)
    assert {answer["tail"] for answer in few["answers"]} == {"e5", "e6"}

    relations = golde("predict", run, "--head", "e3", "--tail", "e15", "--json")
    assert json.loads(relations.stdout)["answers"][0]["relation"] == "opposite"


def test_a_file_of_queries_becomes_a_file_of_answers(
    golde: Golde, run: Path, tmp_path: Path
) -> None:
    queries, other = tmp_path / "queries.tsv", tmp_path / "queries.csv"
    queries.write_text("e3\tnext\t?\n?\tnext\te9\n", encoding="utf-8")
    other.write_text("no,item,value,property\n1,e3,?,next\n2,,e9,next\n", encoding="utf-8")
    packed, columns = tmp_path / "queries.parquet", {"h": ["e3", None], "r": ["next"] * 2}
    pyarrow.parquet.write_table(pyarrow.table(columns | {"t": [None, "e9"]}), packed)
    for name, asked in (
        ("answers.tsv", (queries,)),
        ("answers.parquet", (packed,)),
        ("answers.csv", (other, "--columns", "item,property,value")),
    ):
        written = golde("predict", run, "--queries", *asked, "--top", 3, "--out", tmp_path / name)
        assert written.exit_code == 0, written.stderr
        assert "6 answers" in written.stdout
    same = (tmp_path / "answers.tsv").read_text("utf-8").replace("\t", ",")
    assert (tmp_path / "answers.csv").read_text("utf-8") == same
    head, *rows = (tmp_path / "answers.tsv").read_text("utf-8").splitlines()
    table = pyarrow.parquet.read_table(tmp_path / "answers.parquet").to_pylist()
    assert [row.split("\t")[:5] for row in rows] == [
        [str(row[name]) for name in head.split("\t")[:5]] for row in table
    ]
    assert (table[0]["query"], table[0]["tail"]) == (1, "e4")
    assert (table[3]["query"], table[3]["head"]) == (2, "e8")


def test_complete_scores_and_exports(golde: Golde, run: Path, facts: Path, tmp_path: Path) -> None:
    known = {tuple(line.split("\t")) for line in facts.read_text("utf-8").splitlines()}
    nothing = golde("complete", run)  # all of the ring is known
    assert nothing.exit_code == 0
    assert nothing.stdout == (
        "none  every entity of the right kind has an answer; try --heads known or all\n"
    )
    complete = ("complete", run, "--heads", "known", "--top")
    found = json.loads(golde(*complete, 5, "--json").stdout)
    assert len(found) == 5
    assert not known & {(f["head"], f["relation"], f["tail"]) for f in found}
    one = json.loads(golde(*complete, 2, "--per-relation", "--relation", "is", "--json").stdout)
    assert [fact["relation"] for fact in one] == ["is", "is"]

    for missing in (tmp_path / "missing.tsv", tmp_path / "missing.csv"):
        assert golde(*complete, 5, "--out", missing).exit_code == 0
        again = golde("score", run, missing, "--columns", "head,relation,tail", "--json")
        assert again.exit_code == 0, again.stderr
        for fact, scored in zip(found, json.loads(again.stdout), strict=True):
            assert fact["tail"] == scored["tail"]
            assert math.isclose(fact["score"], scored["score"], rel_tol=1e-5)
    table = (tmp_path / "missing.csv").read_text("utf-8").splitlines()
    assert table[0] == "head,relation,tail,score"

    assert golde("export", run, "--out", tmp_path / "space.npz").exit_code == 0
    with np.load(tmp_path / "space.npz") as arrays:
        entity = arrays["entity"]
    assert entity.shape == (26, 16)
    assert golde("export", run, "--out", tmp_path / "space.csv").exit_code == 0
    rows = np.loadtxt(tmp_path / "space.csv", delimiter=",", skiprows=1, usecols=range(1, 17))
    assert np.array_equal(rows.astype(np.float32), entity)


def test_a_baseline_goes_the_same_way(golde: Golde, facts: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    few = ("--set", "training.steps=300", "--set", "training.batch_size=128")
    trained = golde("train", facts, "--out", out, "--preset", "complex", "--numbers", 17, *few)
    assert trained.exit_code == 0, trained.stderr
    ranked = golde("evaluate", out, "--json")
    assert json.loads(ranked.stdout)["metrics"]["both"]["mrr"] > 0.2
    shown = golde("show", out).stdout
    assert re.search(r"^space +complex of 16 numbers$", shown, re.MULTILINE)
    assert "signature" not in shown
    asked = golde("predict", out, "--head", "e3", "--relation", "next", "--top", 4, "--json")
    assert len(json.loads(asked.stdout)["answers"]) == 4
    assert (
        len(json.loads(golde("complete", out, "--heads", "known", "--top", 5, "--json").stdout))
        == 5
    )
    assert golde("export", out, "--out", tmp_path / "space.npz").exit_code == 0
    mixed = golde("train", facts, "--out", out, "--preset", "transe", "--set", "model.block=2")
    assert mixed.exit_code == 2
    assert "model.block = 2 does nothing with model.kind = 'transe'; leave it out" in mixed.stderr


def test_ctrl_c_keeps_a_checkpoint_and_resume_needs_nothing_but_the_folder(
    golde: Golde,
    facts: Path,
    small: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @contextmanager
    def interrupting() -> Iterator[Watcher]:
        def watch(report: Report) -> None:
            signal.raise_signal(signal.SIGINT)

        yield watch

    on_a_cpu = ("--device", "cpu")  # bit for bit the same
    out, before = tmp_path / "run", signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patched:
        patched.setattr(train_command, "watching", interrupting)
        stopped = golde("train", facts, "--out", out, *small, *on_a_cpu)
    assert stopped.exit_code == 130
    assert f"golde train --resume --out {out}" in stopped.stderr
    assert signal.getsignal(signal.SIGINT) is before

    resumed = golde("train", "--resume", "--out", out, *on_a_cpu)
    assert resumed.exit_code == 0, resumed.stderr
    uninterrupted = tmp_path / "uninterrupted"
    assert golde("train", facts, "--out", uninterrupted, *small, *on_a_cpu).exit_code == 0
    whole, halves = ((path / "model.safetensors").read_bytes() for path in (uninterrupted, out))
    assert whole == halves


def test_what_is_left_to_train_is_shown_as_a_clock() -> None:
    def left(seconds: float) -> str:
        return train_command._state(Report(1, 2, 0.5, 9.0, seconds, None, False))

    assert left(59.6).endswith(" 1:00 left")
    assert left(3599.0).endswith(" 59:59 left")
    assert left(2 * 3600 + 65.0).endswith(" 2:01:05 left")


def test_a_graph_too_small_to_hold_facts_out_has_another_way_on(
    golde: Golde, small: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "few.tsv").write_text("a\tr\tb\nb\tr\tc\nc\tr\ta\n", encoding="utf-8")
    out = tmp_path / "run"
    few = (*small, "--set", "training.steps=5")
    trained = golde("train", tmp_path / "few.tsv", "--out", out, *few)
    assert "3 facts are too few" in trained.stderr
    assert f"golde complete {out}\n" in trained.stdout
    ranked = golde("evaluate", out)
    assert ranked.exit_code == 2
    assert "the test split is empty" in ranked.stderr
    assert "--test SIZE" in ranked.stderr
    assert "evaluate" not in golde("show", out).stdout


def test_of_a_run_to_resume_the_setting_that_was_given_differs(golde: Golde, run: Path) -> None:
    """Not those that are no defaults in the run."""
    other = golde("train", "--resume", "--out", run, "--set", "training.learning_rate=0.5")
    assert other.exit_code == 2
    assert "(training.learning_rate is 0.01 there and 0.5 here)" in other.stderr
    same = golde("train", "--resume", "--out", run, "--set", "training.steps=600")
    assert same.exit_code == 0, same.stderr


def test_data_is_listed_and_described(golde: Golde, facts: Path, tmp_path: Path) -> None:
    sets = {one["name"]: one for one in json.loads(golde("data", "list", "--json").stdout)}
    assert sets["world"]["status"] == "shipped"
    assert sets["wn18rr"]["train"] == 86_835
    found = json.loads(golde("data", "describe", facts, "--test", "7", "--json").stdout)
    assert (found["entities"], found["facts"]["test"]) == (26, 7)
    shown = golde("data", "describe", facts).stdout
    assert "opposite (" in shown
    assert max(map(len, shown.splitlines())) <= 80
