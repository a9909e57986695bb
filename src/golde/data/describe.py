"""What a graph is like: its sizes, its flaws, and the patterns its relations follow."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from golde.data.graph import SPLITS, KnowledgeGraph
from golde.data.numbering import Ids

CATEGORIES = ("1-1", "1-N", "N-1", "N-N")
_MANY = 1.5  # a side is "N" from this average on (Bordes et al., 2013)


def describe(graph: KnowledgeGraph, threshold: float = 0.5) -> dict[str, Any]:
    """Counts, overlaps and patterns, ready for JSON.

    Patterns are looked for in train, self-loops aside. A relation is reported symmetric when at
    least the ``threshold`` share of its facts are also there the other way round; two relations
    are reported inverse when that share of the larger one's facts are there the other way round
    under the smaller one.
    """
    of_relation = relation_categories(graph)
    per_head, per_tail = _fan_out(graph)
    symmetric, inverse = _mirrored_relations(graph, threshold)
    sizes = {
        split: torch.bincount(graph.split(split)[:, 1], minlength=len(graph.relations)).tolist()
        for split in SPLITS
    }
    return {
        "name": graph.name,
        "digest": graph.digest,
        "entities": len(graph.entities),
        "relations": len(graph.relations),
        "facts": {split: len(graph.split(split)) for split in SPLITS},
        "duplicates_dropped": graph.duplicates,
        "overlap": {f"{a}-{b}": _overlap(graph, a, b) for a, b in combinations(SPLITS, 2)},
        "unseen_in_train": {s: unseen(graph, graph.split(s)) for s in ("valid", "test")},
        "categories": {category: of_relation.count(category) for category in CATEGORIES},
        "symmetric": symmetric,
        "inverse": inverse,
        "per_relation": [
            {
                "relation": name,
                "category": of_relation[i],
                "tails_per_head": round(float(per_head[i]), 3),
                "heads_per_tail": round(float(per_tail[i]), 3),
                **{split: sizes[split][i] for split in SPLITS},
            }
            for i, name in enumerate(graph.relations)
        ],
        "notes": list(graph.notes),
    }


def relation_categories(graph: KnowledgeGraph) -> list[str]:
    """1-1, 1-N, N-1 or N-N for each relation: heads a tail has, then tails a head has, in train."""
    return categories(*_fan_out(graph))


def categories(per_head: NDArray[np.float64], per_tail: NDArray[np.float64]) -> list[str]:
    """The same from the average tails per head and heads per tail of each relation."""
    side = np.array(["1", "N"])
    heads, tails = side[(per_tail >= _MANY).astype(int)], side[(per_head >= _MANY).astype(int)]
    return [f"{head}-{tail}" for head, tail in zip(heads, tails, strict=True)]


def _fan_out(graph: KnowledgeGraph) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Average tails per head and heads per tail of each relation in train; 0 for one not there."""
    relations = len(graph.relations)
    head, relation, tail = graph.train.numpy().T
    facts = np.bincount(relation, minlength=relations)

    def per(end: Ids) -> NDArray[np.float64]:
        pairs = np.unique(end * relations + relation) % relations
        return averages(facts, np.bincount(pairs, minlength=relations))

    return per(head), per(tail)


def averages(facts: Ids, ends: Ids) -> NDArray[np.float64]:
    """Facts of each relation for one of its ends, of which it has so many; 0 where it has none."""
    found: NDArray[np.float64] = facts / np.maximum(ends, 1)
    return found


def _overlap(graph: KnowledgeGraph, one: str, other: str) -> int:
    return int(graph.known(one).contains(*graph.split(other).unbind(1)).sum())


def unseen(graph: KnowledgeGraph, triples: Tensor) -> dict[str, int]:
    """Entities of some facts (n, 3) that train never shows, and how many of the facts have one."""
    seen = torch.zeros(len(graph.entities), dtype=torch.bool)
    seen[graph.train[:, [0, 2]].flatten()] = True
    ends = triples[:, [0, 2]]
    new = ~seen[ends]
    return {"entities": len(torch.unique(ends[new])), "facts": int(new.any(dim=1).sum())}


def _mirrored_relations(
    graph: KnowledgeGraph, threshold: float
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Symmetric relations and inverse pairs, the clearest first."""
    relations, names = len(graph.relations), graph.relations
    triples = graph.train.numpy()
    triples = triples[triples[:, 0] != triples[:, 2]]
    sizes = np.bincount(triples[:, 1], minlength=relations)
    codes, counts = _mirrors(triples, len(graph.entities), relations)
    first, second = np.divmod(codes, relations)
    shares = counts / np.maximum(sizes[first], sizes[second])
    symmetric, inverse = [], []
    for i in np.argsort(-shares, kind="stable"):
        one, other, share = int(first[i]), int(second[i]), round(float(shares[i]), 4)
        if shares[i] < threshold:
            break
        if one == other:
            symmetric.append({"relation": names[one], "share": share})
        elif one < other:
            inverse.append({"relation": names[one], "inverse": names[other], "share": share})
    return symmetric, inverse


def _mirrors(
    triples: Ids, entities: int, relations: int, at_a_time: int = 1 << 22
) -> tuple[Ids, Ids]:
    """For pairs of relations, coded r * R + s: how many (h, r, t) have (t, s, h) beside them."""
    head, relation, tail = triples.T
    forward = head * entities + tail
    order = np.argsort(forward, kind="stable")
    forward, partner = forward[order], relation[order]
    backward = tail * entities + head
    start = np.searchsorted(forward, backward, side="left")
    count = np.searchsorted(forward, backward, side="right") - start

    # Where many relations join the same two entities there are many pairs: count them in parts.
    ends = np.cumsum(count)
    cuts = np.searchsorted(ends, np.arange(at_a_time, ends.max(initial=0), at_a_time))
    found = [np.empty((0, 2), dtype=np.int64)]
    for rows in np.split(np.arange(len(triples)), cuts):
        each = count[rows]
        within = np.arange(each.sum()) - np.repeat(np.cumsum(each) - each, each)
        mirror = partner[np.repeat(start[rows], each) + within]
        code = np.repeat(relation[rows], each) * relations + mirror
        found.append(np.stack(np.unique(code, return_counts=True), axis=1))
    codes, counts = np.concatenate(found).T
    codes, place = np.unique(codes, return_inverse=True)
    return codes, np.bincount(place, weights=counts).astype(np.int64)
