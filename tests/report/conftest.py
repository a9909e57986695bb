"""A ring on disk, a configuration that names it, and jobs done in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from golde.config import Config
from golde.report.reproduce import Place, reproduce
from golde.report.results import Record
from golde.report.studies import Job
from tiny import quick, ring

Reproduce = Callable[..., Record]


@pytest.fixture
def places(tmp_path: Path) -> Callable[..., Place]:
    """Where a job of the ring stands in an empty folder."""

    def place(
        name: str = "small",
        *,
        seed: int = 0,
        study: str | None = None,
        split: str = "test",
        config: Config | None = None,
        **options: Any,
    ) -> Place:
        seeded = (config or quick()).with_values(training={"seed": seed})
        job = Job(name, study, "ring", seeded, split, "small.toml")
        folders = {"results": tmp_path / "results", "runs": tmp_path / "runs"}
        return Place(job, ring(), **folders, **options)

    return place


@pytest.fixture
def done(places: Callable[..., Place]) -> Reproduce:
    """Reproduce a job of the ring; its record."""
    return lambda *words, **options: reproduce(places(*words, **options), device="cpu")


@pytest.fixture
def ring_folder(tmp_path: Path) -> Path:
    """The ring as a folder of files."""
    graph, folder = ring(), tmp_path / "ring"
    folder.mkdir()
    for split in ("train", "valid", "test"):
        rows = [
            f"{graph.entities[h]}\t{graph.relations[r]}\t{graph.entities[t]}\n"
            for h, r, t in graph.split(split).tolist()
        ]
        (folder / f"{split}.tsv").write_text("".join(rows), "utf-8")
    return folder


@pytest.fixture
def config_file(ring_folder: Path, tmp_path: Path) -> Path:
    """Settings for the ring, naming it."""
    path = tmp_path / "small.toml"
    path.write_text(f"graph = {str(ring_folder)!r}\n" + quick().to_toml(), "utf-8")
    return path
