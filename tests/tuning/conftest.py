"""A small graph, and trainings that take no time: what they reach is a function of the settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from golde.config import Config
from golde.data import synthetic
from golde.data.graph import KnowledgeGraph
from golde.training.loop import Report, StoppedError
from golde.tuning import Study, search_space
from golde.tuning import worker as module

pytest.importorskip("optuna")

STEPS = 4
"""Validations of a training that is made up."""

FIXED = {
    "model": {"signature": "P4x2", "margin": 6.0, "bias": False},
    "training": {
        "regulariser": "none",
        "steps": STEPS,
        "validate_every": 1,
        "negatives": 32,
    },
}
"""With these given, learning rate and temperature are searched."""

Quality = Callable[[Config], float]
MakeStudy = Callable[..., Study]


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Trials that take no time would wait for nothing else."""
    from sqlalchemy import Engine, event

    def hurry(connection: Any, record: Any) -> None:
        connection.execute("PRAGMA synchronous=OFF")

    event.listen(Engine, "connect", hurry)
    yield
    event.remove(Engine, "connect", hurry)


@pytest.fixture(scope="session")
def graph() -> KnowledgeGraph:
    return synthetic.cycles(copies=5)


@pytest.fixture
def study(graph: KnowledgeGraph, tmp_path: Path) -> MakeStudy:
    """Opens the study of this test, again if it is there."""

    def make(
        settings: dict[str, Any] | None = None, space: Any = "default", **options: Any
    ) -> Study:
        base = Config.from_dict(FIXED if settings is None else settings)
        place = str(options.pop("place", tmp_path / "study.db"))
        on = options.pop("graph", graph)
        numbers = options.pop("numbers", None)
        return Study(place, search_space(space, base, on, numbers), on, **options)

    return make


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> Callable[[Quality], list[Config]]:
    """Have trainings reach what a function of their settings says; returns those that were trained."""

    def plant(quality: Quality) -> list[Config]:
        done: list[Config] = []

        def train(graph: Any, run: Path, config: Config, **options: Any) -> None:
            done.append(config)
            for step in range(1, STEPS + 1):
                if options["should_stop"]():
                    raise StoppedError
                mrr = quality(config) * (1 - 0.5**step)
                options["watch"](Report(step, STEPS, 0.0, 0.0, 0.0, mrr, True))

        monkeypatch.setattr(module, "train", train)
        return done

    return plant
