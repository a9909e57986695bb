"""The training loop: steps, validation, checkpoints, and a clean end whatever happens."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from golde.config import Config, TrainingConfig
from golde.data.graph import KnowledgeGraph
from golde.errors import ConfigError, GoldeError
from golde.evaluation.evaluate import Evaluation, figures_of, rank_triples
from golde.evaluation.protocol import Protocol
from golde.evaluation.ranking import CountingScorer, NonFiniteScoreError, Ranks
from golde.kernels.triton import has_triton
from golde.models import Model, build, place
from golde.runs import RunFolder
from golde.runs.atomic import write_text
from golde.runs.card import write_card
from golde.runs.environment import environment
from golde.training import checkpoint
from golde.training.checkpoint import Progress
from golde.training.defaults import captures, compiles, resolve
from golde.training.host_update import HostUpdate
from golde.training.memory import enough_memory, refuse_oversize
from golde.training.opening import open_folder, refuse_other_checkpoint
from golde.training.sampling import Sampler
from golde.training.schedule import learning_rate
from golde.training.update import Steps, Update

_Number = TypeVar("_Number", int, float)


class DivergedError(GoldeError):
    """The loss or a parameter became NaN or infinite."""


class StoppedError(Exception):
    """Training was asked to stop; a checkpoint was written."""


@dataclass(frozen=True)
class Report:
    """What a watcher is told after a step."""

    step: int
    steps: int
    loss: float
    queries_per_second: float
    seconds_left: float
    mrr: float | None  # of the newest validation
    validated: bool  # that validation was after this very step


Watcher = Callable[[Report], None]


def train(
    graph: KnowledgeGraph,
    out: str | Path,
    config: Config | None = None,
    *,
    device: str = "auto",
    resume: bool = False,
    watch: Watcher = lambda report: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> RunFolder:
    """Train on ``graph`` into the run folder ``out``.

    ``watch`` is called at every log interval and after every validation. When ``should_stop`` turns
    true a checkpoint is written and ``StoppedError`` raised; ``resume=True`` goes on from the newest
    checkpoint, or from the beginning when there is none, and ends where an uninterrupted run ends, bit
    for bit on a CPU. A run that is resumed without a ``config`` keeps the one it was started with.
    """
    refuse_empty(graph)
    where, folder = pick_device(device), RunFolder(out)
    if config is None and resume and folder.exists():
        config = folder.config()
    config = resolve(config or Config(), graph)
    # Before there is a folder: settings that make no model should not leave a run behind.
    entities, seed = len(graph.entities), config.training.seed
    with enough_memory(f"a model of {config.model.space}"):
        rows = _rows(config.training, len(graph.train), entities)
        refuse_oversize(config, entities, len(graph.relations), where, rows=rows)
        model = build(config.model, entities, len(graph.relations), seed=seed)
    model.compiled = compiles(config, entities, where)
    here = environment(where) | {"compiled": model.compiled}
    with folder.alone():
        graph = open_folder(folder, graph, config, here, resume)
        refuse_other_checkpoint(folder.shared_checkpoint, "with --devices N")
        if folder.about().get("finished"):
            folder.drop_checkpoint()  # a kill may have come between the end and this
            return folder
        with enough_memory("a training step"):
            Training(folder, graph, config, model, where, watch, should_stop).run()
    return folder


def refuse_empty(graph: KnowledgeGraph) -> None:
    """An error if there is nothing to learn from."""
    if not len(graph.train):
        raise no_training_facts()


def no_training_facts() -> GoldeError:
    return GoldeError("the graph has no training facts; nothing can be learned from it")


def pick_device(name: str) -> torch.device:
    """``auto`` takes a GPU when there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name not in ("cpu", "cuda"):
        raise ConfigError(f"unknown device {name!r}; use auto, cpu or cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("no CUDA device is available here; use --device cpu or auto")
    return torch.device(name)


class Training:
    """One run under way, in one process; ``golde.distributed.loop`` has that of several."""

    def __init__(
        self,
        folder: RunFolder,
        graph: KnowledgeGraph,
        config: Config,
        model: Model,
        device: torch.device,
        watch: Watcher,
        should_stop: Callable[[], bool],
    ) -> None:
        self.graph, settings = graph, config.training
        valid = _sample(graph.valid, settings.validate_limit, settings.seed)
        self._begin(folder, config, model, device, watch, should_stop, valid, graph.digest)

    def _begin(
        self,
        folder: RunFolder,
        config: Config,
        model: Model,
        device: torch.device,
        watch: Watcher,
        should_stop: Callable[[], bool],
        valid: Tensor,
        graph_digest: str,
    ) -> None:
        """Where training stands; ``valid`` are the facts that validations rank."""
        self.folder, self.device, self.valid = folder, device, valid
        self.watch, self.should_stop = watch, should_stop
        self.config, settings = config.training, config.training
        precision, host = getattr(torch, settings.precision), settings.entity_table == "host"
        self.model = place(model, device, precision, host=host)
        self.update = self._make_update(captures(config, device))
        self.steps, self.validate_every = _set(settings.steps), _set(settings.validate_every)
        self.digest = _identity(config, graph_digest, device)
        self.progress, self.best = Progress(), None  # type: tuple[Progress, dict[str, Tensor] | None]
        self.started = time.monotonic()
        self.validation_seconds = 0.0  # that the newest took
        self._load_checkpoint()
        self._trim_log()

    def run(self) -> None:
        """Steps until the end, the patience or a wish to stop."""
        self._rehearse()
        saved = shown = time.monotonic()
        self.started -= self.progress.seconds
        shown_step = self.progress.step
        while not self._is_over():
            step = self.progress.step
            ends, validates = step + 1 == self.steps, self._validates_after(step + 1)
            logs = (step + 1) % self.config.log_every == 0 or ends or validates
            loss = self._step(step, check=logs or self.device.type == "cpu")
            self.progress.step = step + 1
            if logs:
                value = loss.item()  # waits for the device
                rate = (step + 1 - shown_step) / max(time.monotonic() - shown, 1e-9)
                if validates:
                    self._validate()
                self._report(value, rate, validates)
                shown, shown_step = time.monotonic(), step + 1
            due = time.monotonic() - saved >= self.config.checkpoint_seconds
            stops, saves = self._agreed(self.should_stop(), due, logs)
            if stops or saves:
                self._save_checkpoint()
                saved = time.monotonic()
            if stops:
                raise StoppedError(f"stopped after step {self.progress.step} of {self.steps}")
        self._finish()

    def _make_update(self, capture: bool) -> Steps:
        settings = self.config
        sampler = Sampler(
            self.graph.train,
            len(self.graph.entities),
            len(self.graph.relations),
            batch_size=_set(settings.batch_size),
            negatives=_set(settings.negatives),
            answers=settings.answers_as_negatives,
            subsampling=settings.subsampling,
            seed=settings.seed,
            device=self.device,
        )
        make = HostUpdate if settings.entity_table == "host" else Update
        return make(self.model, sampler, settings, capture=capture)

    def _agreed(self, stops: bool, saves: bool, logs: bool) -> tuple[bool, bool]:
        """Whether to stop and whether to save after a step, and whether it is logged."""
        return stops, saves

    def _load_checkpoint(self) -> None:
        if self.folder.checkpoint.is_file():
            self.progress, self.best = checkpoint.load(
                self.folder.checkpoint, self.model, self.update, self.digest
            )

    def _rank_valid(self) -> Ranks:
        """The ranks of the facts that are validated by."""
        return rank_triples(self.model.scorer(), self.graph, self.valid, device=self.device)

    def _rehearse(self) -> None:
        """Have the kernels of a step and of a validation compiled side by side, where there are any."""
        if self.device.type != "cuda" or not has_triton() or self._is_over():
            return
        from golde.kernels.triton.rehearsal import rehearsal

        with rehearsal():
            self.update.rehearse()
            scorer = self.model.scorer()
            if len(self.valid) and isinstance(scorer, CountingScorer):
                rank_triples(scorer, self.graph, self.valid, device=self.device)

    def _is_over(self) -> bool:
        return (
            self.progress.step >= self.steps
            or self.progress.worse >= self.config.patience  # also right after resuming
        )

    def _step(self, step: int, *, check: bool) -> Tensor:
        """One update; ``check`` looks at loss and gradient, which makes a GPU wait."""
        rate = learning_rate(
            step,
            steps=self.steps,
            peak=_set(self.config.learning_rate),
            warmup=self.config.warmup,
        )
        loss, norm = self.update(step, rate)
        if check and not torch.isfinite(loss):
            raise self._diverged(f"the loss became {loss.item()} at step {step + 1}")
        if check and not torch.isfinite(norm):
            raise self._diverged(f"the gradient became {norm.item()} at step {step + 1}")
        return loss

    def _validates_after(self, step: int) -> bool:
        if not len(self.valid) or not self.validate_every:
            return False
        return step % self.validate_every == 0 or step == self.steps

    def _validate(self) -> None:
        began = time.monotonic()
        self.update.settle()
        try:
            ranks = self._rank_valid().realistic
        except NonFiniteScoreError as error:
            raise self._diverged(f"after step {self.progress.step} {error}") from None
        mrr = ranks.reciprocal().mean().item()
        progress = self.progress
        progress.validations.append({"step": progress.step, "mrr": mrr})
        progress.worse = 0 if mrr > progress.best_mrr else progress.worse + 1
        if mrr >= progress.best_mrr:  # of equals the later: it tells true from false more clearly
            progress.best_mrr, progress.best_step = mrr, progress.step
            self.best = {k: v.detach().clone() for k, v in self.model.state_dict().items()}
        self.validation_seconds = time.monotonic() - began

    def _report(self, loss: float, rate: float, validated: bool) -> None:
        step, elapsed = self.progress.step, time.monotonic() - self.started
        newest = self.progress.validations[-1]["mrr"] if self.progress.validations else None
        queries, left = rate * self.update.batch_size, self.steps - step
        validations = math.ceil(left / self.validate_every) if self.validate_every else 0
        seconds_left = left / rate + validations * self.validation_seconds
        self.folder.append_log(
            step=step,
            loss=loss,
            queries_per_second=round(queries),
            seconds=round(elapsed, 2),
            **({"validation_mrr": newest} if validated else {}),
        )
        self.watch(Report(step, self.steps, loss, queries, seconds_left, newest, validated))

    def _diverged(self, what: str) -> DivergedError:
        kept = self.folder.checkpoint
        last = f"the checkpoint {kept} is from before" if kept.is_file() else "no checkpoint yet"
        return DivergedError(
            f"{what}; {last}. Try a lower training.learning_rate or training.gradient_clip "
            "in a new run"
        )

    def _refuse_damage(self) -> None:
        """What is saved is sound: an update can overflow where loss and gradient did not."""
        if (name := self._damaged()) is not None:
            raise self._diverged(f"{name} is no longer finite after step {self.progress.step}")

    def _damaged(self) -> str | None:
        """A parameter that is not finite."""
        for name, parameter in self.model.named_parameters():
            if not torch.isfinite(parameter).all():
                return name
        return None

    def _save_checkpoint(self) -> None:
        self.update.settle()
        self._refuse_damage()
        self.progress.seconds = time.monotonic() - self.started
        self._store_checkpoint()

    def _store_checkpoint(self) -> None:
        checkpoint.save(
            self.folder.checkpoint,
            self.model,
            self.update,
            self.best,
            self.progress,
            self.digest,
        )

    def _finish(self) -> None:
        self.update.settle()
        if self.best is not None:
            self.model.load_state_dict(self.best)
        self._refuse_damage()
        self._store_model()
        self._store_figures()
        self._store_end()

    def _store_model(self) -> None:
        self.folder.save_model(self.model)

    def _store_end(self) -> None:
        ended = {
            "finished": True,
            "seconds": round(time.monotonic() - self.started, 2),
            "steps": self.progress.step,
            "chosen_step": self.progress.best_step or self.progress.step,
            "validation": self.progress.validations,
        }
        write_card(self.folder, self.folder.about() | ended)
        self.folder.update_about(**ended)
        self.folder.drop_checkpoint()

    def _store_figures(self) -> None:
        """The chosen model's figures on the facts that validations rank."""
        if not len(self.valid):
            return
        found = self._figures()
        figures = {**found.as_dict(), "environment": environment(self.device)}
        self.folder.save_metrics(found.protocol.key, figures)

    def _figures(self) -> Evaluation:
        protocol = Protocol.of(self.graph, "valid", self.valid)
        return figures_of(self._rank_valid(), self.graph, protocol)

    def _trim_log(self) -> None:
        """Forget log lines written after the checkpoint that training goes on from."""
        if not self.folder.log.is_file():
            return
        lines = self.folder.log.read_text(encoding="utf-8", errors="replace").splitlines()
        kept = [line for line in lines if _logged_step(line) <= self.progress.step]
        write_text(self.folder.log, "".join(line + "\n" for line in kept))


def _logged_step(line: str) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")  # a line cut short by a kill


def _sample(triples: Tensor, limit: int, seed: int) -> Tensor:
    """At most ``limit`` facts, always the same ones."""
    if len(triples) <= limit:
        return triples
    order = torch.randperm(len(triples), generator=torch.Generator().manual_seed(seed))
    return triples[order[:limit]]


def _rows(settings: TrainingConfig, facts: int, entities: int) -> int:
    """Of how many entities a step gathers the rows: queries, their answers and the candidates."""
    queries, negatives = min(_set(settings.batch_size), 2 * facts), _set(settings.negatives)
    return 2 * queries + (min(negatives, entities) or entities)


def _identity(config: Config, graph_digest: str, device: torch.device) -> str:
    """What a checkpoint must agree with: settings and data."""
    return hashlib.sha256((config.identity() + graph_digest + device.type).encode()).hexdigest()


def _set(value: _Number | None) -> _Number:
    assert value is not None, "open settings are resolved before training"
    return value
