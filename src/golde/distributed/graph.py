"""A graph of which each process has a part: some rows of every split, and the names it met first.

    rows                 those that the process read
    names of entities    those that occur first in its rows
    names of relations   all of them

Who needs the name of another entity looks it up in the run folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from golde.data.graph import SPLITS, KnowledgeGraph
from golde.data.vocabulary import Vocabulary
from golde.distributed.digest import shared_digest
from golde.distributed.facts import FactShare
from golde.distributed.names import NameShare, deliver_texts, merge_names, number_names
from golde.distributed.streaming import (
    PORTION,
    Take,
    header,
    joined_texts,
    told_first,
    written_by_first,
)
from golde.distributed.world import World
from golde.errors import RunError
from golde.runs import RunFolder
from golde.runs.atomic import RESTORE
from golde.runs.contents import checked_facts


@dataclass(eq=False)
class GraphShare:
    """The part of one process in a graph; all of them make it and use it at the same time."""

    name: str
    entities: NameShare
    relations: Vocabulary
    rows: dict[str, Tensor]  # of each split (n, 3)
    world: World
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        told = self.world.collect(torch.tensor([len(self.rows[split]) for split in SPLITS]))
        self._rows_of = dict(zip(SPLITS, told.T, strict=True))  # each process, (size,)
        self.counts = {split: int(rows.sum()) for split, rows in self._rows_of.items()}
        """How many facts each split has, over all processes."""
        self.digest = shared_digest(self.entities, self.relations.names, self.rows, self.world)
        """As ``KnowledgeGraph.digest``."""

    @classmethod
    def of(cls, graph: KnowledgeGraph, world: World) -> GraphShare:
        """Of a graph that every process has."""
        share = {split: world.share(len(graph.split(split))) for split in SPLITS}
        rows = {split: graph.split(split)[at.start : at.stop] for split, at in share.items()}
        mine = world.share(len(graph.entities))
        _, names = number_names(graph.entities.names[mine.start : mine.stop], world)
        return cls(graph.name, names, graph.relations, rows, world, graph.notes)

    @classmethod
    def stored(cls, folder: RunFolder, world: World) -> GraphShare:
        """Of the graph of a run; its first process reads the names and tells each some of them."""
        about = folder.about()
        named: tuple[Vocabulary, Vocabulary] | None = None
        with world.all_or_none():
            if world.rank == 0:
                named = folder.vocabularies()
        parcels: list[tuple[str, ...]] = [()] * world.size
        if named is not None:
            total = about["entities"]
            edges = [rank * total // world.size for rank in range(world.size + 1)]
            parcels = [named[0][a:b] for a, b in pairwise(edges)]
        mine = deliver_texts(parcels, world)[0]
        _, names = number_names(mine, world)
        relations = merge_names([] if named is None else named[1].names, world)
        with world.all_or_none():
            rows = {split: _stored_rows(folder, split, world) for split in SPLITS}
        return cls(about["graph"], names, Vocabulary(relations, "relation"), rows, world)

    @property
    def sizes(self) -> tuple[int, int]:
        """How many entities and relations there are."""
        return int(self.entities.edges[-1]), len(self.relations)

    def facts(self, *splits: str) -> FactShare:
        """The facts of some splits whose answers this process owns."""
        rows = torch.cat([self.rows[split] for split in splits])
        return FactShare.of(rows, *self.sizes, self.world)

    def sample(self, split: str, limit: int, seed: int) -> Tensor:
        """At most ``limit`` facts of a split, the same in all processes and for any number of them."""
        counts, world = self._rows_of[split], self.world
        total, before = int(counts.sum()), int(counts[: world.rank].sum())
        wanted = torch.arange(min(total, limit))
        if total > limit:
            if world.rank == 0:  # the others need not draw an order of all facts
                order = torch.randperm(total, generator=torch.Generator().manual_seed(seed))
                wanted = order[:limit].clone()
            wanted = world.collect(wanted)[0]
        here = wanted - before
        mine = ((here >= 0) & (here < len(self.rows[split]))).nonzero()[:, 0]
        found = torch.zeros(len(wanted), 3, dtype=torch.int64)
        found[mine] = self.rows[split][here[mine]]
        return world.add_up(found)

    def write(self, folder: RunFolder) -> None:
        """Write the graph into a run folder, as one process would."""
        written_by_first(folder.path / "vocabulary.json", self.world, self._write_names)
        written_by_first(folder.path / "graph.safetensors", self.world, self._write_rows)

    def _write_names(self, take: Take) -> None:
        between = ",\n    "
        quoted = (json.dumps(name, ensure_ascii=False) for name in self.entities.names)
        first = not self.entities.edges[self.world.rank]
        take(b'{\n  "entities": [\n    ')
        told_first(joined_texts(quoted, between, first=first), self.world, take)
        relations = between.join(json.dumps(name, ensure_ascii=False) for name in self.relations)
        take(f'\n  ],\n  "relations": [\n    {relations}\n  ]\n}}\n'.encode())

    def _write_rows(self, take: Take) -> None:
        take(header({s: ("I32", [count, 3], 12 * count) for s, count in self.counts.items()}))
        for split in SPLITS:
            told_first(_portions(self.rows[split]), self.world, take)


def _portions(rows: Tensor) -> Iterator[bytes]:
    for some in rows.split(PORTION // 12):
        yield some.to(torch.int32).numpy().astype("<i4").tobytes()


def _stored_rows(folder: RunFolder, split: str, world: World) -> Tensor:
    """This process's rows of a split of the run's graph."""
    path = folder.path / "graph.safetensors"
    about = folder.about()
    share = world.share(about[split])
    try:
        with path.open("rb"), safe_open(path, "pt") as file:
            some = file.get_slice(split)
            whole = some.get_shape() == [about[split], 3]
            rows = some[share.start : share.stop].clone() if whole else None
    except (OSError, SafetensorError) as error:
        raise RunError(f"{path}: cannot be read: {error}; {RESTORE}") from None
    limits = torch.tensor([about["entities"], about["relations"], about["entities"]])
    return checked_facts(path, split, rows, limits)
