"""Begin a run in its folder, or check that what is there is the run to go on with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from golde.config import Config
from golde.data.graph import KnowledgeGraph
from golde.errors import ConfigError, RunError
from golde.runs import RunFolder
from golde.runs.atomic import RESTORE
from golde.runs.commit import loaded_commit


def refuse_other_checkpoint(path: Path, started: str) -> None:
    """An error if a run was begun by one process and is to go on in several, or the other way round."""
    if path.is_file():
        raise RunError(
            f"{path}: the run was started {started}, and draws its batches in another order; resume it "
            f"{started}, or start a new run folder"
        )


def open_folder(
    folder: RunFolder, graph: KnowledgeGraph, config: Config, here: dict[str, Any], resume: bool
) -> KnowledgeGraph:
    """Create the run folder, or check that what is there is the run to go on with.

    Returns the graph as the run numbers it: the same facts may come in another order, with other ids.
    """
    if not goes_on(folder, graph.digest, config, resume):
        folder.create(config, graph, at_start(here))
        return graph
    graph = folder.graph()
    refuse_other_graph(folder, graph.digest)
    note_resumed(folder, here)
    return graph


def at_start(here: dict[str, Any]) -> dict[str, Any]:
    """What ``run.json`` says of a run that begins."""
    return {"environment": here, "commit": loaded_commit(), "finished": False}


def goes_on(folder: RunFolder, digest: str, config: Config, resume: bool) -> bool:
    """Whether there is a run to go on with; an error if it is another, or something else."""
    if not folder.exists():
        if folder.occupied():
            raise RunError(
                f"{folder.path}: the folder is not empty and holds no run; choose an empty or new one"
            )
        folder.remove_leftovers()
        return False
    if not resume:
        raise RunError(
            f"{folder.path}: holds a run already; add --resume to go on with it, "
            "or choose another --out"
        )
    stored = folder.config()
    if stored != config:
        raise ConfigError(
            f"{folder.path}: was started with other settings ({stored.difference(config)}); "
            "resume without giving any, or choose another --out"
        )
    if folder.about()["digest"] != digest:
        raise RunError(
            f"{folder.path}: was started on other data; resume with the same graph "
            "or choose another --out"
        )
    return True


def refuse_other_graph(folder: RunFolder, digest: str) -> None:
    """An error if the graph in the folder, whose digest is given, is not that of the run."""
    if folder.about()["digest"] != digest:
        raise RunError(
            f"{folder.path / 'graph.safetensors'}: is not the graph of this run; {RESTORE}"
        )


def note_resumed(folder: RunFolder, here: dict[str, Any]) -> None:
    """Keep where a run goes on: the end depends on it too."""
    folder.remove_leftovers()
    about = folder.about()
    before = about.get("resumed_in", [])
    if not about.get("finished") and here not in [about.get("environment"), *before]:
        folder.update_about(resumed_in=[*before, here])
