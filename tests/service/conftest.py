"""A service of two small runs, asked in this process."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import golde
from golde.data.graph import KnowledgeGraph
from golde.inference import Run
from golde.service.app import create_app
from tiny import quick

SIZE = 40


def ring() -> KnowledgeGraph:
    """Places in a ring with a next and a back, and enough of both held out to calibrate on."""
    steps = [(f"e{i}", "next", f"e{(i + 1) % SIZE}") for i in range(SIZE)]
    backs = [(tail, "back", head) for head, _, tail in steps]
    return KnowledgeGraph.from_triples(
        [*steps[10:], *backs[: SIZE - 10]],
        valid=[*steps[:6], *backs[SIZE - 10 : SIZE - 4]],
        test=[*steps[6:10], *backs[SIZE - 4 :]],
        name="ring",
    )


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One run that is calibrated and ranked, and a baseline that is ranked."""
    place = tmp_path_factory.mktemp("runs")
    ours = golde.train(ring(), place / "ring", quick(), device="cpu")
    ours.calibrate()
    ours.evaluate(baselines=False)
    baseline = quick({"kind": "transe", "signature": None, "numbers": 8})
    golde.train(ring(), place / "transe", baseline, device="cpu").evaluate(baselines=False)
    return {"ring": place / "ring", "transe": place / "transe"}


@pytest.fixture(scope="session")
def run(folders: dict[str, Path]) -> Run:
    """The first, opened apart from the service."""
    return golde.load_run(folders["ring"], device="cpu")


@pytest.fixture(scope="session")
def client(folders: dict[str, Path]) -> Iterator[TestClient]:
    app = create_app(folders, lambda path: golde.load_run(path, device="cpu"))
    with TestClient(app, base_url="http://localhost") as client:
        yield client


@pytest.fixture
def copied(folders: dict[str, Path], tmp_path: Path) -> Path:
    """A run that may be changed."""
    shutil.copytree(folders["ring"], tmp_path / "ring")
    return tmp_path / "ring"
