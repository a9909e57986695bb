"""Train what a job asks for, rank what it may rank, and write down where every figure came from."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from golde.benchmark.provenance import provenance
from golde.config import Config
from golde.data.catalogue import entries
from golde.data.content import SPLITS
from golde.data.graph import KnowledgeGraph
from golde.errors import ConfigError, GoldeError, RunError
from golde.evaluation.evaluate import Evaluation
from golde.inference.run import Run, add_evidence
from golde.progress import Progress, silent
from golde.report.results import (
    EMBEDDING,
    PROTOCOLS,
    STANDARD,
    Record,
    is_complete,
    parameters,
    read_record,
    write_record,
)
from golde.report.studies import Job
from golde.runs import RunFolder
from golde.runs.commit import commit
from golde.runs.lock import locked_in_folder
from golde.training.defaults import resolve
from golde.training.loop import StoppedError, Watcher, pick_device, train
from golde.training.memory import enough_memory

COUNTED = (
    "wall time of the training call: model, compilation of what no cache holds, steps, validation, "
    "checkpoints and parameters on disk, and evidence where it is gathered; not the start of Python, "
    "reading the graph or ranking"
)
RESUMED = "resumed: earlier calls count up to their last line in the log; this one: " + COUNTED
LOOP = (
    "trained before: what the training loop counted from its first step on, and gathering evidence"
)


class Place:
    """Where one job stands: its result file, its run, and what is in them."""

    def __init__(
        self, job: Job, graph: KnowledgeGraph, *, results: Path, runs: Path, again: bool = False
    ) -> None:
        """Refuses results and runs of other settings or data, unless results are made ``again``."""
        self.job, self.graph = job, graph
        self._runs, self._again = runs, again
        if not len(graph.split(job.split)):
            raise GoldeError(
                f"{graph.name}: the {job.split} split is empty, so nothing could be ranked; "
                "reproduce on a graph that has one"
            )
        try:
            _refuse_other_facts(graph)
            self.config = resolve(job.config, graph)
            sizes = len(graph.entities), len(graph.relations)
            with enough_memory(f"a model of {self.config.model.space}"):
                self.parameters = parameters(self.config.model, *sizes)
        except GoldeError as error:
            raise ConfigError(f"{job.source}: {error}") from None
        self._folder = job.folder(graph.name)
        self.path = results / job.kind / self._folder / f"seed-{job.seed}.json"
        self.look()

    def look(self) -> None:
        """Read what is there by now, which another process may have written."""
        self.record = read_record(self.path) if self.path.is_file() else None
        self.replaced: list[Record] = []
        if self.record is not None:
            other = self._difference(self.record)
            if other and not self._again:
                raise ConfigError(
                    f"{self.path}: was made differently ({other}); take that back, rename the "
                    "configuration, or replace the result with --again"
                )
            self.replaced = self.record["replaced"]
            anew = self._again and (other or is_complete(self.record))
            if anew or not (is_complete(self.record) or self.is_trained):
                self.replaced = [*self.record.pop("replaced"), self.record]
                self.record = None
        if self.record is None and not self._again:
            self._refuse_other_seeds()
        self._refuse_other_run()

    @property
    def run(self) -> Path:
        """The run folder: a new one for each result that was replaced."""
        turn = f"-{len(self.replaced)}" if self.replaced else ""
        return self._runs / self._folder / f"seed-{self.job.seed}{turn}"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep every other process from the result file, whose folder is made, unless nothing comes of it."""
        lock = self.path.with_name(self.path.name + ".lock")
        with ExitStack() as stack:
            try:
                mine = stack.enter_context(locked_in_folder(lock))
            except OSError as error:
                raise RunError(
                    f"{self.path}: cannot be written: {error.strerror}; check --results and its rights"
                ) from None
            if not mine:
                raise RunError(
                    f"{self.path}: another process is reproducing it; wait for it, or stop it"
                )
            yield

    @property
    def is_complete(self) -> bool:
        """Whether there is nothing left to do."""
        return self.record is not None and is_complete(self.record)

    @property
    def is_trained(self) -> bool:
        """Whether the model is there, so that what is left of a record can be ranked."""
        folder = RunFolder(self.run)
        return folder.exists() and bool(folder.about()["finished"])

    def _refuse_other_seeds(self) -> None:
        """Refuse to train beside seeds of which there would be no mean with this one."""
        for path in sorted(self.path.parent.glob("seed-*.json")):
            if other := self._difference(read_record(path)):
                raise ConfigError(
                    f"{path}: was made differently ({other}), and has no mean with seed {self.job.seed}; "
                    "take that back, rename the configuration, or replace all of its seeds with --again"
                )

    def _difference(self, record: Record) -> str:
        """How a result, of whatever seed, differs from what the job would give, in words."""
        if record["digest"] != self.graph.digest:
            return f"on another {self.graph.name}: its facts are not those here"
        if record["split"] != self.job.split:
            return f"ranked on {record['split']} there and {self.job.split} here"
        try:
            there = Config.from_dict(record["settings"], source=f"seed-{record['seed']}.json")
        except ConfigError as error:  # a setting that is no more
            return str(error)
        return there.with_values(training={"seed": self.job.seed}).difference(self.config)

    def _refuse_other_run(self) -> None:
        folder = RunFolder(self.run)
        if folder.exists() and (other := folder.config().difference(self.config)):
            raise RunError(
                f"{self.run}: was started with other settings ({other}); remove it, or choose another "
                "folder with --runs"
            )


