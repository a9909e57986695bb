"""What each body of a walk is worth, learned from the training facts alone.

Every training fact is asked in both directions, as if it were missing: walks do not take it. Its answer then
competes with all other ends of walks from the entity asked about, except those that are known answers too,
and with *none of them*, whose score is 0. The score of an end is the sum of the weights of the bodies that
lead there and a constant of the direction; weights minimise the cross-entropy of the answer. The embedding
has no part in it: it knows the training facts by heart, so that beside it no walk would seem to be worth
anything.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from golde.data.known import KnownFacts
from golde.evidence.walks import Reached, Walks
from golde.progress import Progress, silent

MOST_QUERIES = 200_000
"""Queries that are learned from, drawn where there are more; each is asked once, unless that is few steps."""
MOST_WALKS = 300_000_000
"""Walks that are taken for it, which bounds the time: where entities have many facts, fewer are asked."""
LOOKED_AT = 0.1
"""The share of these in which bodies are counted, before; each query at most once."""
FEWEST_ENDS = 2
"""Ends that a body leads to in these, over all queries of a direction; one with fewer has no weight."""

_BATCH, _FEWEST_STEPS = 500, 300
_RATE, _SHRINKING = 0.05, 1e-6


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


def learn(walks: Walks, *, seed: int, progress: Progress = silent) -> Weights:
    """The weights of all bodies that lead to enough ends."""
    generator = torch.Generator().manual_seed(seed)
    known = KnownFacts(walks.triples, walks.entities, walks.relations)
    asked, batch = _drawn(walks, generator)
    codes = _frequent(walks, known, asked)
    # The last 2R are the constants of directions.
    parameters = torch.zeros(
        len(codes) + 2 * walks.relations, device=walks.device, requires_grad=True
    )
    optimiser = torch.optim.Adam([parameters], lr=_RATE)
    parts = asked.split(batch)
    for step, part in enumerate(parts):
        optimiser.param_groups[0]["lr"] = _RATE * (1 - step / len(parts))
        optimiser.zero_grad()
        for queries, reached in _asked(walks, known, part):
            loss = _cross_entropy(walks, codes, parameters, queries, reached) / len(part)
            loss.backward()
        (_SHRINKING * parameters.square().sum()).backward()
        optimiser.step()
        progress(step + 1, len(parts))
    weights, ends = parameters.detach().tensor_split([len(codes)])
    distinct = torch.tensor(min(len(asked), 2 * len(walks.facts)))
    return Weights(codes, weights.clone(), ends.clone(), distinct)


def places(walks: Walks, codes: Tensor, direction: Tensor, body: Tensor) -> tuple[Tensor, Tensor]:
    """Where each body stands among codes, and whether it does."""
    code = direction * walks.base**walks.hops + body
    place = torch.searchsorted(codes, code).clamp(max=max(0, len(codes) - 1))
    return place, codes[place] == code if len(codes) else torch.zeros_like(code, dtype=torch.bool)


def _drawn(walks: Walks, generator: torch.Generator) -> tuple[Tensor, int]:
    """Numbers of queries in the order they are asked, and how many to ask at a time.

    Number i below T asks for the tail of fact i, number T + i for its head.
    """
    total = 2 * len(walks.facts)
    wanted = max(min(total, MOST_QUERIES), _FEWEST_STEPS * _BATCH)
    number = min(wanted, MOST_WALKS // max(1, walks.a_query)) if total else 0
    passes = [
        torch.randperm(total, generator=generator) for _ in range(-(-number // max(1, total)))
    ]
    asked = torch.cat([torch.empty(0, dtype=torch.int64), *passes])[:number]
    return asked.to(walks.device), max(1, min(_BATCH, number // _FEWEST_STEPS))


def _frequent(walks: Walks, known: KnownFacts, asked: Tensor) -> Tensor:
    """Codes of the bodies that lead to enough ends, as far as some of the queries tell.

    Each of these is asked once, where others may be asked several times.
    """
    some = asked[: min(2 * len(walks.facts), max(1, round(LOOKED_AT * len(asked))))]
    codes = [torch.empty(0, dtype=torch.int64, device=walks.device)]
    for part in some.split(_BATCH):
        for queries, reached in _asked(walks, known, part):
            codes.append(queries.direction[reached.query] * walks.base**walks.hops + reached.body)
    found, count = torch.unique(torch.cat(codes), return_counts=True)
    frequent: Tensor = found[count >= FEWEST_ENDS]
    return frequent


def _asked(walks: Walks, known: KnownFacts, which: Tensor) -> list[tuple[_Queries, Reached]]:
    """Training facts as queries, and where walks lead without them; other known answers are left out."""
    backward, fact = which >= len(walks.facts), which % len(walks.facts)
    head, relation, tail = walks.facts[fact].unbind(1)
    queries = _Queries(
        torch.where(backward, tail, head),
        relation + backward * walks.relations,
        torch.where(backward, head, tail),
        fact,
    )
    found = []
    for some in walks.batches(queries.entity):
        one = _Queries(*(column[some] for column in queries))
        reached = walks.reached(one.entity, one.fact)
        query, end, _ = reached
        other = known.contains(one.entity[query], one.direction[query], end)
        kept = ~other | (end == one.answer[query])
        found.append((one, Reached(*(column[kept] for column in reached))))
    return found


def _cross_entropy(
    walks: Walks, codes: Tensor, parameters: Tensor, queries: _Queries, reached: Reached
) -> Tensor:
    """Of each query's answer against the other ends and none of them, summed."""
    query, end, pair = reached.pairs(walks.entities)
    place, weighed = places(walks, codes, queries.direction[reached.query], reached.body)
    scores = parameters[len(codes) + queries.direction[query]]
    scores = scores.index_add(0, pair[weighed], parameters[place[weighed]])
    zeros = torch.zeros(len(queries.entity), device=walks.device)
    highest = zeros.scatter_reduce(0, query, scores.detach(), "amax")  # at least that of none
    total = (-highest).exp().index_add(0, query, (scores - highest[query]).exp())
    right = end == queries.answer[query]
    answered = zeros.index_add(0, query[right], scores[right])
    return (total.log() + highest - answered).sum()
