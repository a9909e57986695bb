"""Runs side by side: the same facts whatever their order, kept ranks, and honest differences."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from golde.cli.main import app
from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError, RunError
from golde.inference import Run
from golde.report.compare import Comparison, compare
from golde.report.compare_plot import draw_comparison
from golde.runs import RunFolder
from golde.runs.atomic import read_tensors, write_tensors
from golde.training import train
from tiny import quick, ring


def open_run(path: Path) -> Run:
    return Run(RunFolder(path))


def shuffled() -> KnowledgeGraph:
    """The ring with its facts, and so its ids, in another order."""
    graph = ring()
    named = {
        split: sorted(
            (graph.entities[h], graph.relations[r], graph.entities[t])
            for h, r, t in graph.split(split).tolist()
        )
        for split in ("train", "valid", "test")
    }
    return KnowledgeGraph.from_triples(**named, name="ring")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs on one graph: poor, good, poor with other ids; and one on another."""
    folder = tmp_path_factory.mktemp("runs")
    good = quick(steps=300, batch_size=64, validate_every=0, log_every=300)
    train(ring(), folder / "poor", quick(steps=1, validate_every=0), device="cpu")
    train(ring(), folder / "good", good, device="cpu")
    train(shuffled(), folder / "reordered", quick(steps=1), device="cpu")
    other = KnowledgeGraph.from_triples([("a", "r", "b"), ("b", "r", "a")], test=[("a", "r", "a")])
    train(other, folder / "other", quick(steps=1), device="cpu")
    return folder


@pytest.fixture
def runs(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "runs"))


def compared(runs: Path, *names: str, **options: Any) -> Comparison:
    return compare([runs / name for name in names], open_run, resamples=500, **options)


def test_figures_are_those_of_evaluate_and_differences_theirs(runs: Path) -> None:
    found = compared(runs, "poor", "good")
    alone = {name: open_run(runs / name).evaluate(bootstrap=0) for name in ("poor", "good")}
    for run in found.runs:
        assert run.found.metrics["both"]["mrr"] == alone[run.path.name].mrr
    gain = found.runs[1].against_first
    for name in ("mrr", "hits@10"):
        expected = alone["good"].metrics["both"][name] - alone["poor"].metrics["both"][name]
        assert gain[name]["difference"] == pytest.approx(expected)
        assert gain[name]["interval"][0] <= expected <= gain[name]["interval"][1]
    assert gain["mrr"]["difference"] > 0.3
    assert found.runs[0].against_first == {}


def test_facts_are_paired_by_name_not_by_place(runs: Path) -> None:
    """Ranks of a fact are its own wherever it stands: a run beside itself, reordered, does not differ."""
    graph, other = (RunFolder(runs / name).graph() for name in ("good", "reordered"))
    assert not torch.equal(graph.test, other.test)
    good, reordered = open_run(runs / "good"), open_run(runs / "reordered")
    ids = other.entities.ids(graph.entities.names)
    relations = other.relations.ids(graph.relations.names)
    with torch.no_grad():  # the same model under the other ids
        reordered.model.entity[ids] = good.model.entity.clone()
        both = torch.cat([relations, relations + len(relations)])
        for mine, theirs in zip(
            good.model.groups.parameters(), reordered.model.groups.parameters(), strict=True
        ):
            theirs[both] = mine.clone()
    reordered.folder.save_model(reordered.model)
    gain = compared(runs, "good", "reordered").runs[1].against_first["mrr"]
    assert gain["difference"] == pytest.approx(0)
    assert gain["interval"] == pytest.approx((0, 0))


def test_several_runs_are_corrected_together(runs: Path) -> None:
    alone = compared(runs, "poor", "good").runs[1].against_first["mrr"]
    found = compared(runs, "poor", "good", "reordered").runs
    together = [run.against_first["mrr"] for run in found[1:]]
    assert [run.letter for run in found] == ["A", "B", "C"]
    assert alone["p"] == alone["p_holm"] == together[0]["p"]
    low, high = sorted(together, key=lambda gain: gain["p"])
    assert low["p_holm"] == pytest.approx(min(1, 2 * low["p"]))
    assert high["p_holm"] >= high["p"]


