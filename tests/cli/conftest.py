"""The command line, called in this process, and one run trained through it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from golde.cli.main import app

Golde = Callable[..., Any]


def call(*arguments: object) -> Any:
    """Run a command; the result has ``exit_code``, ``stdout`` and ``stderr``."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(name="golde")
def fixture_golde() -> Golde:
    return call


@pytest.fixture(scope="session")
def small() -> tuple[str, ...]:
    """Settings that learn the ring in seconds."""
    return ("--set", "model.signature=P4x2 Q5x2", "--set", "training.steps=600")


@pytest.fixture(scope="session")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ring of 24 with both directions, opposites and two kinds, as one file of facts."""
    rows = []
    for i in range(24):
        after, across = f"e{(i + 1) % 24}", f"e{(i + 12) % 24}"
        rows += [(f"e{i}", "next", after), (after, "previous", f"e{i}")]
        rows += [(f"e{i}", "opposite", across), (f"e{i}", "is", ("even", "odd")[i % 2])]
    path = tmp_path_factory.mktemp("graph") / "ring.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def run(facts: Path, small: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learned the ring."""
    folder = tmp_path_factory.mktemp("runs") / "ring"
    trained = call("train", facts, "--out", folder, *small)
    assert trained.exit_code == 0, trained.stderr
    assert f"golde evaluate {folder}" in trained.stdout
    return folder
