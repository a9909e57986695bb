"""The library in two calls: train a run, open a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from golde.config import Config
from golde.data.graph import KnowledgeGraph, Named
from golde.data.loading import load_graph
from golde.inference import Run
from golde.inference.run import add_evidence
from golde.runs import RunFolder
from golde.training import Report
from golde.training import train as train_folder
from golde.training.extend import extend as extend_folder
from golde.training.loop import pick_device


def train(
    graph: KnowledgeGraph | str | Path,
    out: str | Path,
    config: Config | str | Path | None = None,
    *,
    device: str = "auto",
    resume: bool = False,
    watch: Callable[[Report], None] = lambda report: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Run:
    """Train on a graph, or on whatever ``load_graph`` reads, into the folder ``out``; then open it.

    ``config`` is a ``Config`` or the path of a TOML file. ``watch`` is told how training goes; when
    ``should_stop`` turns true a checkpoint is written and ``StoppedError`` raised, and
    ``resume=True`` goes on from there.
    """
    if not isinstance(graph, KnowledgeGraph):
        graph = load_graph(graph)
    if config is not None and not isinstance(config, Config):
        config = Config.load(config)
    folder = train_folder(
        graph, out, config, device=device, resume=resume, watch=watch, should_stop=should_stop
    )
    add_evidence(folder, pick_device(device))
    return Run(folder, pick_device(device))


def extend(
    run: str | Path,
    facts: str | Path | Named,
    out: str | Path,
    *,
    steps: int | None = None,
    columns: str | None = None,
    device: str = "auto",
) -> Run:
    """Add new entities and facts to a run, into the new folder ``out``; then open that.

    ``facts`` is a file as for training, or (head, relation, tail) names. All that was trained stays as it
    is, and so does ``run``: see ``golde.training.extend``.
    """
    folder = extend_folder(run, facts, out, steps=steps, columns=columns, device=device)
    return Run(folder, pick_device(device))


def load_run(path: str | Path, device: str = "auto") -> Run:
    """Open a finished run on any device, whatever it was trained on."""
    return Run(RunFolder(path), pick_device(device))
