"""The run folder: complete, readable without GoldE, and honest about damage."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import golde
from golde.errors import RunError
from golde.evaluation.evaluate import rank_triples
from golde.models import GoldE
from golde.runs import FORMAT_VERSION, RunFolder
from golde.runs.atomic import write_tensors
from golde.runs.lock import locked
from golde.training import train
from tiny import quick, ring


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return train(ring(), tmp_path_factory.mktemp("runs") / "run", quick())


@pytest.fixture
def run(trained: RunFolder, tmp_path: Path) -> RunFolder:
    """A copy to damage."""
    return RunFolder(shutil.copytree(trained.path, tmp_path / "run"))


def test_a_finished_run_holds_these_files_and_no_others(trained: RunFolder) -> None:
    assert sorted(path.name for path in trained.path.iterdir()) == [
        "MODEL_CARD.md",
        "config.toml",
        "graph.safetensors",
        "log.jsonl",
        "metrics.json",
        "model.safetensors",
        "run.json",
        "vocabulary.json",
    ]


def test_whoever_may_read_one_file_of_a_run_may_read_all(trained: RunFolder) -> None:
    assert len({path.stat().st_mode for path in trained.path.iterdir()}) == 1


def test_its_files_can_be_read_without_golde(trained: RunFolder) -> None:
    path = trained.path
    config = tomllib.loads((path / "config.toml").read_text())
    assert config["model"]["signature"] == "P3x2 Q4x2"
    assert config["training"]["steps"] == 12
    about = json.loads((path / "run.json").read_text())
    assert about["format"] == FORMAT_VERSION
    assert about["digest"] == ring().digest
    assert about["finished"] is True
    assert about["environment"]["torch"] == torch.__version__
    assert about["environment"]["threads"] == torch.get_num_threads()
    names = json.loads((path / "vocabulary.json").read_text())
    assert names["relations"] == ["next", "back"]
    triples = load_file(path / "graph.safetensors")
    assert {split: len(rows) for split, rows in triples.items()} == {
        "train": 32,
        "valid": 4,
        "test": 4,
    }
    entity = load_file(path / "model.safetensors")["entity"]
    assert entity.shape == (len(names["entities"]), 12)
    log = [json.loads(line) for line in (path / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in log] == [4, 5, 8, 10, 12]
    assert ["validation_mrr" in line for line in log] == [True, False, True, False, True]


def test_the_graph_comes_back_with_its_ids(trained: RunFolder) -> None:
    graph = trained.graph()
    assert graph.entities.names == ring().entities.names
    assert graph.relations.names == ring().relations.names
    for split in ("train", "valid", "test"):
        assert torch.equal(graph.split(split), ring().split(split))
    assert (graph.digest, graph.name) == (ring().digest, "ring")


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_loaded_model_scores_like_the_trained_one(precision: str, tmp_path: Path) -> None:
    """Also moved elsewhere, as a run folder is self-contained."""
    folder = train(ring(), tmp_path / "a", quick(precision=precision, validate_every=0))
    moved = RunFolder(shutil.move(folder.path, tmp_path / "b"))
    model = moved.load_model("cpu")
    assert model.entity.device.type == "cpu"
    assert model.entity.dtype == getattr(torch, precision)
    assert not model.training
    again = GoldE(moved.config().model, 20, 2).to(model.entity.dtype)
    again.load_state_dict(load_file(moved.path / "model.safetensors"))
    expected, found = (
        rank_triples(m.scorer(), moved.graph(), moved.graph().test) for m in (again, model)
    )
    assert torch.equal(expected.realistic, found.realistic)


def figures(mrr: float) -> dict[str, Any]:
    """The least that figures consist of."""
    protocol = {"triples": 4, "candidates": 20, "filter": ["train"], "self_filter": False}
    both = {"both": {"mrr": mrr, "count": 8}}
    return {"protocol": protocol, "metrics": both, "relations": {}}


def mrr_of(run: RunFolder) -> dict[str, float]:
    return {key: found["metrics"]["both"]["mrr"] for key, found in run.metrics().items()}


def test_metrics_are_kept_by_split(run: RunFolder) -> None:
    assert list(run.metrics()) == ["valid"]  # from training
    run.save_metrics("test", figures(0.2))
    run.save_metrics("valid", figures(0.3))
    assert mrr_of(run) == {"valid": 0.3, "test": 0.2}


def test_figures_and_ranks_of_other_parameters_are_not_the_runs(run: RunFolder) -> None:
    run.save_metrics("test", figures(0.2))
    run.save_ranks("test", torch.ones(3, 8))
    model = run.load_model()
    with torch.no_grad():
        model.entity += 1
    run.save_model(model)
    assert run.metrics() == {}
    assert run.ranks("test") is None
    run.save_metrics("valid", figures(0.4))
    run.save_ranks("valid", torch.ones(3, 8))
    assert mrr_of(run) == {"valid": 0.4}
    assert run.ranks("test") is None
    assert run.ranks("valid") is not None


def test_a_run_from_before_figures_were_bound_opens(run: RunFolder) -> None:
    """Its figures are shown; its ranks may be anybody's, and are found again."""
    edit(run.path / "metrics.json", test=figures(0.2))
    write_tensors(run.path / "ranks.safetensors", {"test": torch.ones(3, 8, dtype=torch.int32)})
    assert mrr_of(run)["test"] == 0.2
    assert run.ranks("test") is None


