"""The shape of each relation's map: curvature, stretch, boost, angles, determinant, involution error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from golde.analysis.links import Links
from golde.analysis.rules import involution_errors
from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError
from golde.geometry import GEOMETRIES, Geometry, Term
from golde.models import GoldE, Model
from golde.progress import Progress, silent

_RELATIONS_AT_ONCE = 32


@dataclass(frozen=True, eq=False)
class GroupGeometry:
    """The maps of one relation in M equal components of dimension K."""

    term: Term
    angles: Tensor
    """``|arg λ|`` of the eigenvalues λ of the rotation, in degrees: 0 is kept, 180 reflected; (M, K)."""
    determinant: Tensor  # (M,), 1 or −1
    weights: Tensor | None = None
    """Elliptic weights p of ``Σ p x² = c``, whose semi-axes are as 1/√p; (M, K)."""
    curvature: Tensor | None = None
    """``−1/β``; (M,)."""
    boost: Tensor | None = None
    """``‖b‖``: the boost moves the origin by ``√β asinh ‖b‖``; (M,)."""

    @property
    def stretch(self) -> Tensor | None:
        """``√(max p / min p)``: how many times longer the longest axis is than the shortest, (M,)."""
        if self.weights is None:
            return None
        return (self.weights.amax(1) / self.weights.amin(1)).sqrt()

    def figures(self) -> dict[str, Tensor]:
        """What there is, by name."""
        all_of_it = {
            "curvature": self.curvature,
            "boost": self.boost,
            "stretch": self.stretch,
            "weights": self.weights,
            "angles": self.angles,
            "determinant": self.determinant,
        }
        return {name: values for name, values in all_of_it.items() if values is not None}


@dataclass(frozen=True, eq=False)
class RelationGeometry:
    """The map of one relation's forward direction."""

    relation: str
    facts: int
    """In train."""
    groups: list[GroupGeometry]
    involution_error: float
    """How far applying the map twice leads from the start: 0 for an involution; see ``rules``."""

    def pooled(self, name: str) -> Tensor:
        """The values of a figure over all components that have it, flat."""
        found = [
            group.figures()[name].flatten() for group in self.groups if name in group.figures()
        ]
        return torch.cat(found) if found else torch.empty(0)

    def as_dict(self, *, components: bool) -> dict[str, Any]:
        """Ready for JSON: the spread of each figure and, if asked for, its value in every component."""
        groups = []
        for group in self.groups:
            entry: dict[str, Any] = {
                "space": str(group.term),
                "geometry": GEOMETRIES[group.term.letter].word.lower(),
            }
            for name, values in group.figures().items():
                entry[name] = spread(values)
                if components:
                    entry[name]["components"] = values.tolist()
            groups.append(entry)
        return {
            "relation": self.relation,
            "facts": self.facts,
            "involution_error": self.involution_error,
            "groups": groups,
        }


def spread(values: Tensor) -> dict[str, Any]:
    """Lowest, middle and highest value."""
    return {
        "min": float(values.min()),
        "median": float(values.flatten().quantile(0.5)),
        "max": float(values.max()),
    }


def relation_geometry(
    model: Model,
    graph: KnowledgeGraph,
    relations: Sequence[int] | None = None,
    *,
    links: Links | None = None,
    progress: Progress = silent,
) -> list[RelationGeometry]:
    """The geometry of these relations, or of all; with ``reciprocal`` that of their forward direction.

    ``links`` are those of the graph, from who asks several times; they are made here if not given.
    """
    model = checked(model)
    model.refuse_divergence()
    wanted = list(range(len(graph.relations)) if relations is None else relations)
    facts = torch.bincount(graph.train[:, 1], minlength=len(graph.relations)).tolist()
    errors = involution_errors(model, links or Links(graph), wanted)
    found: list[RelationGeometry] = []
    for some in torch.tensor(wanted).split(_RELATIONS_AT_ONCE):
        groups = [
            _group(group, term, some.to(model.device))
            for group, term in zip(model.geometries, model.signature, strict=True)
        ]
        for relation, each in zip(some.tolist(), zip(*groups, strict=True), strict=True):
            found.append(
                RelationGeometry(
                    graph.relations[relation], facts[relation], list(each), errors[len(found)]
                )
            )
        progress(len(found), len(wanted))
    return found


def checked(model: Model) -> GoldE:
    """The model, if it has curved components."""
    if not isinstance(model, GoldE):
        raise GoldeError(
            f"a model of model.kind = {model.config.kind!r} has no curved components to describe; "
            "ask a run of model.kind = 'golde'"
        )
    return model


@torch.no_grad()
def _group(group: Geometry, term: Term, relation: Tensor) -> list[GroupGeometry]:
    """One group of components, a description for each relation."""
    maps = {name: value.double().cpu() for name, value in group.maps(relation)._asdict().items()}
    rotation = maps["Q"] if "Q" in maps else maps["G"]  # (r, M, K, K)
    columns: dict[str, Tensor] = {}
    if "p" in maps:
        root = maps["p"].sqrt()
        columns["weights"] = maps["p"]
        rotation = root.unsqueeze(-1) * rotation / root.unsqueeze(-2)  # orthogonal, the same λ
    if "beta" in maps:
        columns["curvature"] = -1 / maps["beta"]
        columns["boost"] = maps["b"].norm(dim=-1)
    columns["angles"] = torch.linalg.eigvals(rotation).angle().abs().rad2deg()
    columns["determinant"] = torch.linalg.det(rotation).round()
    return [
        GroupGeometry(term, **{name: values[i] for name, values in columns.items()})
        for i in range(len(relation))
    ]