def test_a_look_at_test_is_on_record_and_need_not_be_repeated(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = compared(runs, "poor", "good").as_dict()
    assert "test" in RunFolder(runs / "poor").metrics()
    monkeypatch.setattr("golde.inference.run.evaluate", None)  # ranking again would fail
    assert compared(runs, "poor", "good").as_dict() == first


def test_what_evaluate_stored_stays(runs: Path) -> None:
    run = open_run(runs / "good")
    run.evaluate()
    (runs / "good" / "ranks.safetensors").unlink()
    before = run.folder.metrics()
    compared(runs, "poor", "good")
    assert run.folder.metrics() == before
    assert (runs / "good" / "ranks.safetensors").is_file()


@pytest.mark.parametrize("damage", ["half", "other ranks"])
def test_ranks_that_are_not_those_of_the_figures_are_found_again(runs: Path, damage: str) -> None:
    first = compared(runs, "poor", "good").as_dict()
    if damage == "half":
        (runs / "good" / "ranks.safetensors").write_bytes(b"half")
    else:
        shutil.copy(runs / "poor" / "ranks.safetensors", runs / "good")
    assert compared(runs, "poor", "good").as_dict() == first


def test_ranks_of_another_model_are_found_again(runs: Path) -> None:
    """Parameters copied into a run whose figures and ranks are still those of its own."""
    expected = compared(runs, "good", "poor").runs[0].found.mrr
    shutil.copy(runs / "good" / "model.safetensors", runs / "poor")
    assert compared(runs, "good", "poor").runs[1].found.mrr == expected


@pytest.mark.parametrize("damage", ["negative", "zero", "from before they were bound"])
def test_ranks_that_cannot_be_are_found_again(runs: Path, damage: str) -> None:
    first = compared(runs, "poor", "good").as_dict()
    path = runs / "good" / "ranks.safetensors"
    ranks, about = read_tensors(path)
    if damage == "negative":
        ranks = {key: -found for key, found in ranks.items()}
    elif damage == "zero":
        ranks = {key: torch.zeros_like(found) for key, found in ranks.items()}
    else:
        about = {}
    write_tensors(path, ranks, about)
    assert open_run(runs / "good").kept_evaluation() is None
    assert compared(runs, "poor", "good").as_dict() == first


def test_a_run_that_cannot_be_written_is_compared_all_the_same(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise RunError("read-only")

    monkeypatch.setattr(RunFolder, "save_metrics", refuse)
    found = compared(runs, "poor", "good")
    assert [run.not_kept for run in found.runs] == ["read-only"] * 2
    assert found.runs[1].against_first["mrr"]["difference"] > 0.3


MISTAKES: dict[str, tuple[tuple[str, ...], str]] = {
    "one": (("good",), "at least two"),
    "twice": (("good", "poor", "good"), "named twice"),
    "other graph": (("good", "other"), "other facts or another split"),
    "no run": (("good", "none"), "no run here"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_runs_that_cannot_be_compared(folder: Path, mistake: str) -> None:
    names, words = MISTAKES[mistake]
    with pytest.raises(GoldeError, match=words):
        compared(folder, *names)


@pytest.fixture
def golde(runs: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.chdir(runs)
    return lambda *words: CliRunner().invoke(app, ["compare", *map(str, words)])


def test_the_command_fits_80_columns_and_draws(golde: Callable[..., Any], runs: Path) -> None:
    pytest.importorskip("matplotlib")
    result = golde("poor", "good", "reordered", "--plot", "a.png", "--resamples", 200)
    assert result.exit_code == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 80
    for words in ("C − A", "p (Holm)", "200 resamples", "MRR heads", "written  a.png"):
        assert words in result.stdout
    assert (runs / "a.png").read_bytes().startswith(b"\x89PNG")


def test_names_are_drawn_as_they_are(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    facts = [(f"e{i}", "costs $x_{$", f"e{(i + 1) % 9}") for i in range(9)]
    graph = KnowledgeGraph.from_triples(facts, test=[("e0", "costs $x_{$", "e2")])
    for name in ("a$", "b$"):
        train(graph, tmp_path / name, quick(steps=1), device="cpu")
    draw_comparison(compared(tmp_path, "a$", "b$"), tmp_path / "a.svg")
    assert b"$x_{$" in (tmp_path / "a.svg").read_bytes()  # as a comment beside the outlines


def test_as_json_it_is_one_value(golde: Callable[..., Any]) -> None:
    result = golde("poor", "good", "--split", "valid", "--json", "--resamples", 200, "--seed", 3)
    found = json.loads(result.stdout)
    assert found["protocol"]["split"] == "valid"
    assert found["significance"]["resamples"] == 200
    first, second = found["runs"]
    assert first["against_first"] == {}
    assert set(second["against_first"]["mrr"]) == {"difference", "interval", "p", "p_holm"}
    assert set(second["relations"]["next"]) >= {"mrr", "head", "tail", "count"}
    assert second["parameters"] > 0


def test_a_mistake_of_the_command_leaves_nothing(golde: Callable[..., Any], runs: Path) -> None:
    before = sorted(runs.rglob("*"))
    for words, named in (
        (("poor", "other"), "only runs on one graph"),
        (("poor", "good", "--plot", "a.gif"), ".png or .svg"),
        (("poor", "good", "--plot", "none/a.png"), "no folder none"),
        (("poor",), "at least two"),
    ):
        result = golde(*words)
        assert result.exit_code == 2
        assert named in result.stderr
    assert sorted(runs.rglob("*")) == before
