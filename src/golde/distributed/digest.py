"""The digest of a graph that no process has whole: that of ``KnowledgeGraph.digest``, bit for bit.

Names are sorted and facts ranked among them, each process having a range of either, and the first process
digests the ranges one after another as they come in.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from golde.data.graph import SPLITS
from golde.distributed.facts import owner_of
from golde.distributed.names import NameShare
from golde.distributed.streaming import PORTION, joined_texts, told_first
from golde.distributed.world import World


def shared_digest(
    names: NameShare, relations: Sequence[str], rows: Mapping[str, Tensor], world: World
) -> str:
    """SHA-256 of names and facts, whatever their order and ids; ``rows`` are those of this process."""
    digest = hashlib.sha256()
    before = world.collect(torch.tensor(len(names.ordered)))[: world.rank].sum()
    digest.update(b"[[")
    quoted = map(json.dumps, names.ordered)
    told_first(joined_texts(quoted, ", ", first=not before), world, digest.update)
    digest.update(f"], {json.dumps(sorted(relations))}]".encode())
    ranks = sorted(range(len(relations)), key=relations.__getitem__)
    rank_relation = torch.empty(len(ranks), dtype=torch.int64)
    rank_relation[torch.tensor(ranks, dtype=torch.int64)] = torch.arange(len(ranks))
    for split in SPLITS:
        facts = _ranked(rows[split], names, rank_relation, world)
        count = int(world.add_up(torch.tensor(len(facts))))
        digest.update(f"{split} {count}\n".encode())
        told_first(_portions(facts), world, digest.update)
    return _told(digest.hexdigest(), world)


def _ranked(rows: Tensor, names: NameShare, rank_relation: Tensor, world: World) -> Tensor:
    """This process's range of all facts, as places among sorted names and in the order of these."""
    entities, start = int(names.edges[-1]), int(names.edges[world.rank])
    ends = rows[:, [0, 2]].flatten()
    places = world.ask(names.owner(ends), ends, lambda id: names.places[id - start]).view(-1, 2)
    facts = torch.stack((places[:, 0], rank_relation[rows[:, 1]], places[:, 1]), dim=1)
    owner = owner_of(facts[:, 0], entities, world)
    order = owner.argsort(stable=True)
    parcels = facts[order].split(owner.bincount(minlength=world.size).tolist())
    mine = torch.cat(world.deliver(parcels))
    return mine[torch.from_numpy(np.lexsort(mine.numpy().T[::-1]))]


def _portions(facts: Tensor) -> Iterator[bytes]:
    for some in facts.split(PORTION // 24):
        yield some.numpy().astype("<i8").tobytes()


def _told(digest: str, world: World) -> str:
    """What the first process found, in all."""
    coded = torch.frombuffer(bytearray(bytes.fromhex(digest)), dtype=torch.uint8).long()
    return bytes(world.collect(coded)[0].tolist()).hex()
