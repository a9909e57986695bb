"""A damaged checkpoint is named and refused before a step is taken."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from golde.errors import RunError
from golde.runs import RunFolder
from golde.training import StoppedError, train
from tiny import quick, ring

Content = tuple[dict[str, Tensor], dict[str, Any]]


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run under way: six steps done, one validation behind it."""
    steps = iter(range(1, 7))
    with pytest.raises(StoppedError):
        train(ring(), tmp_path, quick(), should_stop=lambda: next(steps) == 6)
    return RunFolder(tmp_path)


def refused(
    run: RunFolder, problem: str, fix: str = "remove it to start from the beginning"
) -> None:
    with pytest.raises(RunError, match=rf"checkpoint\.safetensors: .*{problem}.*; {fix}"):
        train(ring(), run.path, quick(), resume=True)


def rewrite(run: RunFolder, change: Callable[[dict[str, Tensor], dict[str, Any]], None]) -> None:
    with safe_open(run.checkpoint, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = json.loads(file.metadata()["json"])
    change(tensors, metadata)
    save_file(tensors, run.checkpoint, {"json": json.dumps(metadata)})


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.999])
def test_a_truncated_checkpoint(run: RunFolder, share: float) -> None:
    whole = run.checkpoint.read_bytes()
    run.checkpoint.write_bytes(whole[: int(share * len(whole))])
    refused(run, "cannot be read")


def test_a_file_of_something_else(run: RunFolder) -> None:
    run.checkpoint.write_bytes(b"PK\x03\x04 a zip, as torch.save would write" * 100)
    refused(run, "cannot be read")


@pytest.mark.parametrize("metadata", [None, {"json": "{half"}, {"json": "[1]"}], ids=str)
def test_damaged_metadata(run: RunFolder, metadata: dict[str, str] | None) -> None:
    save_file({"x": torch.zeros(1)}, run.checkpoint, metadata)
    refused(run, "", "(remove it|resume as the run was started)")


def drop(name: str) -> Callable[[dict[str, Tensor], dict[str, Any]], None]:
    def change(tensors: dict[str, Tensor], metadata: dict[str, Any]) -> None:
        del tensors[name]

    return change


def reshape(name: str) -> Callable[[dict[str, Tensor], dict[str, Any]], None]:
    def change(tensors: dict[str, Tensor], metadata: dict[str, Any]) -> None:
        tensors[name] = torch.zeros(2, 2)

    return change


def add(name: str, tensor: Tensor) -> Callable[[dict[str, Tensor], dict[str, Any]], None]:
    def change(tensors: dict[str, Tensor], metadata: dict[str, Any]) -> None:
        tensors[name] = tensor

    return change


def progress(**changes: Any) -> Callable[[dict[str, Tensor], dict[str, Any]], None]:
    def change(tensors: dict[str, Tensor], metadata: dict[str, Any]) -> None:
        metadata["progress"] |= changes

    return change


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (drop("model/entity"), "model/entity is missing"),
        (drop("best/entity"), "best/entity is missing"),
        (drop("optimiser/entity/step"), "optimiser/entity/step is missing"),
        (drop("optimiser/entity/exp_avg_sq"), "optimiser/entity/exp_avg_sq is missing"),
        (reshape("model/entity"), r"model/entity is \(2, 2\), not \(20, 12\)"),
        (reshape("best/groups.1.b"), r"best/groups.1.b is \(2, 2\)"),
        (reshape("optimiser/entity/exp_avg"), r"exp_avg is \(2, 2\)"),
        (lambda tensors, metadata: metadata.pop("progress"), "does not say where"),
        (lambda tensors, metadata: metadata["progress"].pop("worse"), "does not say where"),
        (progress(step="6"), "does not say where"),
        (progress(pace=3), "does not say where"),
        (lambda tensors, metadata: metadata.update(progress=[]), "does not say where"),
        (progress(step=True), "does not say where"),
    ],
)
def test_a_checkpoint_that_lacks_something(run: RunFolder, change: Any, problem: str) -> None:
    rewrite(run, change)
    refused(run, problem)


def test_a_checkpoint_of_who_knows_what(run: RunFolder) -> None:
    rewrite(run, lambda tensors, metadata: metadata.pop("digest"))
    refused(run, "other data, settings", "resume as the run was started")


@pytest.mark.parametrize(
    "name", ["model/extra", "best/extra", "optimiser/entity/extra", "optimiser/extra/step", "x"]
)
def test_a_checkpoint_that_holds_more(run: RunFolder, name: str) -> None:
    rewrite(run, add(name, torch.zeros(2)))
    refused(run, f"{name} is none of this run's tensors")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (progress(step=-3), "progress.step is -3, which cannot be in 12 steps"),
        (progress(step=13), "progress.step is 13"),
        (progress(step=0), "progress.best_step is 4, which cannot be after step 0"),
        (progress(step=0, best_step=0, validations=[]), "best/.* is none of this run's"),
        (progress(best_step=7), "progress.best_step is 7"),
        (progress(best_mrr=float("nan")), "progress.best_mrr is nan"),
        (progress(worse=-1), "progress.worse is -1"),
        (progress(seconds=-1.0), "progress.seconds is -1.0"),
        (progress(validations=[3]), r"progress.validations is \[3\]"),
        (progress(validations=[{"step": 9, "mrr": 0.5}]), "progress.validations is .*9"),
        (
            add("optimiser/entity/step", torch.tensor(1e30)),
            "step is 1e\\+30, which cannot be after",
        ),
        (add("optimiser/entity/step", torch.tensor(-1.0)), "step is -1, which cannot be after"),
        (add("model/entity", torch.ones(20, 12).int()), "model/entity is of torch.int32"),
        (add("optimiser/entity/exp_avg", torch.ones(20, 12).double()), "is of torch.float64"),
        (
            add("model/entity", torch.full((20, 12), torch.nan)),
            "model/entity holds what is no number",
        ),
    ],
)
def test_a_checkpoint_that_cannot_be(run: RunFolder, change: Any, problem: str) -> None:
    rewrite(run, change)
    refused(run, problem)


def test_parameters_without_numbers_have_a_place_too(tmp_path: Path) -> None:
    """One reflection fewer than the one there is."""
    config = quick({"signature": "E1x2 P3x2", "reflections": "k-1"}, validate_every=0)
    steps = iter(range(1, 7))
    with pytest.raises(StoppedError):
        train(ring(), tmp_path, config, should_stop=lambda: next(steps) == 6)
    assert train(ring(), tmp_path, config, resume=True).about()["finished"]


def test_a_checkpoint_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the disk is full: no traceback of the library that writes."""

    def full(file: int) -> None:
        raise OSError(28, "No space left on device")

    def block(report: Any) -> None:
        monkeypatch.setattr("os.fsync", full)

    with pytest.raises(RunError, match=r"checkpoint\.safetensors: cannot be written: No space"):
        train(ring(), tmp_path, quick(log_every=1, checkpoint_seconds=0), watch=block)
    assert RunFolder(tmp_path).graph().digest == ring().digest
