"""Holding facts out of a graph in one piece, of which each process has some rows.

The same facts as ``golde.data.splitting.split_facts`` takes. The first process draws the order of all facts,
which is the only thing of their number that it holds; all else is asked of the owner of an entity or of a
place in that order.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from golde.data.splitting import sizes_held_out
from golde.distributed.facts import owner_of
from golde.distributed.world import World


def hold_out(
    rows: Tensor,
    entities: int,
    relations: int,
    world: World,
    *,
    valid: float | int,
    test: float | int,
    seed: int,
) -> tuple[dict[str, Tensor], list[str]]:
    """Of the rows (n, 3) of this process those of train, valid and test, and notes about the draw."""
    counts = world.collect(torch.tensor(len(rows)))
    total = int(counts.sum())
    place = _drawn_order(counts.tolist(), seed, world)
    key = place + total * ~_irreplaceable(rows, entities, relations, world)  # the order of the draw
    stays = _first_of_entity(rows, key, entities, world)
    stays |= _first_of_relation(rows, key, relations, world)
    free = int(world.add_up((~stays).sum()))
    wanted, notes = sizes_held_out(total, free, valid=valid, test=test)

    # What is irreplaceable stays, so that the others are in the order of ``place``.
    at = torch.full_like(key, total)
    at[~stays] = _numbered(place[~stays], total, world)
    split = torch.searchsorted(
        torch.tensor([wanted["valid"], wanted["valid"] + wanted["test"]]), at, right=True
    )
    found = {name: rows[split == i] for i, name in enumerate(("valid", "test", "train"))}
    return found, notes


def _drawn_order(counts: list[int], seed: int, world: World) -> Tensor:
    """The place that each row of this process has in a random order of all."""
    total = sum(counts)
    place = np.empty(0, dtype=np.int64)
    if world.rank == 0:
        order = np.random.default_rng(seed).permutation(total)
        place = np.empty(total, dtype=np.int64)
        place[order] = np.arange(total)
    widths = counts if world.rank == 0 else [0] * world.size
    return torch.cat(world.deliver(torch.from_numpy(place).split(widths)))


def _irreplaceable(rows: Tensor, entities: int, relations: int, world: World) -> Tensor:
    """Whether a fact is the only one of its head, tail or relation."""
    ends, relation = rows[:, [0, 2]].flatten(), rows[:, 1]
    start = world.share(entities).start

    def once(id: Tensor) -> Tensor:
        return (id - start).bincount()[id - start] == 1

    alone = world.ask(owner_of(ends, entities, world), ends, lambda id: once(id).long())
    facts = world.add_up(relation.bincount(minlength=relations))
    return alone.view(-1, 2).any(1) | (facts[relation] == 1)


def _first_of_entity(rows: Tensor, key: Tensor, entities: int, world: World) -> Tensor:
    """Whether a fact is the first of its head or of its tail, by key."""
    owned = world.share(entities)
    ends = rows[:, [0, 2]].flatten()
    asked = torch.stack((ends, key.repeat_interleave(2)), dim=1)

    def is_least(pairs: Tensor) -> Tensor:
        id, key = pairs[:, 0] - owned.start, pairs[:, 1]
        return (key == _least(id, key, len(owned))[id]).long()

    found = world.ask(owner_of(ends, entities, world), asked, is_least)
    return found.view(-1, 2).any(1)


def _first_of_relation(rows: Tensor, key: Tensor, relations: int, world: World) -> Tensor:
    least = world.collect(_least(rows[:, 1], key, relations)).amin(0)
    return key == least[rows[:, 1]]


def _least(group: Tensor, key: Tensor, groups: int) -> Tensor:
    """The least key of each group, (groups,)."""
    largest = torch.iinfo(torch.int64).max
    return torch.full((groups,), largest).scatter_reduce_(0, group, key, "amin")


def _numbered(place: Tensor, total: int, world: World) -> Tensor:
    """How many of the places that all processes give are before each."""

    def before(places: Tensor) -> Tensor:
        counts = world.collect(torch.tensor(len(places)))
        rank = torch.empty_like(places)
        rank[places.argsort()] = torch.arange(len(places))
        return rank + counts[: world.rank].sum()

    return world.ask(owner_of(place, total, world), place, before)
