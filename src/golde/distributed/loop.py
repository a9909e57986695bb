"""A run of several processes: the same run, of which each has a range of the entities.

The first process writes what is written once, and the log; in all else they do the same at the same time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import torch
from torch import Tensor

from golde.config import Config
from golde.data.graph import KnowledgeGraph
from golde.data.known import KnownFacts
from golde.distributed import checkpoint
from golde.distributed.facts import FactShare
from golde.distributed.launch import refuse_differences
from golde.distributed.model_file import write_model
from golde.distributed.ranking import rank_sharded
from golde.distributed.sampling import ShardSampler
from golde.distributed.update import OWNED, ShardedUpdate
from golde.distributed.world import World
from golde.errors import ConfigError
from golde.evaluation.evaluate import in_words
from golde.evaluation.ranking import Ranks, both_sides
from golde.models import Model, build
from golde.runs import RunFolder
from golde.runs.environment import environment
from golde.training.checkpoint import restore, tensors_of
from golde.training.defaults import resolve
from golde.training.loop import (
    Training,
    Watcher,
    open_folder,
    pick_device,
    refuse_empty,
    refuse_other_checkpoint,
)
from golde.training.update import Steps


def train_sharded(
    graph: KnowledgeGraph,
    out: str | Path,
    config: Config,
    world: World,
    *,
    device: str = "auto",
    resume: bool = False,
    watch: Watcher = lambda report: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> RunFolder:
    """``golde.training.train`` by all processes of a world, each of which calls it."""
    refuse_empty(graph)
    place, folder = pick_device(device), RunFolder(out)
    config = resolve(config, graph)
    if config.training.entity_table == "host":
        raise ConfigError(
            "training.entity_table = 'host' is for one process, and each of several has a part of the "
            "table already; use 'device', or train without --devices"
        )
    here = environment(place) | {"compiled": False, "processes": world.size}
    same = {"version of GoldE": here["golde"], "version of PyTorch": here["torch"]}
    refuse_differences(world, {**same, "configuration": config.to_toml(), "graph": graph.digest})
    sizes = len(graph.entities), len(graph.relations)
    rows = world.share(sizes[0])
    model = build(config.model, *sizes, seed=config.training.seed, rows=rows)
    with ExitStack() as stack:
        with world.all_or_none():
            if world.rank == 0:
                stack.enter_context(folder.alone())
                graph = open_folder(folder, graph, config, here, resume)
        with world.all_or_none():
            refuse_other_checkpoint(folder.checkpoint, "without --devices")
            graph = folder.graph()
        if not folder.about().get("finished"):
            ShardedTraining(folder, graph, config, model, place, watch, should_stop, world).run()
        world.collect(torch.zeros(()))
    return folder


class ShardedTraining(Training):
    """One run under way, as one of the processes sees it."""

    def __init__(
        self,
        folder: RunFolder,
        graph: KnowledgeGraph,
        config: Config,
        model: Model,
        device: torch.device,
        watch: Watcher,
        should_stop: Callable[[], bool],
        world: World,
    ) -> None:
        self.world, self.leads = world, world.rank == 0
        self.sizes = len(graph.entities), len(graph.relations)
        self.rows = world.share(self.sizes[0])
        every = torch.cat((graph.train, graph.valid, graph.test))
        entity, direction, answer = FactShare.of(every, *self.sizes, world).facts.to(device)
        self.filters = KnownFacts.of_queries(entity, direction, answer, *self.sizes)
        super().__init__(folder, graph, config, model, device, watch, should_stop)

    def _make_update(self, capture: bool) -> Steps:
        settings = self.config
        assert settings.batch_size is not None
        assert settings.negatives is not None
        sampler = ShardSampler(
            FactShare.of(self.graph.train, *self.sizes, self.world),
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
            name=lambda *ids: in_words(self.graph, *ids),
        )

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
        if not len(self.valid):
            return
        if self.leads:
            super()._store_figures()
        else:
            self._rank_valid()

    def _store_end(self) -> None:
        if self.leads:
            super()._store_end()
            self.folder.shared_checkpoint.unlink(missing_ok=True)
            checkpoint.drop_others(self.folder.path)
