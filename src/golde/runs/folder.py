"""The run folder: everything needed to open a trained model again, readable without GoldE.

config.toml          the resolved configuration
run.json             format version, data digest and counts, versions, hardware, how training ended
vocabulary.json      names of entities and relations, in id order
graph.safetensors    the facts of each split, as ids
model.safetensors    the parameters chosen on validation
evidence.safetensors weights of facts in a row, where they count beside the model: see ``golde.evidence``
ranks.safetensors    the ranks behind figures of metrics.json, to compare runs fact by fact
metrics.json         figures with their protocol, one entry per evaluated split or sample of it
calibration.json     maps from scores to probabilities
                     (these three with the digest of the model and the evidence that they belong to)
log.jsonl            one line per logged or validated step
MODEL_CARD.md        what the model is, for people: see ``golde.runs.card``
checkpoint.safetensors   parameters, optimiser state and progress, while training is under way
checkpoint.json      the same of several processes, whose tensors are in checkpoint-STEP/
run.lock             locked by the one process that trains here; removed when it ends
figures.lock         locked for the moment in which figures, ranks or the card change
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from golde.config import Config
from golde.data.graph import SPLITS, KnowledgeGraph
from golde.data.vocabulary import Vocabulary
from golde.errors import ConfigError, RetiredSettingError, RunError
from golde.evidence import Evidence
from golde.models import Model, build, place
from golde.runs.atomic import (
    RESTORE,
    clear_leftovers,
    read_json,
    read_tensors,
    rooms,
    write_json,
    write_tensors,
    write_text,
)
from golde.runs.contents import (
    FORMAT_VERSION,
    are_figures,
    checked_about,
    checked_facts,
    checked_vocabulary,
)
from golde.runs.lock import locked_in_folder, waited_for
from golde.runs.stored_evidence import StoredEvidence

_EVALUATE_AGAIN = "check its rights, or remove it and evaluate again"
_FEW_WORDS = 200
_CALIBRATE_AGAIN = "calibrate the run again"
_LOCK, _FIGURES_LOCK = "run.lock", "figures.lock"
_MODEL, _EVIDENCE = "model.safetensors", "evidence.safetensors"
_WRITTEN_FIRST = (  # in order
    "vocabulary.json",
    "graph.safetensors",
    "config.toml",
    _MODEL,  # only of a run that begins with one
    "run.json",
)
_FILES = (
    *_WRITTEN_FIRST,
    _EVIDENCE,
    "ranks.safetensors",
    "metrics.json",
    "calibration.json",
    "log.jsonl",
    "MODEL_CARD.md",
    "checkpoint.safetensors",
    "checkpoint.json",
    _LOCK,
    _FIGURES_LOCK,
)


class RunFolder:
    """Paths and contents of one run."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.checkpoint = self.path / "checkpoint.safetensors"
        self.shared_checkpoint = self.path / "checkpoint.json"
        self.log = self.path / "log.jsonl"
        self.calibration_file = self.path / "calibration.json"
        self.evidence_file = self.path / _EVIDENCE

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep every other training out of the folder, which is made if it is not there yet.

        Folders that were made and are empty at the end are removed again.
        """
        with ExitStack() as stack:
            try:
                mine = stack.enter_context(locked_in_folder(self.path / _LOCK))
            except OSError as error:
                raise RunError(
                    f"{self.path}: cannot be made a run folder: {error.strerror or error}; "
                    "choose another place for it"
                ) from None
            if not mine:
                raise RunError(
                    f"{self.path}: another process is training there; "
                    "wait for it, stop it, or choose another folder"
                )
            yield

    def create(
        self,
        config: Config,
        graph: KnowledgeGraph,
        about: dict[str, Any],
        model: Model | None = None,
    ) -> None:
        """Write what is known at the start, of a run made from another also the model.

        ``run.json`` comes last: with it the folder is a run.
        """
        self._write_graph(graph)
        sizes = {
            "entities": len(graph.entities),
            "relations": len(graph.relations),
            **{split: len(graph.split(split)) for split in SPLITS},
        }
        known = {"graph": graph.name, "digest": graph.digest, **sizes, **about}
        self.create_around_graph(config, known, model)

    def create_around_graph(
        self, config: Config, about: dict[str, Any], model: Model | None = None
    ) -> None:
        """The same where the graph is written already."""
        write_text(self.path / "config.toml", config.to_toml())
        if model is not None:
            self.save_model(model)
        write_json(self.path / "run.json", {"format": FORMAT_VERSION, **about})

    def occupied(self) -> bool:
        """Whether there is anything here but what a start cut short leaves behind."""
        names = {path.name for path in self.path.iterdir()} if self.path.is_dir() else set()
        names.discard(_LOCK)
        ours = [{name, *(room.name for room in rooms(self.path / name))} for name in _WRITTEN_FIRST]
        started = not names.isdisjoint(ours[0])  # a lone config.toml is somebody's
        return bool(names) and not (started and names <= set().union(*ours))

    def remove_leftovers(self) -> None:
        """Remove what killed processes left half written of the run's files."""
        for name in _FILES:
            clear_leftovers(self.path / name)

    def exists(self) -> bool:
        """Whether a run was started here."""
        return (self.path / "run.json").is_file()

    def owns(self, path: str | Path) -> bool:
        """Whether a path is that of a file the run consists of."""
        place = Path(path).resolve()
        return place.parent == self.path.resolve() and place.name in _FILES

    def about(self) -> dict[str, Any]:
        """The contents of ``run.json``, after checking that this version can read the run."""
        if not self.exists():
            fix = f"train one with 'golde train GRAPH --out {self.path}'"
            if self.path.is_file():
                fix = "name the folder of a run"
            elif self.occupied():
                fix = "restore it from a copy, or name the folder of a run"
            raise RunError(f"{self.path}: no run here (run.json is missing); {fix}")
        path = self.path / "run.json"
        return checked_about(path, read_json(path))

    def update_about(self, **changes: Any) -> None:
        """Change entries of ``run.json``."""
        write_json(self.path / "run.json", {**self.about(), **changes})

    def config(self) -> Config:
        """The resolved configuration of the run."""
        try:
            return Config.load(self.path / "config.toml")
        except RetiredSettingError as error:  # nothing is damaged
            raise RunError(str(error)) from None
        except ConfigError as error:  # its message names the file
            raise RunError(f"{error}; {RESTORE}") from None

    def vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        """The names of entities and of relations."""
        about, path = self.about(), self.path / "vocabulary.json"
        content = read_json(path)
        return (
            checked_vocabulary(path, content.get("entities"), "entity", about["entities"]),
            checked_vocabulary(path, content.get("relations"), "relation", about["relations"]),
        )

    def graph(self) -> KnowledgeGraph:
        """The graph the run was trained on."""
        about = self.about()
        entities, relations = self.vocabularies()
        path = self.path / "graph.safetensors"
        tensors, _ = read_tensors(path)
        limits = torch.tensor([len(entities), len(relations), len(entities)])
        train, valid, test = (
            checked_facts(path, split, tensors.get(split), limits) for split in SPLITS
        )
        return KnowledgeGraph(entities, relations, train, valid, test, name=about["graph"])

    def save_model(self, model: Model) -> None:
        """Write the parameters of the model."""
        write_tensors(self.path / _MODEL, model.state_dict())

    def load_model(self, device: torch.device | str = "cpu", *, evidence: bool = True) -> Model:
        """The trained model, on any device whatever it was trained on.

        With its ``evidence``, if there is any, unless told otherwise. An entity table that was trained in
        host memory is left there.
        """
        about, config = self.about(), self.config()
        path = self.path / _MODEL
        if not about["finished"]:
            raise RunError(
                f"{self.path}: training has not finished; "
                f"go on with 'golde train --resume --out {self.path}'"
            )
        tensors, _ = read_tensors(path)
        try:
            model = build(config.model, about["entities"], about["relations"])
            precision = getattr(torch, config.training.precision)
            model = model.to(precision)
            model.load_state_dict(tensors)
        except (ConfigError, RuntimeError) as error:
            words = " ".join(str(error).split())
            if len(words) > _FEW_WORDS:
                words = words[:_FEW_WORDS] + " …"  # torch names every parameter
            raise RunError(f"{path}: does not fit config.toml: {words}; {RESTORE}") from None
        host = config.training.entity_table == "host"
        model = place(model, torch.device(device), precision, host=host).eval()
        if evidence:
            model.evidence = self.evidence(model.device)
        return model

    def save_evidence(self, evidence: Evidence, gathered: dict[str, Any]) -> None:
        """Store evidence for the model that is here now, and how it was gathered."""
        model = self._file_digest(_MODEL)
        StoredEvidence(self.evidence_file, evidence.tensors(), gathered).write(model=model)

    def evidence(self, device: torch.device | str = "cpu") -> Evidence | None:
        """The stored evidence, if there is any that counts; that of another model is an error."""
        if (found := self._stored_evidence()) is None:
            return None
        evidence = found.over(self.graph(), device)
        return evidence if evidence.counts else None

    def gathered(self) -> dict[str, Any] | None:
        """How the stored evidence was gathered: see ``golde.inference.gather``."""
        found = self._stored_evidence()
        return None if found is None else found.gathered

    def _stored_evidence(self) -> StoredEvidence | None:
        if not self.evidence_file.exists():
            return None
        return StoredEvidence.read(self.evidence_file, model=self._file_digest(_MODEL))

    def drop_checkpoint(self) -> None:
        """Remove the checkpoint, also what is left of one that was being written."""
        self.checkpoint.unlink(missing_ok=True)
        clear_leftovers(self.checkpoint)

    def append_log(self, **entry: Any) -> None:
        """Add one line to the log."""
        try:
            with self.log.open("a", encoding="utf-8", newline="\n") as file:
                file.write(json.dumps(entry) + "\n")
        except OSError as error:
            raise RunError(f"{self.log}: cannot be written: {error}") from None

    @contextmanager
    def changing_figures(self) -> Iterator[None]:
        """Wait for one's turn to change what was found about the run: its figures, ranks and card."""
        with ExitStack() as stack:
            try:
                mine = stack.enter_context(waited_for(self.path / _FIGURES_LOCK))
            except OSError as error:
                raise RunError(
                    f"{self.path}: cannot be written: {error.strerror or error}; check its rights"
                ) from None
            if not mine:
                raise RunError(
                    f"{self.path}: another process keeps its figures locked; end it and try again"
                )
            yield

    def save_ranks(self, key: str, ranks: Tensor) -> None:
        """Keep the ranks behind the figures of a key: rows better, ties and candidates, (3, 2n)."""
        path = self.path / "ranks.safetensors"
        with self.changing_figures():
            kept = {**self._kept_ranks(), key: ranks.to(torch.int32)}
            write_tensors(path, kept, {"model": self._model_digest()})

    def ranks(self, key: str) -> Tensor | None:
        """The ranks kept under a key, if there are any that can be read and are those of the model."""
        ranks = self._kept_ranks().get(key)
        return None if ranks is None else ranks.long()

    def _kept_ranks(self) -> dict[str, Tensor]:
        try:
            ranks, about = read_tensors(self.path / "ranks.safetensors")
        except RunError:  # missing or damaged: they can be found again
            return {}
        return ranks if about.get("model") == self._model_digest() else {}

    def save_metrics(self, key: str, figures: dict[str, Any]) -> None:
        """Store figures of the model that is here now under the key of their protocol, beside the others."""
        path = self.path / "metrics.json"
        with self.changing_figures():
            figures = {**figures, "model": self._model_digest()}
            write_json(path, {**self.metrics(), key: figures})

    def metrics(self) -> dict[str, Any]:
        """All stored figures of the model, by the key of their protocol.

        Those of other parameters than the run has now are left out; where it is not said, they are taken
        for the model's.
        """
        found = self.all_metrics()
        bound = any("model" in figures for figures in found.values())
        model = self._model_digest() if bound else None
        return {key: one for key, one in found.items() if one.get("model", model) == model}

    def all_metrics(self) -> dict[str, Any]:
        """Those of other parameters or evidence included, as far as nothing was stored since."""
        path = self.path / "metrics.json"
        found = read_json(path, fix=_EVALUATE_AGAIN) if path.is_file() else {}
        for key, figures in found.items():
            if not are_figures(figures):
                raise RunError(f"{path}: {key!r} holds no figures; {_EVALUATE_AGAIN}")
        return found

    def save_calibration(self, content: dict[str, Any]) -> None:
        """Store a calibration of the model that is here now."""
        write_json(self.calibration_file, {"model": self._model_digest(), **content})

    def calibration(self) -> dict[str, Any] | None:
        """The stored calibration, if there is one; one of another model is an error."""
        if not self.calibration_file.exists():
            return None
        content = read_json(self.calibration_file, fix=f"remove it and {_CALIBRATE_AGAIN}")
        if content.pop("model", None) != self._model_digest():
            raise RunError(
                f"{self.calibration_file}: was fitted to other parameters, or other evidence, than the run "
                f"has now; {_CALIBRATE_AGAIN}"
            )
        return content

    def _model_digest(self) -> str:
        """SHA-256 of the file of parameters, and of that of evidence where there is one."""
        found = self._file_digest(_MODEL)
        return found + self._file_digest(_EVIDENCE) if self.evidence_file.exists() else found

    def _file_digest(self, name: str) -> str:
        path = self.path / name
        try:
            file = path.stat()
            return _digest(path, (file.st_ino, file.st_mtime_ns, file.st_size))
        except OSError as error:
            why = error.strerror or error
            raise RunError(f"{path}: cannot be read: {why}; {RESTORE}") from None

    def _write_graph(self, graph: KnowledgeGraph) -> None:
        write_json(
            self.path / "vocabulary.json",
            {"entities": list(graph.entities.names), "relations": list(graph.relations.names)},
        )
        write_tensors(
            self.path / "graph.safetensors",
            {split: graph.split(split).to(torch.int32) for split in SPLITS},
        )


@lru_cache(maxsize=32)
def _digest(path: Path, state: tuple[int, int, int]) -> str:
    """SHA-256 of a file in a certain state: large ones take seconds, and are asked for several times."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def refuse_part_of_a_run(path: Path) -> None:
    """An error if ``path`` is a file that a run consists of, which nothing else may replace."""
    folder = RunFolder(path.resolve().parent)
    if folder.exists() and folder.owns(path):
        raise RunError(f"{path}: is a file of the run {folder.path} itself; choose another name")