def reproduce(
    place: Place,
    *,
    device: str = "auto",
    shared: int = 1,
    watch: Watcher = lambda report: None,
    should_stop: Callable[[], bool] = lambda: False,
    progress: Progress = silent,
) -> Record:
    """Train, or go on training; rank what is not ranked yet; return the complete record.

    ``shared`` is how many trainings use the machine at a time: it is stored with the seconds. When
    ``should_stop`` turns true ``StoppedError`` is raised, unless a ranking is under way, which ends first.
    ``progress`` is that of gathering evidence.
    """
    if place.record is not None and is_complete(place.record):
        return place.record
    with place.alone():
        place.look()
        if place.record is not None and is_complete(place.record):
            return place.record
        about = _provenance(device)
        training = _train(place, device, shared, watch, should_stop, progress)
        record = place.record
        if record is None:
            record = _new_record(place, training) | about
            write_record(place.path, record)
        _rank(place, record, device, should_stop)
        return record


def _provenance(device: str) -> dict[str, Any]:
    """Machine, versions and commit; taken before training, whose code is that of then."""
    about = provenance(["torch", "triton", "numpy"])
    place = pick_device(device)
    if place.type == "cuda":
        about["machine"]["gpu"] = torch.cuda.get_device_name(place)
    else:
        about["machine"]["threads"] = torch.get_num_threads()
    return about


def _train(
    place: Place,
    device: str,
    shared: int,
    watch: Watcher,
    should_stop: Callable[[], bool],
    progress: Progress,
) -> dict[str, Any]:
    """Train into the run folder, unless that is done; what it took and the validation curve."""
    folder = RunFolder(place.run)
    done = folder.exists() and folder.about()["finished"]
    earlier = _logged_seconds(folder)
    began = time.perf_counter()
    train(
        place.graph,
        place.run,
        place.job.config,
        device=device,
        resume=True,
        watch=watch,
        should_stop=should_stop,
    )

    def heed(done: int, total: int) -> None:
        if should_stop():
            raise StoppedError("stopped while evidence was gathered")
        progress(done, total)

    add_evidence(folder, pick_device(device), progress=heed)
    _refuse_other_evidence(folder)
    seconds = earlier + time.perf_counter() - began
    about, gathered = folder.about(), folder.gathered()
    if done:
        seconds = about["seconds"] + (gathered or {}).get("seconds", 0.0)
    return {
        "seconds": round(seconds, 2),
        "counted": LOOP if done else RESUMED if earlier else COUNTED,
        "trainings_at_a_time": shared,
        "steps": about["steps"],
        "chosen_step": about["chosen_step"],
        "validation_facts": min(about["valid"], place.config.training.validate_limit),
        "validation": about["validation"],
        **({} if gathered is None else {"evidence": gathered}),
    }


def _refuse_other_evidence(folder: RunFolder) -> None:
    """Refuse a run whose evidence was replaced by hand."""
    configured = folder.config().evidence.model_dump()
    gathered = folder.gathered() or {"hops": 0}
    # Before settings were stored, hops alone were.
    there = gathered.get("settings", {"hops": gathered["hops"]})
    if other := [key for key, value in there.items() if configured.get(key) != value]:
        told = ", ".join(
            f"{key} is {there[key]} there and {configured.get(key)} here" for key in other
        )
        raise RunError(
            f"{folder.evidence_file}: was gathered differently than the run is configured for ({told}); "
            "remove the file and reproduce again"
        )


