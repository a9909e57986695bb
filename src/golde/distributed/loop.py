"""A run of several processes: the same run, of which each has a range of the entities.

The first process writes what is written once, and the log; in all else they do the same at the same time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from golde.config import Config
from golde.data.graph import SPLITS
from golde.data.known import KnownFacts
from golde.distributed import checkpoint
from golde.distributed.facts import categories_of
from golde.distributed.graph import GraphShare
from golde.distributed.launch import refuse_differences
from golde.distributed.model_file import write_model
from golde.distributed.ranking import rank_sharded
from golde.distributed.sampling import ShardSampler
from golde.distributed.update import OWNED, ShardedUpdate
from golde.distributed.world import World
from golde.errors import ConfigError
from golde.evaluation.evaluate import Evaluation, figures_by_relation, named_query
from golde.evaluation.protocol import Protocol
from golde.evaluation.ranking import Ranks, both_sides
from golde.models import Model, build
from golde.runs import RunFolder
from golde.runs.environment import environment
from golde.training.checkpoint import restore, tensors_of
from golde.training.defaults import check_evidence, resolve_sizes
from golde.training.loop import Training, Watcher, no_training_facts, pick_device
from golde.training.opening import (
    at_start,
    goes_on,
    note_resumed,
    refuse_other_checkpoint,
    refuse_other_graph,
)
from golde.training.update import Steps


def train_sharded(
    graph: GraphShare,
    out: str | Path,
    config: Config,
    world: World,
    *,
    device: str = "auto",
    resume: bool = False,
    watch: Watcher = lambda report: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> RunFolder:
    """``golde.training.train`` by all processes of a world, each of which has its part of the graph."""
    if config.training.entity_table == "host":
        raise ConfigError(
            "training.entity_table = 'host' is for one process, and each of several has a part of the "
            "table already; use 'device', or train without --devices"
        )
    with world.all_or_none():
        if not graph.counts["train"]:
            raise no_training_facts()
        place, folder = pick_device(device), RunFolder(out)
        check_evidence(config, graph.counts["valid"], graph.sizes[1])
        config = resolve_sizes(config, graph.counts["train"], graph.sizes[0])
    here = environment(place) | {"compiled": False, "processes": world.size}
    same = {"version of GoldE": here["golde"], "version of PyTorch": here["torch"]}
    refuse_differences(world, {**same, "configuration": config.to_toml()})
    with world.all_or_none():
        rows = world.share(graph.sizes[0])
        model = build(config.model, *graph.sizes, seed=config.training.seed, rows=rows)
    with ExitStack() as stack:
        graph = _opened(folder, graph, config, here, resume, world, stack)
        with world.all_or_none():
            refuse_other_checkpoint(folder.checkpoint, "without --devices")
        if not folder.about().get("finished"):
            ShardedTraining(folder, graph, config, model, place, watch, should_stop, world).run()
        world.collect(torch.zeros(()))
    return folder


def _opened(
    folder: RunFolder,
    graph: GraphShare,
    config: Config,
    here: dict[str, Any],
    resume: bool,
    world: World,
    stack: ExitStack,
) -> GraphShare:
    """``golde.training.opening.open_folder`` for several; the first process keeps others out of it."""
    goes_on_ = False
    digest = graph.digest
    with world.all_or_none():
        if world.rank == 0:
            stack.enter_context(folder.alone())
            goes_on_ = goes_on(folder, digest, config, resume)
    if world.add_up(torch.tensor(int(goes_on_))):
        graph = GraphShare.stored(folder, world)
        digest = graph.digest
        with world.all_or_none():
            if world.rank == 0:
                refuse_other_graph(folder, digest)
                note_resumed(folder, here)
        return graph
    counts, (entities, relations) = graph.counts, graph.sizes
    with world.all_or_none():
        graph.write(folder)
        if world.rank == 0:
            sizes = {"entities": entities, "relations": relations, **counts}
            known = {"graph": graph.name, "digest": digest, **sizes, **at_start(here)}
            folder.create_around_graph(config, known)
    return graph


class ShardedTraining(Training):
    """One run under way, as one of the processes sees it."""

    def __init__(
        self,
        folder: RunFolder,
        graph: GraphShare,
        config: Config,
        model: Model,
        device: torch.device,
        watch: Watcher,
        should_stop: Callable[[], bool],
        world: World,
    ) -> None:
        self.world, self.leads = world, world.rank == 0
        self.sizes, self.relations, self.called = graph.sizes, graph.relations, graph.name
        self.rows, settings = world.share(self.sizes[0]), config.training
        entity, direction, answer = graph.facts(*SPLITS).facts.to(device)
        self.filters = KnownFacts.of_queries(entity, direction, answer, *self.sizes)
        self.train, self.valid_facts = graph.facts("train"), graph.counts["valid"]
        valid = graph.sample("valid", settings.validate_limit, settings.seed)
        self._begin(folder, config, model, device, watch, should_stop, valid, graph.digest)

    def _make_update(self, capture: bool) -> Steps:
        settings = self.config
        assert settings.batch_size is not None
        assert settings.negatives is not None
        sampler = ShardSampler(
            self.train,
            *self.sizes,
            self.world,
            batch_size=settings.batch_size,
            negatives=settings.negatives,
            answers=settings.answers_as_negatives,
            subsampling=settings.subsampling,
            seed=settings.seed,
            device=self.device,
        )
        return ShardedUpdate(self.model, sampler, settings, self.world)

    def _agreed(self, stops: bool, saves: bool, logs: bool) -> tuple[bool, bool]:
        """Asked where all look up from their work anyway: if one wants to stop or save, all do."""
        if not logs:
            return False, False
        wishes = self.world.add_up(torch.tensor([stops, saves], dtype=torch.int64))
        return bool(wishes[0]), bool(wishes[1])

    def _rank_valid(self) -> Ranks:
        return rank_sharded(
            self.model,
            *both_sides(self.valid.to(self.device), self.sizes[1]),
            self.filters,
            self.world,
            entities=self.sizes[0],
            name=lambda *ids: named_query(*self.folder.vocabularies(), *ids),
        )

    def _figures(self) -> Evaluation:
        """As one process would find them, asking the owners of entities which of them train shows."""
        seen = torch.zeros(len(self.rows), dtype=torch.bool)
        seen[self.train.facts[2] - self.rows.start] = True
        ends = self.valid[:, [0, 2]]
        mine = (ends >= self.rows.start) & (ends < self.rows.stop)
        here = torch.zeros_like(ends)
        here[mine] = seen[ends[mine] - self.rows.start].long()
        new = self.world.add_up(here) == 0
        protocol = Protocol(
            graph=self.called,
            split="valid",
            triples=len(self.valid),
            split_triples=self.valid_facts,
            candidates=self.sizes[0],
            unseen=int(new.any(1).sum()),
        )
        of_relation = categories_of(self.train, len(self.relations), self.world)
        ranks = self._rank_valid()
        return figures_by_relation(ranks, self.relations.names, of_relation, protocol)

    def _rehearse(self) -> None:
        """Kernels are compiled by each process for itself."""

    def _report(self, loss: float, rate: float, validated: bool) -> None:
        if self.leads:
            super()._report(loss, rate, validated)

    def _trim_log(self) -> None:
        if self.leads:
            super()._trim_log()

    def _damaged(self) -> str | None:
        """The same answer in all processes, whoever has the damage."""
        names = [name for name, _ in self.model.named_parameters()]
        found = super()._damaged()
        at = torch.tensor(0 if found is None else 1 + names.index(found))
        worst = int(self.world.collect(at).amax())
        return names[worst - 1] if worst else None

    def _store_checkpoint(self) -> None:
        owned: dict[str, Tensor] = {}
        shared: dict[str, Tensor] = {}
        for name, tensor in tensors_of(self.model, self.update, self.best).items():
            of = owned if name.split("/")[1] in OWNED else shared
            of[name] = tensor
        checkpoint.save(
            self.folder.shared_checkpoint,
            owned,
            shared,
            self.rows,
            self.progress,
            self.digest,
            self.world,
        )

    def _load_checkpoint(self) -> None:
        index = self.folder.shared_checkpoint
        if not index.is_file():
            return
        with self.world.all_or_none():
            self.progress, tensors = checkpoint.load(
                index, self.rows, self.digest, self.config.steps
            )
            self.best = restore(index, tensors, self.progress, self.model, self.update)

    def _store_model(self) -> None:
        write_model(self.folder, self.model, self.sizes[0], self.world)

    def _store_figures(self) -> None:
        if self.leads:
            super()._store_figures()
        elif len(self.valid):
            self._figures()

    def _store_end(self) -> None:
        if self.leads:
            super()._store_end()
            self.folder.shared_checkpoint.unlink(missing_ok=True)
            checkpoint.drop_others(self.folder.path)
