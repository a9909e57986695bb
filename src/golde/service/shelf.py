"""The runs that are served: opened once, looked up by name, and exchanged when their files change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any

import torch
from torch import Tensor

from golde.analysis.coordinates import groups
from golde.analysis.links import Links
from golde.analysis.relation_geometry import RelationGeometry, relation_geometry
from golde.analysis.rules import JudgedRule, find_rules
from golde.data.graph import SPLITS
from golde.errors import RunError
from golde.inference import Query, Run
from golde.inference.predict import Predictor
from golde.inference.search import SCORES_AT_ONCE
from golde.progress import Progress
from golde.service.names import NameIndex
from golde.service.problems import Problem
from golde.service.roles import Roles

Open = Callable[[Path], Run]
Stamp = tuple[tuple[int, int, int] | None, ...]

_MODEL_FILES = (
    "model.safetensors",
    "evidence.safetensors",
    "run.json",
    "config.toml",
    "vocabulary.json",
    "graph.safetensors",
    "calibration.json",
)
_FIGURES = "metrics.json"


class OpenRun:
    """A run with what is made once for all that is asked of it. It never changes: a new model is a new one.

    What takes long is made when first asked for, by one thread.
    """

    def __init__(self, name: str, run: Run, revision: int) -> None:
        run.model.refuse_divergence()
        self.name, self.run, self.revision = name, run, revision
        self.opened, self.digest = datetime.now(UTC), run.folder.about()["digest"]
        graph = run.graph
        triples = torch.cat([graph.split(split) for split in SPLITS])
        head, _, tail = triples.unbind(1)
        ends = torch.cat([head, tail[tail != head]])  # a fact with itself is one fact
        self.entity_facts = torch.bincount(ends, minlength=len(graph.entities))
        self.relation_facts = torch.bincount(triples[:, 1], minlength=len(graph.relations))
        self.entities = NameIndex(graph.entities.names, self.entity_facts.numpy())
        self.relations = NameIndex(graph.relations.names, self.relation_facts.numpy())
        self.marking = self._predictor("mark")
        self.dropping = self._predictor("drop")
        # What does not depend on a query is as large as the table, and kept once for both.
        self.dropping.scorer, self.dropping.searcher = self.marking.scorer, self.marking.searcher
        self._warm_up()
        self._lock = RLock()
        self._rules: dict[int, list[JudgedRule]] = {}
        self._geometry: list[RelationGeometry] | None = None

    def _predictor(self, known: str) -> Predictor:
        run = self.run
        return Predictor(run.model, run.graph, known=known, calibration=run.calibration)

    @torch.no_grad()
    def _warm_up(self) -> None:
        """Make what is made once, indices and kernels, before somebody waits for it."""
        graph = self.run.graph
        for predictor in (self.marking, self.dropping):
            list(predictor.stream([Query(head=graph.entities[0], relation=graph.relations[0])]))

    @property
    def at_once(self) -> int:
        """Questions to score together: on a CPU more of them take as much longer."""
        if self.run.model.device.type == "cuda":
            return SCORES_AT_ONCE
        return max(1, SCORES_AT_ONCE // max(1, len(self.run.graph.entities)))

    def rules(self, relation: int, progress: Progress) -> list[JudgedRule]:
        """The rules that hold with this relation as their head."""
        with self._lock:
            if relation not in self._rules:
                self._rules[relation] = find_rules(
                    self.run.model, self.links, [relation], progress=progress
                )
            return self._rules[relation]

    def geometry(self, progress: Progress) -> list[RelationGeometry]:
        """That of all relations, the one with the most facts first."""
        with self._lock:
            if self._geometry is None:
                found = relation_geometry(
                    self.run.model, self.run.graph, links=self.links, progress=progress
                )
                self._geometry = sorted(found, key=lambda one: -one.facts)
            return self._geometry

    @property
    def links(self) -> Links:
        """The training facts, indexed."""
        with self._lock:
            return self._links

    @cached_property
    def _links(self) -> Links:
        return Links(self.run.graph)

    @cached_property
    def playing(self) -> Roles:
        """Who plays which roles."""
        return Roles(self.run.graph)

    @cached_property
    def roles(self) -> tuple[Tensor, list[str]]:
        """The relation and side each entity stands on most often."""
        return groups(self.run.graph)


@dataclass
class _Place:
    """A folder, what was last read there, and what is wrong with what is there now."""

    folder: Path
    run: OpenRun
    figures: dict[str, Any]
    stamp: Stamp
    figures_stamp: Stamp
    trouble: str | None = None


class Shelf:
    """Runs by name. A name from a request is looked up here, and never becomes a path."""

    def __init__(self, folders: Mapping[str, Path], open_run: Open) -> None:
        self._open = open_run
        self._places: dict[str, _Place] = {}
        for name, folder in folders.items():
            stamps = _stamp(folder, _MODEL_FILES), _stamp(folder, (_FIGURES,))
            run = OpenRun(name, open_run(folder), 1)
            self._places[name] = _Place(folder, run, _figures(run), *stamps)

    @property
    def names(self) -> list[str]:
        return list(self._places)

    def __getitem__(self, name: str) -> OpenRun:
        return self._place(name).run

    def figures(self, name: str) -> dict[str, Any]:
        """What ``metrics.json`` says of the model, by the key of the protocol."""
        return self._place(name).figures

    def folder(self, name: str) -> Path:
        return self._place(name).folder

    def trouble(self, name: str) -> str | None:
        """Why what is in the folder now is not served, if it is not."""
        return self._place(name).trouble

    def told(self, message: str) -> str:
        """A message to who asks from elsewhere: runs by their names, not by places on this machine."""
        for name, place in self._places.items():
            if place.folder.is_absolute():
                message = message.replace(str(place.folder), name)
        return message

    def refresh(self) -> list[tuple[str, bool]]:
        """Open again what has changed; (name, whether it went well) of each. Slow: for a thread.

        What cannot be opened is told by ``trouble`` and tried again when it changes; until then the run
        stays as it was. Who asks meanwhile has the old one or the new one.
        """
        events = []
        for name, place in self._places.items():
            stamp = _stamp(place.folder, _MODEL_FILES)
            if stamp != place.stamp:
                place.stamp = stamp
                events.append((name, self._exchange(name, place)))
                if _stamp(place.folder, _MODEL_FILES) != stamp:
                    place.stamp = ()  # it changed while it was read: look again next time
            figures_stamp = _stamp(place.folder, (_FIGURES,))
            if figures_stamp != place.figures_stamp:
                place.figures_stamp = figures_stamp
                place.figures = _figures(place.run)
        return events

    def _exchange(self, name: str, place: _Place) -> bool:
        try:
            run = OpenRun(name, self._open(place.folder), place.run.revision + 1)
            figures = _figures(run)
        except Exception as error:  # whatever it is, it must not take the old one down
            place.trouble = self.told(f"the files have changed but cannot be served: {error}")
            return False
        place.run, place.figures, place.trouble = run, figures, None
        return True

    def _place(self, name: str) -> _Place:
        try:
            return self._places[name]
        except KeyError:
            known = ", ".join(map(repr, self._places))
            raise Problem(
                404,
                "unknown_run",
                f"no run {name[:100]!r} is served here; there is {known}",
                suggestions=self.names[:10],
            ) from None


def _figures(run: OpenRun) -> dict[str, Any]:
    """Those of ``metrics.json``; none where it is damaged, which must not keep a model from being served."""
    try:
        return run.run.folder.metrics()
    except RunError:
        return {}


def _stamp(folder: Path, names: Iterable[str]) -> Stamp:
    """What tells one state of files from the next."""
    found: list[tuple[int, int, int] | None] = []
    for name in names:
        state = None
        with suppress(OSError):
            file = (folder / name).stat()
            state = (file.st_ino, file.st_mtime_ns, file.st_size)
        found.append(state)
    return tuple(found)
