"""A table in host memory trains, ranks and resumes as one on the device."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import Tensor

import golde
from golde.config import Config
from golde.data.graph import KnowledgeGraph
from golde.data.synthetic import random_graph
from golde.distributed.loop import train_sharded
from golde.errors import ConfigError
from golde.evaluation.evaluate import rank_triples
from golde.models import build, contract, place
from golde.runs import RunFolder
from golde.training import StoppedError, memory, row_adam, sampling, train
from golde.training.extend import extend
from golde.training.host_update import HostUpdate
from golde.training.sampling import Sampler
from golde.training.staging import distinct
from golde.training.update import Update
from tiny import quick, ring

CPU = torch.device("cpu")
CUDA = torch.cuda.is_available()
gpu = pytest.mark.skipif(not CUDA, reason="only a GPU has memory of its own")

ALONE = KnowledgeGraph.from_triples([("a", "likes", "a")], name="alone")
SPARSE = random_graph(entities=400, relations=3, triples=300, seed=3)  # most rows miss many steps

SETTINGS: dict[str, tuple[KnowledgeGraph, dict[str, Any], dict[str, Any]]] = {
    "defaults": (ring(), {}, {}),
    "lazy": (ring(), {}, {"optimiser": "lazy-adam"}),
    "norm": (ring(), {}, {"regulariser": "norm", "regulariser_weight": 0.1}),
    "n3": (ring(), {}, {"regulariser": "n3", "regulariser_weight": 0.1}),
    "biases": (
        ring(),
        {"bias": True, "loop_bias": True, "reciprocal": False},
        {"answers_as_negatives": True},
    ),
    "cross-entropy": (ring(), {}, {"loss": "cross-entropy", "gradient_clip": 0.05}),
    "all entities": (ring(), {}, {"negatives": 0}),
    "complex": (ring(), {"signature": None, "kind": "complex", "numbers": 12}, {}),
    "sparse": (SPARSE, {}, {"batch_size": 5}),
    "sparse, norm": (
        SPARSE,
        {},
        {"batch_size": 5, "regulariser": "norm", "regulariser_weight": 0.1},
    ),
    "one entity": (ALONE, {}, {}),
}


@pytest.fixture(autouse=True)
def draws_of_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few are drawn here, so that none would be left out."""
    monkeypatch.setattr(sampling, "LEFT_OUT", 1)


def some(*names: str) -> Any:
    return pytest.mark.parametrize("name", names)


class Steps:
    """The first steps of a run."""

    def __init__(
        self,
        name: str,
        where: str,
        *,
        precision: str = "float64",
        device: torch.device = CPU,
        capture: bool = False,
    ) -> None:
        graph, model, training = SETTINGS[name]
        config = quick(model, precision=precision, entity_table=where, **training)
        settings = config.training
        assert settings.batch_size is not None
        assert settings.negatives is not None
        sizes = len(graph.entities), len(graph.relations)
        sampler = Sampler(
            graph.train,
            *sizes,
            batch_size=settings.batch_size,
            negatives=settings.negatives,
            answers=settings.answers_as_negatives,
            subsampling=settings.subsampling,
            seed=settings.seed,
            device=device,
        )
        dtype = getattr(torch, precision)
        self.model = place(build(config.model, *sizes), device, dtype, host=where == "host")
        make = HostUpdate if where == "host" else Update
        self.update = make(self.model, sampler, settings, capture=capture)
        self.update.rehearse()
        self.losses: list[float] = []

    def make(self, steps: Iterable[int]) -> None:
        for step in steps:
            outcome = self.update(step, 0.02 * (1 - step / 60))
            self.losses.append(outcome.loss.item())

    def state(self) -> dict[str, Tensor]:
        """Parameters and moments, settled, on the CPU."""
        self.update.settle()
        found = {name: p.detach() for name, p in self.model.named_parameters()}
        for name, state in self.update.state().items():
            found |= {f"{name}/{key}": value for key, value in state.items()}
        return {name: tensor.cpu().clone() for name, tensor in found.items()}


def assert_same(found: Steps, expected: Steps, **close: float) -> None:
    torch.testing.assert_close(found.losses, expected.losses, **close)
    torch.testing.assert_close(found.state(), expected.state(), **close)


@some("defaults", "lazy", "norm", "biases", "all entities", "sparse", "sparse, norm", "one entity")
def test_the_steps_are_those_on_the_device(name: str) -> None:
    """Moments included, in double precision; also where the whole table is settled on the way."""
    found, expected = Steps(name, "host"), Steps(name, "device")
    for steps in (range(4), range(4, 5), range(5, 14)):
        found.make(steps)
        expected.make(steps)
        assert_same(found, expected, rtol=1e-9, atol=1e-12)


