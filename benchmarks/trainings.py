"""Studies that compare trainings: each is written down as it ends, and a study cut short goes on.

All are trained for a given number of steps, keep their last parameters (where validation is ranked on the
way, the best), and are judged on the whole validation split (filtered, both sides, realistic rank on ties).
The test split is not looked at.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ParamSpec

import torch

from golde.benchmark.provenance import provenance
from golde.config import Config
from golde.data.graph import KnowledgeGraph
from golde.errors import ConfigError, GoldeError
from golde.runs import RunFolder
from golde.runs.atomic import read_json, write_json
from golde.runs.environment import environment
from golde.training import train
from golde.training.loop import Report, pick_device

NEVER = 1e9  # seconds

_Given = ParamSpec("_Given")

Training = dict[str, Any]
"""What is written down of one."""


class Trainings:
    """The file of a study; ``key`` names what tells one training from another."""

    def __init__(
        self, path: Path, question: str, key: Sequence[str], *, resume: bool = True
    ) -> None:
        self.path, self.question, self.key = path, question, tuple(key)
        found = read_json(path)["trainings"] if resume and path.is_file() else []
        self._all = {self._key_of(one): one for one in found}
        path.parent.mkdir(parents=True, exist_ok=True)

    def has(self, config: Config, *key: Any) -> bool:
        """Whether there is one of this key with these settings: a configuration may have changed since."""
        found = self.get(*key)
        if found is None:
            return False
        try:
            return not Config.from_dict(found["settings"]).difference(config)
        except ConfigError:  # a setting that is no more
            return False

    def get(self, *key: Any) -> Training | None:
        """The training of this key, if there is one that did not fail."""
        found = self._all.get(key)
        return None if found is None or "failed" in found else found

    def add(self, one: Training) -> None:
        """Write it down, in the place of an earlier one with its key."""
        self._all[self._key_of(one)] = one
        write_json(self.path, {"question": self.question, "trainings": list(self._all.values())})

    def _key_of(self, one: Training) -> tuple[Any, ...]:
        return tuple(one[part] for part in self.key)


def attempted(
    measure: Callable[_Given, Training], *given: _Given.args, **named: _Given.kwargs
) -> Training:
    """What it measures, or why it failed, such as a run that diverged: others may do better."""
    try:
        return measure(*given, **named)
    except GoldeError as error:
        return {"failed": str(error)}


def to_the_end(config: Config, graph: KnowledgeGraph, seed: int) -> Config:
    """These settings and this seed without anything that would end a run early or interrupt it."""
    return config.with_values(
        training={
            "seed": seed,
            "validate_every": 0,
            "validate_limit": len(graph.valid),  # the figures of the end are those of all of them
            "checkpoint_seconds": NEVER,
        }
    )


def measure(
    graph: KnowledgeGraph,
    config: Config,
    device: str,
    *,
    watch: Callable[[Report], None] = lambda report: None,
    look: Callable[[RunFolder], Training] = lambda run: {},
) -> Training:
    """Train, and rank the validation split; ``look`` finds out more about the run before it is forgotten."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        run = train(graph, Path(folder, "run"), config, device=device, watch=watch)
        seconds = time.monotonic() - began
        figures, resolved = run.metrics()["valid"], run.config()
        more = look(run)
    gc.collect()  # before the next model is made
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return {
        "validation": figures["metrics"]["both"],
        "protocol": figures["protocol"],
        "seconds": round(seconds, 1),
        **more,
        "settings": resolved.model_dump(exclude_none=True),
    }


def where(device: str) -> Training:
    """Machine, versions and commit, stored with every training: a file may be gone on with elsewhere."""
    found = provenance(("torch", "triton"))
    found["environment"] = environment(pick_device(device))
    if "gpu" in found["environment"]:
        found["machine"]["gpu"] = found["environment"]["gpu"]
    return found
