"""``golde tune`` from the command line: what it prints and writes, how it goes on, what it refuses."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("optuna")

Golde = Callable[..., Any]

QUICK = (
    *("--set", "training.steps=24", "--set", "training.validate_every=8"),
    *("--numbers", "8", "--device", "cpu"),
)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("graph") / "ring.tsv"
    rows = [f"e{i}\t{name}\te{(i + step) % 12}\n" for i in range(12) for name, step in STEPS]
    path.write_text("".join(rows), encoding="utf-8")
    return path


STEPS = (("next", 1), ("second", 2), ("previous", 11))


def test_the_whole_path(
    golde: Golde, graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = golde("tune", graph, "--out", "best.toml", "--trials", 2, *QUICK)
    assert first.exit_code == 0, first.stderr
    assert first.stderr.count("trial ") == 2
    again = golde("tune", graph, "--out", "best.toml", "--trials", 9, "--plot", "why.png", *QUICK)
    assert again.exit_code == 0, again.stderr
    assert again.stderr.count("trial ") == 7
    assert max(map(len, again.stdout.replace(str(graph), "ring.tsv").splitlines())) <= 80
    assert "mattered" in again.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best.db", "best.toml", "why.png"]
    shown = golde("tune", graph, "--out", "best.toml", "--trials", 9, "--json", *QUICK)
    found = json.loads(shown.stdout)
    assert shown.stderr == ""
    assert [trial["trial"] for trial in found["trials"]] == list(range(9))
    complete = [trial["mrr"] for trial in found["trials"] if trial["state"] == "complete"]
    assert found["best"]["mrr"] == max(complete) >= found["trials"][0]["mrr"]
    assert sum(found["importance"].values()) == pytest.approx(1)

    trained = golde("train", graph, "--config", "best.toml", "--out", "run", "--device", "cpu")
    assert trained.exit_code == 0, trained.stderr
    checks = json.loads(Path("run/run.json").read_text())["validation"]
    assert max(check["mrr"] for check in checks) == pytest.approx(found["best"]["mrr"], abs=1e-6)


MISTAKES = {
    "no graph": (("--out", "new.toml"), "name the graph to search on"),
    "no toml": (("<graph>", "--out", "new.json"), "FILE.toml"),
    "no folder": (("<graph>", "--out", "none/new.toml"), "no folder none"),
    "no picture": (("<graph>", "--out", "new.toml", "--plot", "new.pdf"), ".png or .svg"),
    "own config": (("<graph>", "--out", "mine.toml", "--config", "mine.toml"), "would be lost"),
    "a folder as study": (("<graph>", "--out", "new.toml", "--study", "."), "is a folder"),
    "a study that is none": (("<graph>", "--out", "new.toml", "--study", "x.db"), "is no study"),
    "a study named as settings": (("<graph>", "--out", "new.toml", "--study", "a.toml"), "FILE.db"),
    "unknown key": (
        ("<graph>", "--out", "new.toml", "--set", "training.stepz=1"),
        "training.steps",
    ),
    "nothing held out": (("<graph>", "--out", "new.toml", "--valid", "0"), "--valid 0.1"),
    "few numbers": (("<graph>", "--out", "new.toml", "--space", "paper", "--numbers", "9"), "200"),
    "no trials": (("<graph>", "--out", "new.toml", "--trials", "0"), "'--trials'"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_and_nothing_is_written(
    golde: Golde, graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text("[training]\nsteps = 20\n", encoding="utf-8")
    Path("x.db").write_text("these are notes, no database " * 40, encoding="utf-8")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    words, named = MISTAKES[mistake]
    result = golde("tune", *(graph if word == "<graph>" else word for word in words))
    assert result.exit_code == 2, result.output
    assert named in result.stderr
    assert result.stdout == ""
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_search_without_a_winner_says_why(golde: Golde, graph: Path, tmp_path: Path) -> None:
    words = ("--trials", 2, *QUICK, "--set", "model.weights={E = 2.0}")
    result = golde("tune", graph, "--out", tmp_path / "best.toml", *words)
    assert result.exit_code == 2
    assert "all 2 trials failed, the last because model.weights: E" in result.stderr
    assert not (tmp_path / "best.toml").exists()


@pytest.mark.parametrize(("module", "extra"), [("optuna", "tune"), ("matplotlib", "plots")])
def test_a_missing_extra_is_named_before_the_graph_is_read(
    golde: Golde, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    words = ("--out", tmp_path / "best.toml", "--plot", tmp_path / "why.png")
    result = golde("tune", tmp_path / "none.tsv", *words)
    assert result.exit_code == 2
    assert f"pip install 'golde[{extra}]'" in result.stderr
    assert not list(tmp_path.iterdir())
