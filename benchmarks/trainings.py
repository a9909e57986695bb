"""Studies that compare trainings: each is written down as it ends, and a study cut short goes on.

All are trained for a given number of steps, keep their last parameters (where validation is ranked on the
way, the best), and are judged on the whole validation split (filtered, both sides, realistic rank on ties).
The test split is not looked at.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
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
    """The file of a study; ``key`` names what tells one training from another.

    One of a key takes the place of an earlier one, unless ``keep_other_settings``: then what was made with
    other settings stays, beside whatever it was compared with.
    """

    def __init__(
        self,
        path: Path,
        question: str,
        key: Sequence[str],
        *,
        resume: bool = True,
        keep_other_settings: bool = False,
    ) -> None:
        self.path, self.question, self.key = path, question, tuple(key)
        self.keep_other_settings = keep_other_settings
        self._all: list[Training] = (
            read_json(path)["trainings"] if resume and path.is_file() else []
        )
        path.parent.mkdir(parents=True, exist_ok=True)

    def has(self, config: Config, *key: Any) -> bool:
        """Whether there is one of this key with these settings: a configuration may have changed since."""
        return any(_made_with(config, one) for one in self._of(key))

    def get(self, *key: Any) -> Training | None:
        """The training of this key, if there is one that did not fail."""
        return next((one for one in self._of(key) if "failed" not in one), None)

    def add(self, one: Training) -> None:
        """Write it down, in the place of an earlier one."""
        places = [i for i, other in enumerate(self._all) if self._replaces(one, other)]
        if places:
            self._all[places[0]] = one
        else:
            self._all.append(one)
        write_json(self.path, {"question": self.question, "trainings": self._all})

    def _of(self, key: Sequence[Any]) -> Iterator[Training]:
        return (one for one in self._all if self._key_of(one) == tuple(key))

    def _replaces(self, one: Training, other: Training) -> bool:
        if self._key_of(one) != self._key_of(other):
            return False
        if not self.keep_other_settings or "failed" in other:
            return True
        return "failed" not in one and _made_with(Config.from_dict(one["settings"]), other)

    def _key_of(self, one: Training) -> tuple[Any, ...]:
        return tuple(one[part] for part in self.key)


def _made_with(config: Config, one: Training) -> bool:
    """Whether a training came to its end, and with these settings."""
    try:
        return "failed" not in one and not Config.from_dict(one["settings"]).difference(config)
    except ConfigError:  # a setting that is no more
        return False


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