def _logged_seconds(folder: RunFolder) -> float:
    """Seconds at the last line of a run's log, 0 for a run that has none."""
    if not folder.log.is_file():
        return 0.0
    seconds = 0.0
    for line in folder.log.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            seconds = float(json.loads(line)["seconds"])
        except (ValueError, KeyError, TypeError):
            continue  # a line cut short by a kill
    return seconds


def _new_record(place: Place, training: dict[str, Any]) -> Record:
    job, graph = place.job, place.graph
    return {
        "graph": graph.name,
        "digest": graph.digest,
        "counts": _counts(graph),
        "config": job.name,
        "study": job.study,
        "seed": job.seed,
        "split": job.split,
        "settings": place.config.model_dump(exclude_none=True),
        "parameters": place.parameters,
        "training": training,
        "figures": {},
        "relations": {},
        "evaluations": _evaluated_elsewhere(RunFolder(place.run)),
        "replaced": place.replaced,
    }


def _counts(graph: KnowledgeGraph) -> dict[str, int]:
    return {
        "entities": len(graph.entities),
        "relations": len(graph.relations),
        **{split: len(graph.split(split)) for split in SPLITS},
    }


def _refuse_other_facts(graph: KnowledgeGraph) -> None:
    """Results of a published set are on its facts, and not on a part of them in a folder of that name."""
    entry = entries().get(graph.name)
    if entry is not None and not entry.is_of(graph.digest, _counts(graph)):
        raise GoldeError(
            f"{graph.name}: what is here under the name of this set has other facts ({len(graph.train):,} "
            f"for training, the set {entry.counts.train:,}); rename the file or folder that it is read from"
        )


def _evaluated_elsewhere(folder: RunFolder) -> list[dict[str, Any]]:
    """Rankings of test that the run folder knows of, such as by ``golde evaluate``."""
    return [
        {
            "when": None,
            "split": "test",
            "protocol": "self_filter" if "self-filter" in key else "standard",
            "commit": None,
        }
        for key in folder.all_metrics()
        if key.startswith("test")
    ]


def _rank(place: Place, record: Record, device: str, should_stop: Callable[[], bool]) -> None:
    """Rank the split once under each protocol; each ranking is logged before it begins."""
    try:
        run = Run(RunFolder(place.run), pick_device(device))
    except RunError as error:
        raise RunError(
            f"{place.run}: cannot be opened to be ranked ({error}); if that cannot be mended, remove the "
            "folder and repeat the command, which trains anew and keeps what was ranked"
        ) from None
    made_by, evidence = commit(), run.model.evidence
    protocols = PROTOCOLS if evidence is None else {EMBEDDING: False} | PROTOCOLS
    for protocol, self_filter in protocols.items():
        if protocol in record["figures"]:
            continue
        if should_stop():
            raise StoppedError("stopped before all was ranked")
        run.model.evidence = None if protocol == EMBEDDING else evidence
        record["evaluations"].append(
            {
                "when": datetime.now(UTC).isoformat(timespec="seconds"),
                "split": record["split"],
                "protocol": protocol,
                "commit": made_by,
            }
        )
        write_record(place.path, record)
        found = run.evaluate(
            record["split"],
            self_filter=self_filter,
            baselines=False,
            store=protocol in PROTOCOLS,
        )
        record["figures"][protocol] = {
            "protocol": found.protocol.as_dict(),
            "card": found.protocol.card(),
            "metrics": found.metrics,
        }
        if protocol in (STANDARD, EMBEDDING):
            beside = record if protocol == STANDARD else record["figures"][protocol]
            beside["relations"] = _relations(found)
        write_record(place.path, record)


def _relations(found: Evaluation) -> dict[str, dict[str, float]]:
    """The figures of each relation that tell relations apart, of both sides and each alone."""
    return {
        name: {
            "facts": block["count"] // 2,
            "mrr": block["mrr"],
            "hits@1": block["hits@1"],
            "hits@10": block["hits@10"],
            "head_mrr": block["head"]["mrr"],
            "tail_mrr": block["tail"]["mrr"],
        }
        for name, block in found.relations.items()
    }
