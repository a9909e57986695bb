"""A run whose files change is taken up anew; what cannot be opened leaves the old one in place."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from starlette.testclient import TestClient

import golde
from golde.inference import Run
from golde.runs import RunFolder
from golde.service import answers
from golde.service.app import create_app
from golde.service.limits import Limits
from golde.service.shelf import Shelf


def opened(path: Path) -> Run:
    return golde.load_run(path, device="cpu")


def change(folder: Path, factor: float) -> None:
    """Another model in place of the one that is there."""
    run = RunFolder(folder)
    model = run.load_model()
    with torch.no_grad():
        model.entity.mul_(factor)
    run.save_model(model)


def score(shelf: Shelf) -> float:
    return shelf["ring"].run.score([("e1", "next", "e2")])[0]


def test_a_new_model_is_taken_up_and_a_broken_one_is_not(copied: Path) -> None:
    shelf = Shelf({"ring": copied}, opened)
    first, before = score(shelf), shelf["ring"]
    assert shelf.refresh() == []

    change(copied, 2.0)
    assert shelf.refresh() == [("ring", True)]
    second = score(shelf)
    assert second != first
    assert (before.revision, shelf["ring"].revision) == (1, 2)
    assert before.run.score([("e1", "next", "e2")])[0] == first  # who still has it goes on
    assert shelf["ring"].run.calibration is None  # it was fitted to another model

    whole = (copied / "model.safetensors").read_bytes()
    (copied / "model.safetensors").write_bytes(whole[:100])
    assert shelf.refresh() == [("ring", False)]
    assert score(shelf) == second
    assert "model.safetensors" in (shelf.trouble("ring") or "")
    assert str(copied.parent) not in (shelf.trouble("ring") or "")  # no business of who asks
    assert shelf.refresh() == []  # not tried again until it changes

    (copied / "model.safetensors").write_bytes(whole)
    change(copied, torch.nan)
    assert shelf.refresh() == [("ring", False)]
    assert "diverged" in (shelf.trouble("ring") or "")

    (copied / "model.safetensors").write_bytes(whole)
    assert shelf.refresh() == [("ring", True)]
    assert shelf.trouble("ring") is None
    assert score(shelf) == second


def test_new_figures_and_a_folder_that_is_gone(copied: Path) -> None:
    shelf = Shelf({"ring": copied}, opened)
    key = "test+self-filter"
    assert key not in shelf.figures("ring")
    opened(copied).evaluate(self_filter=True, baselines=False, bootstrap=0)
    assert shelf.refresh() == []  # the model is the same
    assert key in shelf.figures("ring")
    shutil.rmtree(copied)
    assert shelf.refresh() == [("ring", False)]
    assert score(shelf)


@pytest.mark.parametrize("content", ["9" * 5000, "[" * 100_000, "\udcff", '{"test": 1}'])
def test_figures_that_cannot_be_read_keep_no_model_from_being_taken_up(
    copied: Path, content: str
) -> None:
    shelf = Shelf({"ring": copied}, opened)
    text = content if content.startswith("{") else f'{{"test": {content}}}'
    (copied / "metrics.json").write_text(text, "utf-8", "surrogateescape")
    change(copied, 2.0)
    assert shelf.refresh() == [("ring", True)]
    assert shelf.figures("ring") == {}


def test_a_calibration_that_cannot_be_read_is_told_without_its_place(copied: Path) -> None:
    shelf = Shelf({"ring": copied}, opened)
    (copied / "calibration.json").write_text("{")
    assert shelf.refresh() == [("ring", True)]
    (told,) = answers.runs(shelf, "1", folders=False).runs
    assert not told.calibrated
    assert told.notes[0].startswith("no probabilities: ring/calibration.json: cannot be read")


def test_the_watch_goes_on_whatever_it_meets(
    copied: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Shelf) -> list[tuple[str, bool]]:
        monkeypatch.undo()
        raise OSError("the disk is gone for a moment")

    monkeypatch.setattr(Shelf, "refresh", fail)
    app = create_app({"ring": copied}, opened, limits=Limits(poll_seconds=0.02))
    with TestClient(app, base_url="http://localhost") as client:
        change(copied, 2.0)
        for _ in range(500):
            revision = client.get("/health").json()["runs"][0]["revision"]
            if revision == 2:
                break
        assert revision == 2
    assert "the disk is gone" in caplog.text


def test_the_service_tells_of_it(copied: Path) -> None:
    app = create_app({"ring": copied}, opened, limits=Limits(poll_seconds=0.02))

    def state(client: TestClient, wanted: str, revision: int) -> dict[str, Any]:
        for _ in range(500):
            found: dict[str, Any] = client.get("/health").json()
            if found["status"] == wanted and found["runs"][0]["revision"] == revision:
                return found
        raise AssertionError(f"it stays {found}")

    query = {"head": "e1", "relation": "next", "top": 3}
    with TestClient(app, base_url="http://localhost") as client:

        def answers() -> list[Any]:
            answer = client.post("/api/v1/runs/ring/predict", json=query)
            return [(one["answer"], one["score"]) for one in answer.json()["answers"]]

        old = answers()
        whole = (copied / "model.safetensors").read_bytes()
        (copied / "model.safetensors").write_bytes(b"no tensors")
        assert state(client, "degraded", 1)["runs"][0]["trouble"]
        assert answers() == old
        text = client.get("/metrics").text
        assert 'golde_reloads_total{outcome="failed",run="ring"} 1.0' in text
        assert "golde_runs_in_trouble 1.0" in text
        (copied / "model.safetensors").write_bytes(whole)
        state(client, "ok", 2)
        change(copied, 1.5)
        state(client, "ok", 3)
        assert answers() != old
