"""False claims of the right type: what a fact must be told apart from."""

from __future__ import annotations

import torch
from torch import Tensor

from golde.data.graph import KnowledgeGraph
from golde.evaluation.ranking import both_sides

_TRIES = 4
"""Draws for each negative that is wanted; those known to be facts and those drawn before are left out."""

_QUERIES_AT_ONCE = 1 << 16


def typed_negatives(
    graph: KnowledgeGraph, facts: Tensor, each: int, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Negatives of facts (n, 3): rows (m, 3), and which fact each was made from, (m,).

    Of every fact each side in turn is replaced by up to ``each`` different entities, drawn uniformly from
    those that train shows on that side of the relation. What is a fact of any split is never drawn, as in
    filtered ranking. There are fewer where a side has few other entities, or most are known.
    """
    generator = torch.Generator().manual_seed(seed)
    relations, entities = len(graph.relations), len(graph.entities)
    _, direction, answer = both_sides(graph.train, relations)
    pool = torch.unique(direction * entities + answer)  # sorted by direction, then entity
    starts = torch.searchsorted(pool, torch.arange(2 * relations + 1) * entities)
    asked = torch.stack(both_sides(facts, relations)[:2])  # (2, 2n)
    made, source = [], []
    for part in torch.arange(asked.shape[1]).split(_QUERIES_AT_ONCE):
        entity, direction = asked[:, part]
        first, size = starts[direction], starts[direction + 1] - starts[direction]
        draws = torch.rand(len(part), _TRIES * each, generator=generator, dtype=torch.float64)
        place = first.unsqueeze(1) + (draws * size.unsqueeze(1)).long()  # (Q, tries)
        drawn = pool[place.clamp(max=len(pool) - 1)] % entities
        known = graph.known().contains(entity.unsqueeze(1), direction.unsqueeze(1), drawn)
        good = ~known & ~_repeated(drawn) & (size > 0).unsqueeze(1)
        row, column = (good & (good.cumsum(1) <= each)).nonzero().unbind(1)
        backward = (direction >= relations)[row]
        own, other = entity[row], drawn[row, column]
        made.append(
            torch.stack(
                [
                    torch.where(backward, other, own),
                    direction[row] % relations,
                    torch.where(backward, own, other),
                ],
                1,
            )
        )
        source.append(part[row] % len(facts))
    return torch.cat(made), torch.cat(source)


def _repeated(drawn: Tensor) -> Tensor:
    """Whether each entry of a row equals an earlier one of it."""
    values, order = drawn.sort(stable=True, dim=1)
    again = torch.zeros_like(drawn, dtype=torch.bool)
    again[:, 1:] = values[:, 1:] == values[:, :-1]
    return torch.zeros_like(again).scatter(1, order, again)
