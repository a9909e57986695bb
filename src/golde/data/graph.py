"""A knowledge graph: names, and three splits of facts as integer tensors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from golde.data.known import KnownFacts
from golde.data.notes import note
from golde.data.numbering import Ids, NameIndex, no_facts
from golde.data.vocabulary import Vocabulary
from golde.errors import GoldeError

SPLITS = ("train", "valid", "test")

Named = Iterable[tuple[str, str, str]]
"""Facts as (head, relation, tail) names."""


@dataclass(frozen=True, eq=False, repr=False)
class KnowledgeGraph:
    """Facts as rows of (head, relation, tail) ids, each split without repeated rows."""

    entities: Vocabulary
    relations: Vocabulary
    train: Tensor  # (n, 3) int64, as are the other two
    valid: Tensor
    test: Tensor
    name: str = "graph"
    notes: tuple[str, ...] = ()
    """Harmless things found while reading, in words."""
    duplicates: int = 0
    """Repeated rows dropped while reading, over all splits."""

    @classmethod
    def from_triples(
        cls, train: Named, valid: Named = (), test: Named = (), name: str = "graph"
    ) -> KnowledgeGraph:
        """A graph from facts given by name."""
        index, notes, duplicates = NameIndex(), list[str](), 0
        splits = {}
        for split, facts in zip(SPLITS, (train, valid, test), strict=True):
            rows = [_checked(split, i, fact) for i, fact in enumerate(facts)]
            columns = zip(*rows, strict=True) if rows else ((), (), ())
            splits[split], dropped = drop_duplicates(index.number(*columns))
            notes += note(split, dropped, "duplicate row", "dropped")
            duplicates += dropped
        return cls.from_ids(index, splits, name, notes, duplicates)

    @classmethod
    def from_ids(
        cls,
        index: NameIndex,
        splits: Mapping[str, Ids],
        name: str,
        notes: Iterable[str] = (),
        duplicates: int = 0,
    ) -> KnowledgeGraph:
        """A graph from rows of ids numbered by ``index``."""
        train, valid, test = (torch.from_numpy(splits.get(s, no_facts())) for s in SPLITS)
        entities = Vocabulary(index.entities.names(), "entity")
        relations = Vocabulary(index.relations.names(), "relation")
        return cls(entities, relations, train, valid, test, name, tuple(notes), duplicates)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(self.split(split))} {split}" for split in SPLITS)
        return (
            f"KnowledgeGraph({self.name!r}: {len(self.entities)} entities, "
            f"{len(self.relations)} relations, {sizes})"
        )

    def split(self, name: str) -> Tensor:
        """The facts of one split."""
        if name not in SPLITS:
            raise GoldeError(f"unknown split {name!r}; it must be one of {', '.join(SPLITS)}")
        return {"train": self.train, "valid": self.valid, "test": self.test}[name]

    def known(self, *splits: str) -> KnownFacts:
        """The known facts of some splits, of all three by default; built once."""
        wanted = tuple(sorted(set(splits or SPLITS)))
        if wanted not in self._known:
            triples = torch.cat([self.split(name) for name in wanted])
            self._known[wanted] = KnownFacts(triples, len(self.entities), len(self.relations))
        return self._known[wanted]

    @cached_property
    def _known(self) -> dict[tuple[str, ...], KnownFacts]:
        return {}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content: names and facts, whatever their order and ids."""
        entities, relations = sorted(self.entities.names), sorted(self.relations.names)
        rank_entity = _ranks(self.entities.names)
        rank_relation = _ranks(self.relations.names)
        digest = hashlib.sha256(json.dumps([entities, relations]).encode())
        for split in SPLITS:
            head, relation, tail = self.split(split).numpy().T
            columns = rank_entity[head], rank_relation[relation], rank_entity[tail]
            facts = np.stack(columns, axis=1)[np.lexsort(columns[::-1])]
            digest.update(f"{split} {len(facts)}\n".encode())
            digest.update(facts.astype("<i8").tobytes())
        return digest.hexdigest()


def drop_duplicates(triples: Ids) -> tuple[Ids, int]:
    """The rows without repetitions, in order of first appearance, and how many were dropped."""
    entities, relations = triples.max(axis=0, initial=0)[[2, 1]] + 1
    # Numbering the pairs in use first keeps the second key far from the end of int64.
    pairs = np.unique(triples[:, 0] * relations + triples[:, 1], return_inverse=True)[1]
    first = np.unique(pairs * entities + triples[:, 2], return_index=True)[1]
    first.sort()
    return triples[first], len(triples) - len(first)


def _ranks(names: tuple[str, ...]) -> Ids:
    """The place each name takes when all are sorted."""
    order = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return ranks


def _checked(split: str, row: int, fact: tuple[str, str, str]) -> tuple[str, str, str]:
    if len(fact) != 3 or not all(isinstance(name, str) and name.strip() for name in fact):
        raise GoldeError(
            f"{split}[{row}] is {fact!r}; a fact is three non-empty strings (head, relation, tail)"
        )
    return fact