@some("defaults", "sparse, norm")
def test_nothing_depends_on_when_records_end_or_rows_are_settled(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = Steps(name, "host", precision="float32")
    expected.make(range(12))
    monkeypatch.setattr(row_adam, "TURNS", 3)
    found = Steps(name, "host", precision="float32")
    for step in range(12):
        found.make([step])
        if step % 5 == 1:
            found.update.settle()
    assert found.losses == expected.losses
    torch.testing.assert_close(found.state(), expected.state(), rtol=0, atol=0)


def test_a_step_may_be_any_other_than_the_next() -> None:
    """What was brought in ahead is then for nothing, and what was moved is not lost."""
    found, expected = Steps("defaults", "host"), Steps("defaults", "device")
    for steps in ((0, 1, 5), (2, 2, 9)):
        found.make(steps)
        expected.make(steps)
    assert_same(found, expected, rtol=1e-9, atol=1e-12)


def test_a_step_that_is_not_finite_moves_nothing() -> None:
    runs = [Steps("sparse", where) for where in ("host", "device")]
    for one in runs:
        one.make(range(5))
        group = next(p for name, p in one.model.named_parameters() if name != "entity")
        kept = group.detach().clone()
        with torch.no_grad():
            group.fill_(torch.nan)
        assert not torch.isfinite(one.update(5, 0.01).loss)
        with torch.no_grad():
            group.copy_(kept)
        one.make(range(6, 12))
    assert_same(*runs, rtol=1e-9, atol=1e-12)


def test_distinct_ids_are_those_of_unique() -> None:
    ids = torch.tensor([7, 2, 7, 0, 2, 2])
    entity, slot = distinct(ids, none=9)
    assert entity.tolist() == [0, 2, 7, 9, 9, 9]
    assert entity[slot].tolist() == ids.tolist()


def figures(folder: RunFolder) -> dict[str, Any]:
    return {
        "validation": folder.about()["validation"],
        "metrics": {key: one["metrics"] for key, one in folder.metrics().items()},
        "losses": [json.loads(line)["loss"] for line in folder.log.read_text().splitlines()],
    }


@pytest.mark.parametrize(
    "training",
    [{}, {"regulariser": "norm", "regulariser_weight": 0.1}, {"optimiser": "lazy-adam"}],
    ids=["adam", "norm", "lazy"],
)
def test_a_run_ends_like_one_on_the_device(training: dict[str, Any], tmp_path: Path) -> None:
    """The same losses, validations, figures, answers and, to within rounding, parameters."""
    folders = [
        train(ring(), tmp_path / where, quick(entity_table=where, precision="float64", **training))
        for where in ("host", "device")
    ]
    found, expected = (figures(folder) for folder in folders)
    assert found.pop("losses") == pytest.approx(expected.pop("losses"), rel=1e-12)
    assert found == expected
    parameters = [dict(folder.load_model().state_dict()) for folder in folders]
    torch.testing.assert_close(*parameters, rtol=1e-9, atol=1e-12)
    answers = [
        [one.tail for one in golde.load_run(folder.path).predict("e3", "next")]
        for folder in folders
    ]
    assert answers[0] == answers[1]
    assert 'entity_table = "host"' in (folders[0].path / "config.toml").read_text()
    assert "entity_table" not in (folders[1].path / "config.toml").read_text()


def test_a_stopped_run_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    config = quick(entity_table="host")
    whole = train(ring(), tmp_path / "whole", config)
    for _ in range(2):
        with pytest.raises(StoppedError):
            train(ring(), tmp_path / "run", config, resume=True, should_stop=lambda: True)
    resumed = train(ring(), tmp_path / "run", resume=True)
    assert figures(resumed) == figures(whole)
    parameters = [dict(folder.load_model().state_dict()) for folder in (resumed, whole)]
    torch.testing.assert_close(*parameters, rtol=0, atol=0)


def test_a_checkpoint_is_of_its_own_kind_of_table(tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        train(ring(), tmp_path, quick(entity_table="host"), should_stop=lambda: True)
    with pytest.raises(ConfigError, match=r"training\.entity_table is 'host' there and 'device'"):
        train(ring(), tmp_path, quick(), resume=True)


def test_a_run_can_be_extended(tmp_path: Path) -> None:
    folder = train(ring(), tmp_path / "run", quick(entity_table="host"))
    new = extend(folder.path, [("e3", "next", "new")], tmp_path / "more", steps=2)
    assert new.load_model().entities == len(ring().entities) + 1


def test_several_processes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is for one process"):
        train_sharded(ring(), tmp_path / "run", quick(entity_table="host"), cast(Any, None))
    assert not (tmp_path / "run").exists()


def test_a_gpu_needs_no_room_for_the_table_but_the_machine_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = {"cuda": 10**9, "cpu": 10**10}
    monkeypatch.setattr(memory, "memory_of", lambda device: there[device.type])
    cuda = torch.device("cuda")

    def check(where: str, entities: int) -> None:
        config = quick({"signature": "E4x4"}, entity_table=where)  # 64 bytes an entity
        memory.refuse_oversize(config, entities, 2, cuda, rows=1000)

    check("device", 10**6)
    with pytest.raises(ConfigError, match=r"on this GPU.*training\.entity_table = 'host'"):
        check("device", 10**7)
    check("host", 10**7)
    with pytest.raises(ConfigError, match=r"needs at least 19\.2 GB .*on this machine"):
        check("host", 10**8)


@gpu
@pytest.mark.parametrize("capture", [False, True], ids=["step by step", "captured"])
@some(*SETTINGS)
def test_a_gpu_makes_the_steps_it_makes_on_its_own_table(name: str, capture: bool) -> None:
    """Within rounding, which differs because gradients of one row are added up in no fixed order."""
    cuda = torch.device("cuda")
    options: dict[str, Any] = {"precision": "float32", "device": cuda, "capture": capture}
    found, expected = Steps(name, "host", **options), Steps(name, "device", **options)
    for steps in (range(4), range(4, 5), range(5, 14)):
        found.make(steps)
        expected.make(steps)
        assert_same(found, expected, rtol=1e-3, atol=1e-3)
    assert found.model.entity.device == CPU
    assert found.model.entity.is_pinned()


@gpu
@some("defaults", "sparse", "lazy")
def test_a_gpu_without_kernels_makes_them_too(name: str) -> None:
    found = Steps(name, "host", device=torch.device("cuda"))
    expected = Steps(name, "device")
    found.make(range(30))
    expected.make(range(30))
    assert_same(found, expected, rtol=1e-6, atol=1e-6)


@gpu
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_gpu_ranks_and_answers_from_host_memory(
    precision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config: Config = quick(entity_table="host", precision=precision)
    folder = train(ring(), tmp_path / "run", config, device="cuda")
    run, cuda = golde.load_run(folder.path, device="cuda"), torch.device("cuda")
    assert run.model.entity.device == CPU
    assert run.model.device.type == "cuda"
    whole = place(folder.load_model(), cuda, getattr(torch, precision), host=False)
    ranks = [
        rank_triples(model.scorer(), ring(), ring().test, device=cuda).realistic
        for model in (run.model, whole)
    ]
    torch.testing.assert_close(*ranks, rtol=0, atol=0)
    monkeypatch.setattr(contract, "BLOCK_NUMBERS", 50)  # a few rows at a time
    asked = torch.tensor([3, 7], device=cuda), torch.tensor([0, 3], device=cuda)
    torch.testing.assert_close(*(model.score(*asked) for model in (run.model, whole)))
    assert len(run.predict("e3", "next", top=5)) == len(run.predict(None, "next", "e3", top=5)) == 5
    assert run.complete(3, heads="all")
    with pytest.raises(StoppedError):
        train(ring(), tmp_path / "cut", config, device="cuda", should_stop=lambda: True)
    resumed = train(ring(), tmp_path / "cut", config, device="cuda", resume=True)
    parameters = [dict(one.load_model().state_dict()) for one in (resumed, folder)]
    torch.testing.assert_close(*parameters, rtol=1e-3, atol=1e-3)


@gpu
def test_a_gpu_holds_a_few_rows_of_the_table() -> None:
    """Less than the table alone would take, whatever a step allocates beside."""
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    entities, numbers = 1_000_000, 128
    graph = random_graph(entities=1000, relations=3, triples=2000, seed=0)
    config = quick({"signature": f"E4x{numbers // 4}"}, entity_table="host")
    cuda = torch.device("cuda")
    sampler = Sampler(
        graph.train,
        entities,
        3,
        batch_size=100,
        negatives=100,
        subsampling=True,
        seed=0,
        device=cuda,
    )
    model = place(build(config.model, entities, 3), cuda, torch.float32, host=True)
    update = HostUpdate(model, sampler, config.training, capture=True)
    for step in range(6):
        outcome = update(step, 0.01)
    assert torch.isfinite(outcome.loss)
    update.settle()
    score = model.scorer()
    asked = torch.zeros(2, dtype=torch.int64, device=cuda)
    assert torch.isfinite(score(asked, asked, entities - 5, entities)).all()
    assert torch.cuda.memory_allocated() - before < entities * numbers * 4
