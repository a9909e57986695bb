"""One component as it can be looked at: a Poincaré disk, or three axes of an ellipsoid."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from golde.analysis.relation_geometry import checked
from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError
from golde.geometry import GEOMETRIES, Geometry, Term, gather
from golde.models import GoldE, Model

GROUPS_SHOWN = 20
"""Groups of entities that have a name of their own; the others share one."""

_AXES_FROM = 4096  # entities that directions are taken from, evenly spread
_ROWS_AT_ONCE = 1 << 14


@dataclass(frozen=True, eq=False)
class View:
    """Entities in one component, in the plane or in space."""

    component: str
    """Such as ``Q9 #3``, counted from 1 among its equals."""
    geometry: str
    points: Tensor
    """(n, 2) in the unit disk of a hyperbolic component, (n, 3) of any other."""
    depth: Tensor
    """The distance of each from the origin in the component, with nothing projected away, (n,)."""
    kept: float
    """The share of the squared length that the directions shown keep."""
    curvature: float | None = None
    """Of a hyperbolic component."""
    semi_axes: list[float] | None = None
    """Of the ellipsoid about the origin that holds half of the points, along the directions shown."""


@torch.no_grad()
def view(
    model: Model,
    component: int,
    entity: Tensor,
    relation: int | None = None,
    *,
    moved: bool = False,
) -> View:
    """Entities (n,) in the component at a place, counted from 0 over the signature.

    With a relation its curvature or weights shape the view, and ``moved`` shows entities where its forward
    direction takes them; without one β = 1 and p = 1. Directions shown are those in which all entities lie
    farthest out, so views of some of them agree: principal ones, or axes of an ellipsoid with weights.
    """
    model = checked(model)
    group, term, place, columns = _located(model, component)
    name = f"{term.letter}{term.dimension} #{place + 1}"
    entity = entity.to(model.device)
    vectors = gather(model.entity[:, columns], entity)  # (n, K)
    if moved:
        if relation is None:
            raise GoldeError("moved points need the relation that moves them; name one")
        parts = entity.split(_ROWS_AT_ONCE)
        arrived = (
            model.transport(gather(model.entity, e), torch.full_like(e, relation)) for e in parts
        )
        vectors = torch.cat([part[:, columns] for part in arrived])
    vectors = vectors.double().cpu()
    spread = model.entity[:: -(-model.entities // _AXES_FROM), columns].double().cpu()
    geometry = GEOMETRIES[term.letter].word.lower()
    maps = None
    if relation is not None:
        maps = group.maps(torch.tensor([relation], device=model.device))
    if term.letter == "Q":
        beta = 1.0 if maps is None else float(maps.beta[0, place])
        axes = principal_axes(spread, 2)
        return View(
            name,
            geometry,
            in_disk(vectors, axes, beta).float(),
            vectors.norm(dim=1).float(),
            share_kept(vectors, axes),
            curvature=-1 / beta,
        )
    weights = None if maps is None else getattr(maps, "p", None)
    p = torch.ones(term.numbers) if weights is None else weights[0, place].cpu()
    p = p.double()
    axes = principal_axes(spread, 3) if weights is None else _longest(spread, p, 3)
    flat = vectors @ axes.T  # (n, 3)
    squares = flat.square() @ (axes.square() @ p)
    length = (vectors.square() @ p).sqrt()
    half = float(squares.median().sqrt())
    return View(
        name,
        geometry,
        flat.float(),
        length.float(),
        float(squares.sum() / length.square().sum().clamp_min(1e-30)),
        semi_axes=[half / float(w) ** 0.5 if w else 0.0 for w in axes.square() @ p],
    )


def component_names(model: GoldE) -> list[str]:
    """The components in the order of the signature, such as ``P8 #1``."""
    return [
        f"{term.letter}{term.dimension} #{i}"
        for term in model.signature
        for i in range(1, term.count + 1)
    ]


def principal_axes(vectors: Tensor, count: int) -> Tensor:
    """The directions (count, K) in which vectors (n, K) are longest; rows of zeros where K is too small."""
    axes: Tensor = torch.linalg.svd(vectors, full_matrices=False).Vh[:count]
    return torch.nn.functional.pad(axes, (0, 0, 0, count - len(axes)))


def in_disk(vectors: Tensor, axes: Tensor, beta: float) -> Tensor:
    """``tanh(‖v‖ / 2√β) v/‖v‖`` of tangent vectors (n, K) projected to two directions (2, K), (n, 2).

    Distances from the centre are true but for what the projection drops.
    """
    flat = vectors @ axes.T
    norm = torch.linalg.vector_norm(flat, dim=1, keepdim=True).clamp_min(1e-12)
    placed: Tensor = torch.tanh(norm / (2 * beta**0.5)) * flat / norm
    return placed


def share_kept(vectors: Tensor, axes: Tensor) -> float:
    """The share of the squared length of vectors (n, K) that a projection to axes keeps."""
    return float((vectors @ axes.T).square().sum() / vectors.square().sum().clamp_min(1e-30))


def groups(graph: KnowledgeGraph, relation: int | None = None) -> tuple[Tensor, list[str]]:
    """A group of each entity, (E,), and the names of the groups, the largest first; −1 is none.

    Of a relation the groups are its tails, of entities that have one in any split. Without one they are the
    relation and side that an entity stands on most often in train, such as ``capital of →``.
    """
    R = len(graph.relations)
    if relation is None:
        head, kind, tail = graph.train.unbind(1)
        entity, value = torch.cat([head, tail]), torch.cat([kind, kind + R])
        names = [f"{name} →" for name in graph.relations] + [
            f"→ {name}" for name in graph.relations
        ]
    else:
        triples = torch.cat([graph.train, graph.valid, graph.test])
        entity, _, value = triples[triples[:, 1] == relation].unbind(1)
        names = list(graph.entities)
    code, count = torch.unique(entity * len(names) + value, return_counts=True)
    code = code[count.argsort(stable=True)]
    owner, by_owner = (code // len(names)).sort(
        stable=True
    )  # of each entity the most frequent last
    last = torch.ones_like(owner, dtype=torch.bool)
    last[:-1] = owner[:-1] != owner[1:]
    found = torch.full((len(graph.entities),), -1)
    found[owner[last]] = code[by_owner][last] % len(names)
    return _named(found, names)


def _named(value: Tensor, names: list[str]) -> tuple[Tensor, list[str]]:
    """Values numbered by how many entities have them, those of the rarest ones alike."""
    sizes = torch.bincount(value[value >= 0], minlength=len(names))
    order = sizes.argsort(descending=True, stable=True)
    order = order[sizes[order] > 0]
    number = torch.full((len(names) + 1,), -1)  # the last place is that of −1
    number[order] = torch.arange(len(order)).clamp(max=GROUPS_SHOWN)
    shown = [names[i] for i in order[:GROUPS_SHOWN].tolist()]
    return number[value], [*shown, "other"] if len(order) > GROUPS_SHOWN else shown


def _located(model: GoldE, component: int) -> tuple[Geometry, Term, int, slice]:
    """The group, term, place in it, and columns of the component at a place over the signature."""
    column, left = 0, component
    for group, term in zip(model.geometries, model.signature, strict=True):
        if 0 <= left < term.count:
            start = column + left * term.numbers
            return group, term, left, slice(start, start + term.numbers)
        column, left = column + term.count * term.numbers, left - term.count
    raise GoldeError(
        f"there is no component {component + 1}; {model.signature} has {model.signature.components}"
    )


def _longest(vectors: Tensor, p: Tensor, count: int) -> Tensor:
    """The coordinate axes with the largest ``Σ p x²``, (count, K): on them the ellipsoid stands straight."""
    size = (vectors.square() * p).sum(0)
    chosen = size.argsort(descending=True, stable=True)[:count]
    axes = torch.eye(len(p), dtype=vectors.dtype)[chosen]
    return torch.nn.functional.pad(axes, (0, 0, 0, count - len(axes)))
