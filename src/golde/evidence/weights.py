"""What each body of a walk is worth, learned from the training facts alone.

Every training fact is asked in both directions, as if it were missing: walks do not take it. Its answer
then competes with all other ends of walks from the entity asked about, except those that are known answers
too, and with *none of them*, whose score is 0. The score of an end is a constant of the direction and the
sum, over the bodies that lead there, of the weight of the body times its strength. Weights minimise the
cross-entropy of the answer and, so that few questions do not settle much, their own squares. The embedding
has no part in it: it knows the training facts by heart, so that beside it no walk would seem worth anything.

Walking takes most of the time, so it is done once: of the wrong ends of each question some are drawn and
kept, each standing for as many as it was drawn from, and the minimum is found on these. Where few are kept,
it is not quite that of all ends: rare wrong ends of much weight are missed, which ranks no worse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from golde.data.known import KnownFacts
from golde.evidence.walks import Reached, Walks
from golde.progress import Progress, silent

MOST_QUERIES = 200_000
"""Queries that are learned from, drawn where there are more."""
MOST_KEPT = 1 << 23
"""Bodies that are kept of wrong ends, over all queries, which bounds the memory; those of answers all are."""
SPREAD = 1.0
"""How far weights are expected to lie from 0, and constants of directions from each other,"""
SPREAD_OF_ALL = 5.0
"""and what these have in common from 0."""

_AT_ONCE = 500
_ROUNDS, _ITERATIONS, _HISTORY = 6, 10, 10


class Weights(NamedTuple):
    """The worth of bodies by direction: codes ``direction * (2R + 1)^hops + body`` ascending, (n,)."""

    codes: Tensor
    weights: Tensor  # (n,)
    ends: Tensor  # (2R,) of any end that is reached
    asked: Tensor  # () queries that this was learned from


class _Queries(NamedTuple):
    """Training facts asked in one direction each, (B,)."""

    entity: Tensor
    direction: Tensor
    answer: Tensor
    fact: Tensor


class Sample(NamedTuple):
    """Ends of Q queries, (p,) each, and the bodies that lead there, (n,) each."""

    query: Tensor
    right: Tensor
    """Whether it is the answer."""
    stands_for: Tensor
    """How many ends of its query this one was drawn from, as a logarithm."""
    end: Tensor
    """Which of the ends a body leads to."""
    code: Tensor
    strength: Tensor


def learn(
    walks: Walks,
    *,
    seed: int,
    most_walks: int,
    unjoined: bool = False,
    progress: Progress = silent,
) -> Weights:
    """The weights of all bodies that lead to ends that are kept.

    So many walks are taken: where entities have many of them, few queries are asked. With ``unjoined``, as
    if no fact was ever missing between two entities that another one joins: such facts are not asked, and
    such ends do not compete.
    """
    generator = torch.Generator().manual_seed(seed)
    known = KnownFacts(walks.triples, walks.entities, walks.relations)
    asked = _drawn(walks, generator, most_walks, unjoined)
    most = MOST_KEPT // max(1, len(asked))
    parts = asked.split(_AT_ONCE)
    samples, directions, before = [], [torch.empty_like(asked[:0])], 0
    for number, part in enumerate(parts):
        for queries, reached in _asked(walks, known, part):
            if unjoined:
                reached = _without_joined(walks, reached)
            samples.append(_kept(walks, queries, reached, most, before, generator))
            directions.append(queries.direction)
            before += len(queries.entity)
        progress(number + 1, len(parts) + _ROUNDS)
    whole, codes = _numbered(samples, walks.device)
    weights, ends = _fitted(
        whole,
        torch.cat(directions),
        len(codes),
        2 * walks.relations,
        lambda done: progress(len(parts) + done, len(parts) + _ROUNDS),
    )
    return Weights(codes, weights, ends, torch.tensor(len(asked)))


def places(walks: Walks, codes: Tensor, direction: Tensor, body: Tensor) -> tuple[Tensor, Tensor]:
    """Where each body stands among codes, and whether it does."""
    code = direction * walks.base**walks.hops + body
    place = torch.searchsorted(codes, code).clamp(max=max(0, len(codes) - 1))
    return place, codes[place] == code if len(codes) else torch.zeros_like(code, dtype=torch.bool)


def _drawn(walks: Walks, generator: torch.Generator, most_walks: int, unjoined: bool) -> Tensor:
    """Numbers of the queries that are asked.

    Number i below T asks for the tail of fact i, number T + i for its head.
    """
    facts = len(walks.facts)
    allowed = torch.arange(2 * facts)
    if unjoined and walks.hops == 1:
        return allowed[:0].to(walks.device)  # every end would be joined
    if unjoined:
        head, _, tail = walks.facts.cpu().unbind(1)
        pair = torch.minimum(head, tail) * walks.entities + torch.maximum(head, tail)
        _, row, count = torch.unique(pair, return_inverse=True, return_counts=True)
        allowed = allowed[(count[row] == 1).repeat(2)]
    number = min(MOST_QUERIES, max(1, most_walks // max(1, walks.a_query)))
    order = torch.randperm(len(allowed), generator=generator)[:number]
    return allowed[order].to(walks.device)


def _asked(walks: Walks, known: KnownFacts, which: Tensor) -> Iterator[tuple[_Queries, Reached]]:
    """Training facts as queries, and where walks lead without them; other known answers are left out."""
    backward, fact = which >= len(walks.facts), which % len(walks.facts)
    head, relation, tail = walks.facts[fact].unbind(1)
    queries = _Queries(
        torch.where(backward, tail, head),
        relation + backward * walks.relations,
        torch.where(backward, head, tail),
        fact,
    )
    for some in walks.batches(queries.entity):
        one = _Queries(*(column[some] for column in queries))
        reached = walks.reached(one.entity, one.fact)
        query, end, *_ = reached
        other = known.contains(one.entity[query], one.direction[query], end)
        yield one, reached.only(~other | (end == one.answer[query]))


def _without_joined(walks: Walks, reached: Reached) -> Reached:
    """Only the ends that no single fact leads to."""
    *_, pair = reached.pairs(walks.entities)
    joined = torch.zeros_like(pair, dtype=torch.bool)
    joined[pair[reached.body < walks.base]] = True
    return reached.only(~joined[pair])


def _kept(
    walks: Walks,
    queries: _Queries,
    reached: Reached,
    most: int,
    before: int,
    generator: torch.Generator,
) -> Sample:
    """The answer of each query, and of the other ends so many that about ``most`` bodies are kept."""
    query, end, pair = reached.pairs(walks.entities)
    bodies = torch.bincount(reached.query, minlength=len(queries.entity))
    share = (most / bodies.clamp(min=1)).clamp(max=1)
    right = end == queries.answer[query]
    draw = torch.rand(len(query), generator=generator).to(share)
    kept = right | (draw < share[query])
    row, number = kept[pair], kept.cumsum(0) - 1
    directions = queries.direction[reached.query[row]]
    return Sample(
        query[kept] + before,
        right[kept],
        torch.where(right, 0, -share[query].log())[kept],
        number[pair[row]],
        directions * walks.base**walks.hops + reached.body[row],
        reached.strength[row],
    )


def _numbered(samples: list[Sample], device: torch.device) -> tuple[Sample, Tensor]:
    """All of them as one, with numbers for codes, and the codes."""
    none = torch.empty(0, dtype=torch.int64, device=device)
    empty = Sample(none, none.bool(), none.float(), none, none, none.float())
    ends = 0
    moved = [empty]
    for sample in samples:
        moved.append(sample._replace(end=sample.end + ends))
        ends += len(sample.query)
    whole = Sample(*(torch.cat(column) for column in zip(*moved, strict=True)))
    codes, number = torch.unique(whole.code, return_inverse=True)
    return whole._replace(code=number), codes


def _fitted(
    sample: Sample, direction: Tensor, codes: int, directions: int, progress: Callable[[int], None]
) -> tuple[Tensor, Tensor]:
    """Weights (codes,) and constants (directions,) of least loss, by L-BFGS.

    In double precision: in single, the order of a sum shows in the third decimal.
    """
    sample = sample._replace(
        strength=sample.strength.double(), stands_for=sample.stands_for.double()
    )
    # Those of bodies, how far each direction is from what all have in common, and that.
    parameters = sample.strength.new_zeros(codes + directions + 1, requires_grad=True)
    spread = torch.full_like(parameters, SPREAD, requires_grad=False)
    spread[-1] = SPREAD_OF_ALL
    optimiser = torch.optim.LBFGS(
        [parameters],
        max_iter=_ITERATIONS,
        history_size=_HISTORY,
        line_search_fn="strong_wolfe",
    )

    def loss() -> Tensor:
        optimiser.zero_grad()
        weights, apart, common = parameters.split([codes, directions, 1])
        found = cross_entropy(sample, direction, weights, common + apart)
        found = found + (parameters / spread).square().sum() / 2
        found = found / max(1, len(direction))
        found.backward()
        return found

    for done in range(_ROUNDS):
        optimiser.step(loss)
        progress(done + 1)
    weights, apart, common = parameters.detach().split([codes, directions, 1])
    return weights.float(), (common + apart).float()


def cross_entropy(sample: Sample, direction: Tensor, weights: Tensor, ends: Tensor) -> Tensor:
    """Of each query's answer against the other ends and none of them, summed; queries (Q,) by direction."""
    bodies = weights.index_select(0, sample.code) * sample.strength
    scores = ends.index_select(0, direction[sample.query]).index_add(0, sample.end, bodies)
    stand = scores + sample.stands_for
    none = stand.new_zeros(len(direction))
    highest = none.scatter_reduce(0, sample.query, stand.detach(), "amax")  # at least that of none
    total = (-highest).exp().index_add(0, sample.query, (stand - highest[sample.query]).exp())
    return (total.log() + highest).sum() - scores[sample.right].sum()
