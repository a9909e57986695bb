"""Small trained runs."""

from __future__ import annotations

import pytest
import torch
from tiny_graph import graph

from golde.api import train
from golde.config import Config
from golde.inference import Run

SETTINGS = {"steps": 30, "batch_size": 32, "log_every": 30, "validate_every": 30}


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    config = Config().with_values(model={"signature": "P3x2 Q4x2"}, training=SETTINGS)
    return train(graph(), tmp_path_factory.mktemp("runs") / "tiny", config, device="cpu")


@pytest.fixture(scope="session")
def paper_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The paper's model: one score for both directions; with biases, which then have sides."""
    config = Config().with_values(
        model={"signature": "E2x2 Q3x2", "reciprocal": False, "bias": True, "norm": 2},
        training={**SETTINGS, "precision": "float64"},
    )
    return train(graph(), tmp_path_factory.mktemp("runs") / "paper", config, device="cpu")


@pytest.fixture
def tied(run: Run) -> Run:
    """The same run with a model that finds every fact equally plausible."""
    return altered(run, 0.0)


@pytest.fixture
def diverged(run: Run) -> Run:
    """The same run with a model that is no number anywhere."""
    return altered(run, torch.nan)


def altered(run: Run, value: float) -> Run:
    other = Run(run.folder)
    with torch.no_grad():
        for parameter in other.model.parameters():
            parameter.fill_(value)
        for name, parameter in other.model.named_parameters():
            if value == 0.0 and "rotation" in name:
                parameter.fill_(1.0)  # a reflection needs a direction
    return other


@pytest.fixture(params=[7, 1 << 21])
def at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Blocks of two queries and three candidates, and everything at once."""
    size: int = request.param
    monkeypatch.setattr("golde.inference.search.SCORES_AT_ONCE", size)
    monkeypatch.setattr("golde.inference.search._FEWEST_ROWS", 2)
    return size