@pytest.mark.parametrize(
    "entry",
    [
        5,
        {},
        figures(0.1) | {"metrics": {"both": 3}},
        figures(0.1) | {"protocol": {}},
        figures(0.1) | {"relations": {"next": {"mrr": "x"}}},
    ],
)
def test_what_are_no_figures_is_named(run: RunFolder, entry: Any) -> None:
    edit(run.path / "metrics.json", test=entry)
    with pytest.raises(
        RunError, match=r"metrics\.json: 'test' holds no figures; .* evaluate again"
    ):
        run.metrics()


SAVER = """
import json, sys
import torch
from golde.runs import RunFolder
run, figures = RunFolder(sys.argv[1]), json.loads(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
for i in range(10):
    run.save_metrics(f"{sys.argv[2]}{i}", figures)
    run.save_ranks(f"{sys.argv[2]}{i}", torch.ones(3, 8))
"""


def test_two_processes_that_store_figures_lose_none(run: RunFolder) -> None:
    savers = [
        subprocess.Popen(
            [sys.executable, "-c", SAVER, str(run.path), name, json.dumps(figures(0.1))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in "ab"
    ]
    for saver in savers:
        assert saver.stdout is not None
        assert saver.stdout.readline() == "ready\n"
    said = []
    for saver in savers:
        assert saver.stdin is not None
        saver.stdin.write("go\n")
        saver.stdin.flush()
    for saver in savers:
        said.append(saver.communicate(timeout=60)[1])
    assert said == ["", ""]
    keys = {f"{name}{i}" for name in "ab" for i in range(10)}
    assert run.metrics().keys() == keys | {"valid"}
    assert all(run.ranks(key) is not None for key in keys)
    assert not (run.path / "figures.lock").exists()


def test_figures_can_be_stored_while_another_trains(run: RunFolder) -> None:
    with run.alone():
        run.save_metrics("test", figures(0.2))
    assert "test" in run.metrics()


def test_a_lock_that_never_opens_is_named(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("golde.runs.lock.PATIENCE", 0.0)
    with (
        locked(run.path / "figures.lock"),
        pytest.raises(RunError, match="another process keeps its figures locked"),
    ):
        run.save_metrics("test", figures(0.2))


def everything(run: RunFolder) -> None:
    """All that a reader of a run may ask for."""
    run.about()
    run.config()
    run.graph()
    run.load_model()
    run.metrics()


Damage = Callable[[Path], Any]


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def garbage(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00garbage")


def nested(path: Path) -> None:
    path.write_text("[" * 100_000)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("damage", [truncate, garbage, nested, empty, Path.unlink, folder])
@pytest.mark.parametrize(
    "name",
    ["run.json", "config.toml", "vocabulary.json", "graph.safetensors", "model.safetensors"],
)
def test_a_damaged_file_is_named(run: RunFolder, name: str, damage: Damage) -> None:
    damage(run.path / name)
    with pytest.raises(RunError, match=rf"(?s){re.escape(name)}.*(restore it|train one)"):
        everything(run)


def test_damaged_metrics_are_named(run: RunFolder) -> None:
    (run.path / "metrics.json").write_text("{half")
    with pytest.raises(RunError, match=r"metrics\.json: cannot be read: .* remove it and evaluate"):
        everything(run)
    with pytest.raises(RunError, match=r"metrics\.json: cannot be read"):
        run.save_metrics("test", {})


def edit(path: Path, **changes: Any) -> None:
    content = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({k: v for k, v in content.items() if v is not None}))


@pytest.mark.parametrize("key", ["graph", "entities", "train", "environment", "finished", "steps"])
@pytest.mark.parametrize("value", [None, [1]], ids=["missing", "wrong"])
def test_run_json_needs_its_keys(run: RunFolder, key: str, value: Any) -> None:
    edit(run.path / "run.json", **{key: value})
    with pytest.raises(RunError, match=rf"run\.json: '{key}' is missing or no"):
        everything(run)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("environment", {}),
        ("resumed_in", ["x"]),
        ("validation", [1]),
        ("validation", [{"step": 4, "mrr": "x"}]),
        ("extensions", "x"),
        ("extensions", [{}]),
    ],
)
def test_parts_of_run_json_are_checked(run: RunFolder, key: str, value: Any) -> None:
    edit(run.path / "run.json", **{key: value})
    with pytest.raises(RunError, match=rf"run\.json: '{key}' is damaged; .* restore it"):
        run.about()


@pytest.mark.parametrize("version", [None, 0, 2, "1"])
def test_another_format_version(run: RunFolder, version: Any) -> None:
    edit(run.path / "run.json", format=version)
    with pytest.raises(
        RunError, match=rf"run\.json: written in run format {version!r}, .* reads 1"
    ):
        everything(run)
    with pytest.raises(RunError, match="run format"):
        train(ring(), run.path, quick(), resume=True)


@pytest.mark.parametrize(
    "names",
    [
        None,
        "e0 e1",
        {"e0": 0},
        ["e0"],
        [str(i) for i in range(21)],
        [*range(20)],
        ["e0"] * 20,
    ],
    ids=["missing", "text", "object", "short", "long", "numbers", "twice"],
)
def test_a_vocabulary_of_the_wrong_shape(run: RunFolder, names: Any) -> None:
    edit(run.path / "vocabulary.json", entities=names)
    with pytest.raises(RunError, match=r"vocabulary\.json: .*; check its rights, restore it"):
        everything(run)


@pytest.mark.parametrize(
    "rows",
    [
        None,
        torch.zeros(4),
        torch.zeros(4, 2, dtype=torch.int32),
        torch.tensor([[0, 0, 20]]),
        torch.tensor([[0, 2, 0]]),
        torch.tensor([[-1, 0, 0]]),
        torch.zeros(4, 3),
    ],
    ids=["missing", "flat", "pairs", "entity", "relation", "negative", "floats"],
)
def test_facts_of_the_wrong_shape(run: RunFolder, rows: torch.Tensor | None) -> None:
    path = run.path / "graph.safetensors"
    triples = load_file(path)
    del triples["valid"]
    save_file(triples if rows is None else triples | {"valid": rows}, path)
    with pytest.raises(RunError, match=r"graph\.safetensors: 'valid' does not hold facts"):
        everything(run)


def test_other_facts_than_the_run_was_started_on(run: RunFolder) -> None:
    """Sound in shape, wrong in content: going on would train on something else."""
    path = run.path / "graph.safetensors"
    triples = load_file(path)
    triples["train"] = triples["train"][1:]
    save_file(triples, path)
    edit(run.path / "run.json", finished=False)
    with pytest.raises(RunError, match=r"graph\.safetensors: is not the graph of this run"):
        train(ring(), run.path, quick(), resume=True)


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ('signature = "P3x2 Q4x2"', 'signature = "P3x3"'),
        ('signature = "P3x2 Q4x2"', 'signature = "Z1"'),
        ('signature = "P3x2 Q4x2"', ""),
        ("steps = 12", 'steps = "many"'),
        ("steps = 12", "stepps = 12"),
    ],
)
def test_a_configuration_that_is_not_this_runs(run: RunFolder, line: str, other: str) -> None:
    path = run.path / "config.toml"
    assert line in path.read_text()
    path.write_text(path.read_text().replace(line, other))
    with pytest.raises(RunError, match=r"config\.toml"):
        everything(run)


def test_a_run_with_a_setting_that_is_no_more_is_not_damaged(run: RunFolder) -> None:
    path = run.path / "config.toml"
    path.write_text(path.read_text().replace("[model]\n", '[model]\ncurvature = "learned"\n'))
    everything(run)
    path.write_text(path.read_text().replace('"learned"', '"scale"'))
    with pytest.raises(RunError, match=r"leave it out, and open .* GoldE that did so") as e:
        everything(run)
    assert "restore" not in str(e.value)


def test_no_run_here(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no run here .*golde train"):
        RunFolder(tmp_path).about()


def test_a_run_that_has_not_finished(run: RunFolder) -> None:
    edit(run.path / "run.json", finished=False)
    with pytest.raises(RunError, match=r"training has not finished; .*--resume --out"):
        run.load_model()


def test_nothing_is_ever_unpickled() -> None:
    """A run folder from a stranger cannot run code."""
    unsafe = re.compile(
        r"torch\.load|torch\.save|(?<!allow_)pickle|allow_pickle=True|shelve|joblib|marshal"
    )
    sources = sorted(Path(golde.__file__).parent.rglob("*.py"))
    assert len(sources) > 30
    for path in sources:
        assert not unsafe.search(path.read_text(encoding="utf-8")), path
