"""The run folder: everything needed to open a trained model again, readable without GoldE.

config.toml          the resolved configuration
run.json             format version, data digest and counts, versions, hardware, how training ended
vocabulary.json      names of entities and relations, in id order
graph.safetensors    the facts of each split, as ids
model.safetensors    the parameters chosen on validation
metrics.json         figures with their protocol, one entry per evaluated split
log.jsonl            one line per logged step and validation
checkpoint.safetensors   parameters, optimiser state and progress, while training is under way
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from golde.config import Config
from golde.data.graph import SPLITS, KnowledgeGraph
from golde.data.vocabulary import Vocabulary
from golde.errors import RunError
from golde.models import GoldE
from golde.runs.atomic import read_json, read_tensors, write_json, write_tensors, write_text

FORMAT_VERSION = 1


class RunFolder:
    """Paths and contents of one run."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.checkpoint = self.path / "checkpoint.safetensors"
        self.log = self.path / "log.jsonl"

    def create(self, config: Config, graph: KnowledgeGraph, about: dict[str, Any]) -> None:
        """Write what is known before training. ``run.json`` comes last: with it the folder is a run."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_text(self.path / "config.toml", config.to_toml())
        self._write_graph(graph)
        write_json(
            self.path / "run.json",
            {
                "format": FORMAT_VERSION,
                "graph": graph.name,
                "digest": graph.digest,
                "entities": len(graph.entities),
                "relations": len(graph.relations),
                **{split: len(graph.split(split)) for split in SPLITS},
                **about,
            },
        )

    def exists(self) -> bool:
        """Whether a run was started here."""
        return (self.path / "run.json").is_file()

    def about(self) -> dict[str, Any]:
        """The contents of ``run.json``, after checking that this version can read the run."""
        if not self.exists():
            raise RunError(
                f"{self.path}: no run here (run.json is missing); train one with "
                f"'golde train GRAPH --out {self.path}'"
            )
        about = read_json(self.path / "run.json")
        if about.get("format") != FORMAT_VERSION:
            raise RunError(
                f"{self.path}: written in run format {about.get('format')!r}, this version reads "
                f"{FORMAT_VERSION}; use the version of GoldE that wrote it ({about.get('golde')})"
            )
        return about

    def update_about(self, **changes: Any) -> None:
        """Change entries of ``run.json``."""
        write_json(self.path / "run.json", {**self.about(), **changes})

    def config(self) -> Config:
        """The resolved configuration of the run."""
        return Config.load(self.path / "config.toml")

    def graph(self) -> KnowledgeGraph:
        """The graph the run was trained on."""
        about = self.about()
        names = read_json(self.path / "vocabulary.json")
        triples, _ = read_tensors(self.path / "graph.safetensors")
        return KnowledgeGraph(
            Vocabulary(names["entities"], "entity"),
            Vocabulary(names["relations"], "relation"),
            train=triples["train"].long(),
            valid=triples["valid"].long(),
            test=triples["test"].long(),
            name=about["graph"],
        )

    def save_model(self, model: GoldE) -> None:
        """Write the parameters of the model."""
        write_tensors(self.path / "model.safetensors", model.state_dict())

    def load_model(self, device: torch.device | str = "cpu") -> GoldE:
        """The trained model, on any device whatever it was trained on."""
        about, config = self.about(), self.config()
        path = self.path / "model.safetensors"
        if not path.is_file():
            raise RunError(
                f"{self.path}: training has not finished (model.safetensors is missing); "
                "go on with 'golde train … --resume'"
            )
        tensors, _ = read_tensors(path)
        model = GoldE(config.model, about["entities"], about["relations"])
        model = model.to(getattr(torch, config.training.precision))
        try:
            model.load_state_dict(tensors)
        except RuntimeError as error:
            raise RunError(f"{path}: does not fit config.toml: {error}") from None
        return model.to(device).eval()

    def append_log(self, **entry: Any) -> None:
        """Add one line to the log."""
        with self.log.open("a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(entry) + "\n")

    def save_metrics(self, split: str, figures: dict[str, Any]) -> None:
        """Store the figures of one split under their own key, beside those already there."""
        path = self.path / "metrics.json"
        known = read_json(path) if path.is_file() else {}
        write_json(path, {**known, split: figures})

    def metrics(self) -> dict[str, Any]:
        """All stored figures, by split."""
        path = self.path / "metrics.json"
        return read_json(path) if path.is_file() else {}

    def _write_graph(self, graph: KnowledgeGraph) -> None:
        write_json(
            self.path / "vocabulary.json",
            {"entities": list(graph.entities.names), "relations": list(graph.relations.names)},
        )
        write_tensors(
            self.path / "graph.safetensors",
            {split: graph.split(split).to(torch.int32) for split in SPLITS},
        )
