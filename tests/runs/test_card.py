"""The model card: there when training ends, true, refreshed, and never in the way."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from golde.data.graph import KnowledgeGraph
from golde.inference import Run
from golde.runs import RunFolder
from golde.runs.atomic import write_json
from golde.runs.card import CARD, _code, _licence, refresh_card
from golde.training import StoppedError, train
from tiny import quick, ring


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return train(ring(), tmp_path_factory.mktemp("runs") / "run", quick(), device="cpu")


@pytest.fixture
def run(trained: RunFolder, tmp_path: Path) -> Run:
    return Run(RunFolder(shutil.copytree(trained.path, tmp_path / "run")))


def card(run: Run | RunFolder) -> str:
    folder = run.folder if isinstance(run, Run) else run
    return (folder.path / CARD).read_text("utf-8")


def test_it_says_what_the_run_holds(trained: RunFolder) -> None:
    text, about, metrics = card(trained), trained.about(), trained.metrics()
    assert about["digest"] in text
    assert about["commit"] in text
    assert "`P3x2 Q4x2`" in text
    assert f"{metrics['valid']['metrics']['both']['mrr']:.3f}" in text
    assert "| facts | 32 train, 4 valid, 4 test |" in text
    assert "biases" in text.lower()
    assert "impact statement" in text
    weakest = min(metrics["valid"]["relations"].items(), key=lambda item: item[1]["mrr"])
    rows = text.partition("| relation | facts |")[2].splitlines()[2:]
    assert rows[0].startswith(f"| `{weakest[0]}` | {weakest[1]['count'] // 2} |")


def test_a_resumed_run_ends_with_the_same_card(trained: RunFolder, tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        train(ring(), tmp_path, quick(), device="cpu", should_stop=lambda: True)
    assert not (tmp_path / CARD).exists()
    assert card(train(ring(), tmp_path, quick(), device="cpu", resume=True)) == card(trained)


def test_evaluating_writes_the_new_figures_and_nothing_else(run: Run) -> None:
    before = card(run) + "\nLooked at by A. Person.\n"
    (run.folder.path / CARD).write_text(before, "utf-8")
    mrr = run.evaluate("test", self_filter=True, bootstrap=0).mrr
    after = card(run)
    assert f"{mrr:.3f}" in after
    assert "| test+self-filter | 4 |" in after
    assert "which flatters" in after
    outside = [text.partition("<!-- figures")[0] for text in (before, after)]
    outside += [text.partition("<!-- end")[2] for text in (before, after)]
    assert outside[0] == outside[1]
    assert outside[2] == outside[3]
    assert "A. Person" in after


def test_a_card_without_its_marks_is_somebody_elses(run: Run) -> None:
    (run.folder.path / CARD).write_text("# My model\n", "utf-8")
    run.evaluate("test", bootstrap=0)
    assert card(run) == "# My model\n"


def not_text(path: Path) -> None:
    path.write_bytes(b"\xff\xfe")


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("damage", [Path.unlink, not_text, a_folder])
def test_the_run_works_without_it(run: Run, damage: Callable[[Path], Any]) -> None:
    damage(run.folder.path / CARD)
    assert (
        run.evaluate("test", bootstrap=0).mrr
        == run.folder.metrics()["test"]["metrics"]["both"]["mrr"]
    )
    assert Run(run.folder).complete(top=1, heads="known")
    if damage is Path.unlink:
        assert "| test | 4 |" in card(run)


def test_names_cannot_break_its_tables(tmp_path: Path) -> None:
    names = ["a | b", "tick ` tock", "*stars*"]
    facts = [(f"e{i}", names[i % 3], f"e{(i + 1) % 9}") for i in range(9)]
    graph = KnowledgeGraph.from_triples(facts, valid=[("e0", names[0], "e2")], name="odd | graph")
    text = card(train(graph, tmp_path, quick(steps=2)))
    assert "| name | `odd \\| graph` |" in text
    assert "| `a \\| b` | 1 |" in text
    assert "golde predict RUN --head NAME --relation 'a | b'" in text


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("plain", "`plain`"),
        ("tick ` tock", "``tick ` tock``"),
        ("ends in `", "`` ends in ` ``"),
        ("`r`", "`` `r` ``"),
        ("``two``", "``` ``two`` ```"),
        ("two\nlines", "`two lines`"),
    ],
)
def test_code_is_closed_whatever_is_in_it(name: str, shown: str) -> None:
    assert _code(name) == shown


def test_a_baseline_is_called_one(tmp_path: Path) -> None:
    config = quick({"signature": None, "kind": "transe", "numbers": 8}, steps=2)
    assert "# transe on ring" in card(train(ring(), tmp_path, config))


def test_a_run_of_an_older_version_gets_a_card(run: Run) -> None:
    (run.folder.path / CARD).unlink()
    about = {k: v for k, v in run.folder.about().items() if k != "commit"}
    write_json(run.folder.path / "run.json", about)
    refresh_card(run.folder)
    assert "not recorded" in card(run)


def test_the_licence_is_that_of_the_set_of_this_name_and_size() -> None:
    about = {"graph": "wn18rr", "entities": 40943, "relations": 11}
    assert "WordNet" in str(_licence(about))
    assert _licence(about | {"entities": 5}) is None
    assert _licence(about | {"graph": "facts"}) is None
    assert "GeoNames" in str(_licence({"graph": "world"}))
