"""A mistake is one message that names it, exit code 2, and nothing written."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from golde.errors import RunError

Golde = Callable[..., Any]

RUN, FACTS = "<run>", "<facts>"

MISTAKES = {
    "bad file": (("train", "bad.tsv", "--out", "new"), "bad.tsv:2: 2 columns where 3"),
    "no file": (("train", "none.tsv", "--out", "new"), "none.tsv"),
    "unknown key": (
        ("train", FACTS, "--out", "new", "--set", "training.stepz=1"),
        "training.steps",
    ),
    "bad space": (("train", FACTS, "--out", "new", "--set", "model.signature=Z3"), "'Z'"),
    "unknown preset": (("train", FACTS, "--out", "new", "--preset", "rotat"), "'rotate'"),
    "no numbers": (
        ("train", FACTS, "--out", "new", "--preset", "rotate", "--numbers", "0"),
        "at least 2",
    ),
    "large space": (
        ("train", FACTS, "--out", "new", "--set", "model.signature=E1x100000000000"),
        "model.signature = 'E1x100000000000'",
    ),
    "vast space": (
        ("train", FACTS, "--out", "new", "--set", "model.signature=E99999999999x99999999999"),
        "does not fit in memory",
    ),
    "vast number of threads": (("train", FACTS, "--out", "new", "--threads", "100000"), "1024"),
    "bad size": (("train", FACTS, "--out", "new", "--valid", "some"), "'some'"),
    "no graph": (("train", "--out", "new"), "name the graph"),
    "no run to resume": (("train", "--resume", "--out", "new"), "no run here to go on with"),
    "nothing left": (
        ("train", FACTS, "--out", "new", "--valid", "0.5", "--test", "0.5"),
        "leave nothing to train on",
    ),
    "run exists": (("train", FACTS, "--out", RUN), "add --resume"),
    "unknown set": (("data", "describe", "wn18r"), "wn18rr"),
    "missing run": (("evaluate", "new"), "no run here"),
    "file as run": (("evaluate", FACTS), "name the folder of a run"),
    "bad hits": (("evaluate", RUN, "--hits", "one"), "'one'"),
    "unknown entity": (("predict", RUN, "--head", "evn", "--relation", "is"), "'even'"),
    "nothing near": (
        ("predict", RUN, "--head", "zed", "--relation", "is"),
        "unknown entity 'zed'; give a name as the graph has it, such as 'e0'",
    ),
    "no name": (
        ("explain", RUN, "--head", "", "--relation", "is", "--tail", "e1"),
        "the name of the entity is empty",
    ),
    "beam without path": (
        ("predict", RUN, "--head", "e1", "--relation", "is", "--beam", "4"),
        "give --path",
    ),
    "no folder to export to": (("export", RUN, "--out", "new/e.npz"), "there is no folder new;"),
    "endless resamples": (("compare", RUN, "new", "--resamples", "99999999999999"), "1000000"),
    "endless steps": (
        ("extend", RUN, "claims.tsv", "--out", "new", "--steps", "9" * 26),
        "1000000",
    ),
    "vast advice": (("advise", FACTS, "--numbers", "99999999999"), "1000000"),
    "two unknowns": (("predict", RUN, "--head", "e1"), "exactly one"),
    "nothing asked": (("predict", RUN), "--queries"),
    "queries without out": (("predict", RUN, "--queries", "queries.tsv"), "--out"),
    "columns without queries": (
        ("predict", RUN, "--head", "e1", "--relation", "is", "--columns", "a,b,c"),
        "give --queries FILE too",
    ),
    "bad query": (
        ("predict", RUN, "--queries", "queries.tsv", "--out", "new.tsv"),
        "queries.tsv:1: ",
    ),
    "unknown table": (("complete", RUN, "--out", "new.xls"), ".parquet"),
    "no folder": (("complete", RUN, "--out", "new/found.tsv"), "no folder new"),
    "unknown fact": (("score", RUN, "claims.tsv"), "claims.tsv:2"),
    "scores over facts": (("score", RUN, "claims.tsv", "--out", "./claims.tsv"), "would be lost"),
    "answers over queries": (
        ("predict", RUN, "--queries", "queries.tsv", "--out", "queries.tsv"),
        "would be lost",
    ),
    "unknown format": (("export", RUN, "--out", "new.xyz"), "safetensors"),
    "missing option": (("train", FACTS), "--out"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_and_nothing_is_written(
    golde: Golde,
    run: Path,
    facts: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mistake: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.tsv").write_text("a\tb\tc\nd\te\n", encoding="utf-8")
    Path("queries.tsv").write_text("e1\tnext\te2\n", encoding="utf-8")
    Path("claims.tsv").write_text("e1\tnext\te2\ne1\tnext\te99\n", encoding="utf-8")
    before = {path: path.read_bytes() for path in [*tmp_path.iterdir(), *run.iterdir()]}
    arguments, named = MISTAKES[mistake]
    result = golde(*({RUN: run, FACTS: facts}.get(word, word) for word in arguments))
    assert result.exit_code == 2, result.output
    assert named in result.stderr
    assert result.stdout == ""
    assert {path: path.read_bytes() for path in [*tmp_path.iterdir(), *run.iterdir()]} == before


def test_a_missing_extra_is_named_before_the_graph_is_read(
    golde: Golde, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    result = golde("train", tmp_path / "none.tsv", "--out", tmp_path / "run", "--track")
    assert result.exit_code == 2
    assert "pip install 'golde[track]'" in result.stderr
    assert not list(tmp_path.iterdir())


def test_figures_that_cannot_be_kept_are_shown_all_the_same(
    golde: Golde, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise RunError("metrics.json: cannot be written")

    monkeypatch.setattr("golde.runs.RunFolder.save_metrics", refuse)
    result = golde("evaluate", run)
    assert result.exit_code == 0
    assert "MRR" in result.stdout
    assert "not kept: metrics.json: cannot be written" in result.stderr


def test_what_the_system_refuses_is_told_in_one_line(
    golde: Golde, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: object) -> None:
        raise PermissionError(13, "Permission denied", "here/run.json")

    monkeypatch.setattr("golde.cli.runs.outcome", refuse)
    result = golde("show", run)
    assert result.exit_code == 2
    message = "error: here/run.json: Permission denied; check the path and its rights"
    assert result.stderr == message + "\n"


def test_what_is_no_mistake_of_the_person_stays_an_exception(
    golde: Golde, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("golde.cli.runs.outcome", lambda folder: 1 / 0)
    result = golde("show", run)
    assert result.exit_code == 1
    assert isinstance(result.exception, ZeroDivisionError)


@pytest.mark.parametrize(
    "command",
    [
        ("complete", RUN, "--format", "nt", "--out", f"{RUN}/model.safetensors"),
        ("complete", RUN, "--format", "neo4j", "--out", f"{RUN}/run.json"),
        ("advise", FACTS, "--out", f"{RUN}/config.toml"),
        ("tune", FACTS, "--out", f"{RUN}/config.toml"),
        ("bench", "--out", f"{RUN}/metrics.json"),
    ],
    ids=" ".join,
)
def test_no_command_writes_over_a_file_of_a_run(
    golde: Golde, facts: Path, run: Path, command: tuple[str, ...]
) -> None:
    before = {path: path.read_bytes() for path in run.iterdir() if path.is_file()}
    given = [part.replace(RUN, str(run)).replace(FACTS, str(facts)) for part in command]
    refused = golde(*given)
    assert refused.exit_code == 2
    assert "is a file of the run" in refused.stderr
    assert {path: path.read_bytes() for path in run.iterdir() if path.is_file()} == before
