"""Seeded graphs with a planted pattern, of any size.

Each graph but the last three is many copies of a small motif whose relations follow one rule. Most
copies show the rule in train; from some of them facts are held out. Within a motif each relation is
one-to-one, so a space of a few dimensions can hold it exactly. Trees and orders are one piece each.
In all but the random graph every held-out fact follows from train by the rule. Half of the held-out
facts go to valid, half to test.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from golde.data.graph import KnowledgeGraph, drop_duplicates
from golde.data.numbering import Ids
from golde.data.vocabulary import Vocabulary
from golde.errors import GoldeError


def symmetric(
    copies: int = 100, relations: int = 2, held_out: float = 0.2, seed: int = 0
) -> KnowledgeGraph:
    """r(a, b) ⇒ r(b, a): the two ends of every edge of a cube, one relation to an axis.

    A held-out fact has its mirror in train.
    """
    _check_counts(copies=copies, relations=relations)
    rng = np.random.default_rng(seed)
    corners = np.arange(2**relations)
    motif = [
        (corner, axis, corner | 1 << axis)
        for axis in range(relations)
        for corner in corners
        if not corner >> axis & 1
    ]
    facts = _stamp(motif, len(corners), copies).reshape(-1, 3)
    train, held = _hold_one_of(facts, facts[:, ::-1], held_out, rng)
    names = [f"beside {axis}" for axis in range(relations)]
    return _graph("symmetric", copies * len(corners), names, train, held, rng)


def antisymmetric(
    copies: int = 60, relations: int = 2, length: int = 5, held_out: float = 0.2, seed: int = 0
) -> KnowledgeGraph:
    """r(a, b) ⇒ not r(b, a): rings walked one way, each step told under two names of a relation.

    A held-out step has its other name in train; its reverse, ``graph.test.flip(1)``, is never a
    fact and should rank low. Keep the length odd: round an even ring a model can take two steps
    for none, and then a step and its reverse look alike.
    """
    _check_counts(copies=copies, relations=relations)
    if length < 3:
        raise GoldeError(f"length is {length}; a shorter ring than 3 is its own reverse")
    rng = np.random.default_rng(seed)
    motif = [
        (ring * length + step, ring, ring * length + (step + 1) % length)
        for ring in range(relations)
        for step in range(length)
    ]
    size = relations * length
    facts = _stamp(motif, size, copies).reshape(-1, 3)
    train, held = _hold_one_of(facts, _renumber(facts, relations), held_out, rng)
    names = [f"{word} {ring}" for word in ("before", "ahead of") for ring in range(relations)]
    return _graph("antisymmetric", copies * size, names, train, held, rng)


def inverse(
    copies: int = 100, relations: int = 3, held_out: float = 0.2, seed: int = 0
) -> KnowledgeGraph:
    """r(a, b) ⇔ s(b, a): stars, each ray told from both ends.

    A held-out fact has its inverse in train.
    """
    _check_counts(copies=copies, relations=relations)
    rng = np.random.default_rng(seed)
    motif = [(0, ray, ray + 1) for ray in range(relations)]
    facts = _stamp(motif, relations + 1, copies).reshape(-1, 3)
    train, held = _hold_one_of(facts, _renumber(facts[:, ::-1], relations), held_out, rng)
    names = [f"{word} {ray}" for word in ("out", "back") for ray in range(relations)]
    return _graph("inverse", copies * (relations + 1), names, train, held, rng)


def composition(
    copies: int = 150, rules: int = 2, held_out: float = 0.2, seed: int = 0
) -> KnowledgeGraph:
    """r(a, b) and s(b, c) ⇒ t(a, c): two steps and their sum.

    The steps are all in train; of the sums some are held out.
    """
    _check_counts(copies=copies, rules=rules)
    rng = np.random.default_rng(seed)
    steps, sums = [], []
    for rule in range(rules):
        middle, end = 1 + 2 * rule, 2 + 2 * rule
        steps += [(0, rule, middle), (middle, rules + rule, end)]
        sums += [(0, 2 * rules + rule, end)]
    size = 1 + 2 * rules
    summed = _stamp(sums, size, copies).reshape(-1, 3)
    chosen = _choose(len(summed), held_out, rng)
    train = np.concatenate([_stamp(steps, size, copies).reshape(-1, 3), summed[~chosen]])
    names = [f"{word} {i}" for word in ("first", "second", "both") for i in range(rules)]
    return _graph("composition", copies * size, names, train, summed[chosen], rng)


def cycles(
    copies: int = 100, lengths: Sequence[int] = (3, 4, 5), held_out: float = 0.2, seed: int = 0
) -> KnowledgeGraph:
    """r applied n times leads back: cycles of each length n, one relation to a length.

    ``held_out`` is the share of cycles that lack one step; all their other steps are in train.
    """
    _check_counts(copies=copies)
    if min(lengths, default=0) < 2:
        raise GoldeError(
            f"lengths is {tuple(lengths)}; it needs one length or more, each at least 2"
        )
    rng = np.random.default_rng(seed)
    size, start = sum(lengths), 0
    train, held = [], []
    for relation, length in enumerate(lengths):
        motif = [(start + i, relation, start + (i + 1) % length) for i in range(length)]
        facts = _stamp(motif, size, copies)  # (copies, length, 3)
        open_ = np.zeros((copies, length), dtype=bool)
        open_[np.arange(copies), rng.integers(length, size=copies)] = True
        open_ &= _choose(copies, held_out, rng)[:, None]
        train.append(facts[~open_])
        held.append(facts[open_])
        start += length
    names = [f"turn {length}" for length in lengths]
    return _graph("cycles", copies * size, names, np.concatenate(train), np.concatenate(held), rng)


def tree(
    depth: int = 5,
    branching: int = 3,
    closure: bool = True,
    held_out: float = 0.2,
    seed: int = 0,
) -> KnowledgeGraph:
    """The parent of a node is one, its ancestors are the parent and the parent's ancestors.

    With ``closure``: ``parent`` and ``ancestor`` facts; held out are ancestors beyond the parent,
    while the chain of parents is in train. Without: ``parent`` links and a ``sibling`` round in
    each family; held out are links to the parent, from a ``held_out`` share of the families, which
    a sibling's link in train gives away.
    """
    _check_counts(depth=depth, branching=branching)
    if branching < 2 and not closure:
        raise GoldeError(f"branching is {branching}; without closure it must be at least 2")
    rng = np.random.default_rng(seed)
    inner = sum(branching**level for level in range(depth))
    child = np.arange(1, inner * branching + 1)  # numbered level by level from the root, 0
    parent = (child - 1) // branching
    if closure:
        train, held = _closure(child, parent, branching, held_out, rng)
        names = ["parent", "ancestor"]
    else:
        first = child - (child - 1) % branching
        after = first + (child - first + 1) % branching
        lacking = np.zeros((inner, branching), dtype=bool)
        lacking[np.arange(inner), rng.integers(branching, size=inner)] = True
        lacking &= _choose(inner, held_out, rng)[:, None]
        links, mask = _facts(child, 0, parent), lacking.reshape(-1)
        train, held = np.concatenate([links[~mask], _facts(child, 1, after)]), links[mask]
        names = ["parent", "sibling"]
    return _graph("tree", len(child) + 1, names, train, held, rng)


def order(
    entities: int = 100, told: float = 0.5, held_out: float = 0.2, seed: int = 0
) -> KnowledgeGraph:
    """r(a, b) and r(b, c) ⇒ r(a, c), never r(b, a): one line of entities, each before all later ones.

    Every step to the next is in train. Of the farther pairs a share is ``told``, and of those a
    share held out; the rest is true but nowhere in the graph, and stays among the candidates. So
    the reverse of a fact, ``graph.test.flip(1)``, ranks below the middle for a model that has
    learned the order: the untold facts of its query belong before it, and nothing true behind it.
    """
    _check_counts(entities=entities)
    rng = np.random.default_rng(seed)
    line = rng.permutation(entities)
    first, second = np.triu_indices(entities, 1)
    facts, step = _facts(line[first], 0, line[second]), second == first + 1
    farther = facts[~step]
    farther = farther[_choose(len(farther), told, rng, "told")]
    chosen = _choose(len(farther), held_out, rng)
    train = np.concatenate([facts[step], farther[~chosen]])
    return _graph("order", entities, ["before"], train, farther[chosen], rng)


def mixture(copies: int = 100, seed: int = 0) -> KnowledgeGraph:
    """Symmetry, antisymmetry, inversion, composition and cycles side by side in one graph."""
    patterns = (symmetric, antisymmetric, inverse, composition, cycles)
    graphs = [pattern(copies=copies, seed=seed) for pattern in patterns]
    relations: list[str] = []
    train, valid, test = [], [], []
    entities = 0
    for graph in graphs:
        shift = torch.tensor([entities, len(relations), entities])
        train.append(graph.train + shift)
        valid.append(graph.valid + shift)
        test.append(graph.test + shift)
        relations += graph.relations.names
        entities += len(graph.entities)
    return KnowledgeGraph(
        _entities(entities),
        Vocabulary(relations, "relation"),
        torch.cat(train),
        torch.cat(valid),
        torch.cat(test),
        name="mixture",
    )


def random_graph(
    entities: int,
    relations: int,
    triples: int,
    *,
    zipf: float = 0.0,
    held_out: float = 0.01,
    seed: int = 0,
) -> KnowledgeGraph:
    """Facts drawn at random, for measuring speed: there is nothing in it to learn.

    The i-th entity is drawn with probability ∝ (i + 1)^(−zipf). Valid and test hold entities and
    relations seen in train only.
    """
    _check_counts(entities=entities, relations=relations, triples=triples)
    possible = entities * (entities - 1) * relations
    if triples > possible // 2:
        raise GoldeError(f"triples is {triples}; at most half of the {possible} possible facts")
    rng = np.random.default_rng(seed)
    weight = np.cumsum(np.arange(1, entities + 1, dtype=np.float64) ** -zipf)
    facts: Ids = np.empty((0, 3), dtype=np.int64)
    for _ in range(100):
        ends = np.searchsorted(weight, rng.random((2, triples)) * weight[-1], side="right")
        head, tail = np.minimum(ends, entities - 1)
        drawn = _facts(head, rng.integers(relations, size=triples), tail)[head != tail]
        facts, _ = drop_duplicates(np.concatenate([facts, drawn]))
        if len(facts) >= triples:
            break
    else:
        raise GoldeError(
            f"zipf is {zipf}: so steep that {triples} distinct facts do not come up; lower either"
        )
    facts = facts[:triples]
    held = _choose(triples, held_out, rng)
    seen_entity, seen_relation = np.zeros(entities, dtype=bool), np.zeros(relations, dtype=bool)
    seen_entity[facts[~held][:, 0::2]] = True
    seen_relation[facts[~held, 1]] = True
    held &= seen_entity[facts[:, 0]] & seen_relation[facts[:, 1]] & seen_entity[facts[:, 2]]
    names = [f"r{i}" for i in range(relations)]
    return _graph("random", entities, names, facts[~held], facts[held], rng)


def _closure(
    child: Ids, parent: Ids, branching: int, held_out: float, rng: np.random.Generator
) -> tuple[Ids, Ids]:
    """Parents and ancestors of every node; some of the farther ancestors held out."""
    farther, node, above = [], child, parent
    while len(node):
        farther.append(_facts(node, 1, above))
        node, above = node[above > 0], (above[above > 0] - 1) // branching
    beyond = np.concatenate(farther[1:]) if len(farther) > 1 else farther[0][:0]
    chosen = _choose(len(beyond), held_out, rng)
    return np.concatenate([_facts(child, 0, parent), farther[0], beyond[~chosen]]), beyond[chosen]


def _hold_one_of(
    facts: Ids, equals: Ids, share: float, rng: np.random.Generator
) -> tuple[Ids, Ids]:
    """Train and held-out facts, where each fact and its equal imply each other.

    From a share of the couples one of the two, at random, is held out.
    """
    chosen = _choose(len(facts), share, rng)
    first = rng.random(len(facts)) < 0.5
    train = np.concatenate([facts[~(chosen & first)], equals[~(chosen & ~first)]])
    held = np.concatenate([facts[chosen & first], equals[chosen & ~first]])
    return train, held


def _stamp(motif: Sequence[tuple[int, int, int]], size: int, copies: int) -> Ids:
    """The motif over entities 0 … size − 1, copied: (copies, facts, 3)."""
    facts: Ids = np.tile(np.array(motif, dtype=np.int64), (copies, 1, 1))
    facts[:, :, 0::2] += np.arange(copies)[:, None, None] * size
    return facts


def _renumber(facts: Ids, shift: int) -> Ids:
    """The same facts under relations numbered ``shift`` higher."""
    renumbered = facts.copy()
    renumbered[:, 1] += shift
    return renumbered


def _facts(head: Ids, relation: Ids | int, tail: Ids) -> Ids:
    return np.stack(np.broadcast_arrays(head, relation, tail), axis=1).astype(np.int64)


def _choose(
    count: int, share: float, rng: np.random.Generator, name: str = "held_out"
) -> NDArray[np.bool_]:
    """A mask with ``share`` of ``count`` places set."""
    if not 0 <= share <= 1:
        raise GoldeError(f"{name} is {share}; it is a share between 0 and 1")
    mask = np.zeros(count, dtype=np.bool_)
    mask[rng.permutation(count)[: round(share * count)]] = True
    return mask


def _graph(
    name: str,
    entities: int,
    relations: Sequence[str],
    train: Ids,
    held: Ids,
    rng: np.random.Generator,
) -> KnowledgeGraph:
    """A graph whose held-out facts are shared out evenly between valid and test."""
    held = rng.permutation(held)
    half = len(held) // 2
    return KnowledgeGraph(
        _entities(entities),
        Vocabulary(relations, "relation"),
        torch.from_numpy(rng.permutation(train)),
        torch.from_numpy(held[:half].copy()),
        torch.from_numpy(held[half:].copy()),
        name=name,
    )


def _entities(count: int) -> Vocabulary:
    return Vocabulary([f"e{i}" for i in range(count)], "entity")


def _check_counts(**counts: int) -> None:
    for name, count in counts.items():
        if count < 1:
            raise GoldeError(f"{name} is {count}; it must be at least 1")
