"""The public names: train, open, evaluate, and what happens to a folder that is no finished run."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import torch

import golde
from golde.errors import ConfigError, RunError
from golde.training import StoppedError

FACTS = [(f"a{i}", f"r{i % 2}", f"a{(i * 3 + 1) % 9}") for i in range(18)]
SETTINGS = """
[model]
signature = "P2x2 Q3x2"

[training]
steps = 20
batch_size = 16
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> golde.Run:
    """Trained from files: a folder of facts and a TOML file."""
    folder = tmp_path_factory.mktemp("api")
    for split, facts in (("train", FACTS), ("valid", FACTS[:2]), ("test", FACTS[2:6])):
        (folder / f"{split}.tsv").write_text("".join("\t".join(f) + "\n" for f in facts), "utf-8")
    (folder / "small.toml").write_text(SETTINGS, "utf-8")
    return golde.train(folder, folder / "run", folder / "small.toml", device="cpu")


def test_every_public_name_is_there_and_no_other() -> None:
    for name in golde.__all__:
        assert getattr(golde, name) is not None
    assert set(golde.__all__) <= set(dir(golde))
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        golde.no_such_name  # noqa: B018


def test_a_run_opened_again_answers_alike(run: golde.Run) -> None:
    again = golde.load_run(run.folder.path, device="cpu")
    assert repr(again) == repr(run)
    assert again.config.training.steps == 20
    assert again.graph.digest == run.graph.digest
    assert again.predict("a0", "r0") == run.predict("a0", "r0")
    assert not again.model.training


def test_graphs_and_settings_as_objects(tmp_path: Path) -> None:
    graph = golde.KnowledgeGraph.from_triples(FACTS)
    config = golde.Config().with_values(model={"signature": "E2"}, training={"steps": 2})
    reports: list[object] = []
    run = golde.train(graph, tmp_path / "run", config, device="cpu", watch=reports.append)
    assert run.model.signature == golde.Signature.parse("E2x1")
    assert len(reports) == 1  # the last step
    with pytest.raises(RunError, match="holds a run already"):
        golde.train(graph, tmp_path / "run", config, device="cpu")
    resumed = golde.train(graph, tmp_path / "run", config, device="cpu", resume=True)
    assert resumed.score(FACTS) == run.score(FACTS)


def test_figures_are_stored_with_protocol_and_environment(run: golde.Run) -> None:
    found = run.evaluate(hits=(1, 5), bootstrap=0, baselines=False)
    filtered = run.evaluate(self_filter=True, bootstrap=10)
    run.evaluate("valid", bootstrap=0)
    stored = json.loads((run.folder.path / "metrics.json").read_text("utf-8"))
    assert set(stored) == {"test", "test+self-filter", "valid"}
    environment = stored["test"].pop("environment")
    model = (run.folder.path / "model.safetensors").read_bytes()
    assert stored["test"].pop("model") == hashlib.sha256(model).hexdigest()
    assert environment["device"] == "cpu"
    assert environment["torch"] == torch.__version__
    assert stored["test"] == json.loads(json.dumps(found.as_dict()))
    assert "hits@5" in stored["test"]["metrics"]["both"]
    assert stored["test"]["baselines"] == {}
    assert stored["test"]["protocol"]["self_filter"] is False
    assert stored["test+self-filter"]["protocol"]["self_filter"] is True
    assert stored["test+self-filter"]["metrics"]["both"]["mrr"] == filtered.mrr
    assert set(stored["test+self-filter"]["baselines"]) == {"popularity", "rules"}


def test_a_folder_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no run here \(run.json is missing\)"):
        golde.load_run(tmp_path)


def test_an_unfinished_run(tmp_path: Path) -> None:
    graph = golde.KnowledgeGraph.from_triples(FACTS)
    with pytest.raises(StoppedError):
        golde.train(graph, tmp_path / "run", device="cpu", should_stop=lambda: True)
    with pytest.raises(RunError, match="training has not finished"):
        golde.load_run(tmp_path / "run", device="cpu")


def test_a_damaged_run(run: golde.Run, tmp_path: Path) -> None:
    for name, change, message in (
        ("model.safetensors", b"{}", "cannot be read"),
        ("vocabulary.json", b"[", "cannot be read"),
        ("config.toml", b'[model]\nsignature = "E3x1"\n', "does not fit config.toml"),
    ):
        copy = tmp_path / name
        shutil.copytree(run.folder.path, copy)
        (copy / name).write_bytes(change)
        with pytest.raises(RunError, match=message):
            golde.load_run(copy, device="cpu")


def test_a_device_that_is_not_there(run: golde.Run) -> None:
    with pytest.raises(ConfigError, match="unknown device 'tpu'; use auto, cpu or cuda"):
        golde.load_run(run.folder.path, device="tpu")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_run_from_a_gpu_answers_alike_on_a_cpu(tmp_path: Path) -> None:
    graph = golde.KnowledgeGraph.from_triples(FACTS, FACTS[:2], FACTS[2:6])
    config = golde.Config().with_values(model={"signature": "P2x2 Q3x2"}, training={"steps": 20})
    there = golde.train(graph, tmp_path / "run", config, device="cuda")
    here = golde.load_run(tmp_path / "run", device="cpu")
    assert there.model.entity.is_cuda
    assert not here.model.entity.is_cuda
    ranks = [run.evaluate(bootstrap=0).ranks.better for run in (there, here)]
    assert torch.equal(*ranks)
    for wish in ({"relation": "r0", "tail": "a1"}, {"head": "a0", "tail": "a1"}):
        pair = [run.predict(**wish, known="drop", top=3) for run in (there, here)]
        assert [p.fact for p in pair[0]] == [p.fact for p in pair[1]]
    assert [p.fact for p in there.complete(20)] == [p.fact for p in here.complete(20)]
