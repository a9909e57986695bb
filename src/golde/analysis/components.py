"""What each component of the space adds to a distance."""

from __future__ import annotations

import torch
from torch import Tensor

from golde.models import GoldE, Model
from golde.models.transe import TransE

_NUMBERS_AT_ONCE = {"cpu": 1 << 20, "cuda": 1 << 24}
"""Of the entity table: on a CPU what stays in a core's cache, on a GPU what keeps it busy."""


def has_distance(model: Model) -> bool:
    """Whether scores are minus a distance, so that a map can miss by so and so much."""
    return isinstance(model, GoldE | TransE)


@torch.no_grad()
def component_terms(model: Model, rows: Tensor, direction: Tensor, answers: Tensor) -> Tensor:
    """``w_i · d_i(G_r x, y)^l`` of each component, (B, M): they add up to minus the score, biases aside.

    Rows (B, numbers) with answers (B, numbers) one by one, or one row (1, numbers) with all of them.
    TransE is one component, the norm of the difference.
    """
    if isinstance(model, TransE):
        difference = model.queries(rows, direction) - answers
        norm: Tensor = torch.linalg.vector_norm(difference, ord=model.config.norm, dim=-1)
        return norm.unsqueeze(1)
    if not isinstance(model, GoldE):
        raise TypeError(f"the scores of {type(model).__name__} are no distances")
    terms = []
    for group, weight, query, candidate in zip(
        model.geometries,
        model.weights,
        model.queries(rows, direction),
        model.candidates(answers),
        strict=True,
    ):
        x = (query.vector * candidate.vector).sum(-1)  # (M, B)
        distance = group.finish.value(x, *group.finish.sides(query.scalars, candidate.scalars))
        terms.append(weight * distance**model.config.norm)
    return torch.cat(terms).T


def tangent_distances(model: Model, row: Tensor, others: Tensor) -> Tensor:
    """``Σ_i ‖x_i − y_i‖`` over the components, from one row (numbers,) to others (N, numbers), (N,).

    In tangent coordinates, as ``entity_distances``: no relation's weights and curvature are in it.
    """
    sizes = [len(row)]
    if isinstance(model, GoldE):
        sizes = [term.numbers for term in model.signature for _ in range(term.count)]
    parts = (others - row).split(sizes, 1)
    return torch.stack([torch.linalg.vector_norm(part, dim=1) for part in parts]).sum(0)


@torch.no_grad()
def distances_from(model: Model, entity: int) -> Tensor:
    """``tangent_distances`` from one entity to all, (E,), on the CPU."""
    row = model.block(entity, entity + 1)[0]
    few = max(1, _NUMBERS_AT_ONCE[model.device.type] // len(row))
    parts = (model.block(start, start + few) for start in range(0, model.entities, few))
    return torch.cat([tangent_distances(model, row, part) for part in parts]).cpu()


def nearest(model: Model, entity: int, top: int) -> list[tuple[int, float]]:
    """The entities nearest to one by ``tangent_distances``, without itself, and how far they are."""
    distance = distances_from(model, entity)
    distance[entity] = torch.inf
    found = distance.topk(min(top, len(distance) - 1), largest=False)
    return list(zip(found.indices.tolist(), found.values.tolist(), strict=True))
