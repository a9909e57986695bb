"""Learned maps as Poincaré disks, ellipsoid scaling and rotation spectrum. Needs the extra ``plots``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from golde.analysis.relation_geometry import RelationGeometry
from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError
from golde.models import GoldE
from golde.report.drawing import BLUE, FAINT, INK, ORANGE, SOFT, bare, save, short, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DISKS, ROWS, FACTS = 6, 20, 150
"""Relations with a disk, relations with a row, and facts drawn in a disk."""
BINS = 36
RINGS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)


class Disk(NamedTuple):
    """A hyperbolic component under one relation, seen as a disk."""

    component: str
    curvature: float
    arrived: Tensor  # (n, 2) heads where the relation takes them
    tails: Tensor  # (n, 2)
    kept: float
    """The share of the squared length that the two directions keep."""


def draw_geometry(
    folder: Path, model: GoldE, graph: KnowledgeGraph, found: Sequence[RelationGeometry]
) -> list[Path]:
    """Draw what there is into a folder; relations in the order given, the first ones if there are many."""
    letters = {term.letter for term in model.signature}
    pictures: list[tuple[str, Callable[[], Figure]]] = []
    if "Q" in letters:
        pictures.append(("poincare", lambda: disks(model, graph, found)))
    if "P" in letters:
        pictures.append(("ellipsoids", lambda: ellipsoids(found[:ROWS])))
    pictures.append(("rotations", lambda: rotations(found[:ROWS])))
    with style():
        figures = [(name, draw()) for name, draw in pictures]
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise GoldeError(f"{folder}: is a file; name a folder for the pictures") from None
        return [save(figure, folder / f"{name}.png") for name, figure in figures]


@torch.no_grad()
def disk(model: GoldE, graph: KnowledgeGraph, relation: int) -> Disk | None:
    """The hyperbolic component in which the relation's points lie farthest out, or None without facts.

    Tangent vectors are projected to their two principal directions and then placed at
    ``tanh(‖v‖ / 2√β) v/‖v‖``, so distances from the centre are true but for what the projection drops.
    """
    facts = graph.train[graph.train[:, 1] == relation]
    if not len(facts):
        return None
    drawn = torch.randperm(len(facts), generator=torch.Generator().manual_seed(0))[:FACTS]
    head, direction, tail = facts[drawn].to(model.entity.device).unbind(1)
    arrived = model.transport(model.entity[head], direction)
    points = torch.cat((arrived, model.entity[tail])).double().cpu()  # (2n, numbers)
    best: tuple[float, str, float, Tensor] | None = None
    start = 0
    for group, term in zip(model.geometries, model.signature, strict=True):
        stop = start + term.count * term.numbers
        if term.letter == "Q":
            (beta,) = group.maps(direction[:1]).beta.double().cpu()  # (M,)
            if model.config.curvature == "scale":
                beta = torch.ones_like(beta)
            parts = points[:, start:stop].unflatten(1, (term.count, term.numbers))
            out = (parts.norm(dim=2) / beta.sqrt()).median(0).values  # (M,)
            i = int(out.argmax())
            if best is None or float(out[i]) > best[0]:
                name = f"{term.letter}{term.dimension} #{i + 1}"
                best = float(out[i]), name, float(beta[i]), parts[:, i]
        start = stop
    if best is None:
        return None
    _, name, beta_, vectors = best
    axes = torch.linalg.svd(vectors, full_matrices=False).Vh[:2]  # (2, K) or fewer
    flat = vectors @ axes.T
    flat = torch.nn.functional.pad(flat, (0, 2 - flat.shape[1]))
    kept = float(flat.square().sum() / vectors.square().sum().clamp_min(1e-30))
    norm = flat.norm(dim=1, keepdim=True).clamp_min(1e-12)
    flat = torch.tanh(norm / (2 * beta_**0.5)) * flat / norm
    arrived, tails = flat.chunk(2)
    return Disk(name, -1 / beta_, arrived, tails, kept)


def disks(model: GoldE, graph: KnowledgeGraph, found: Sequence[RelationGeometry]) -> Figure:
    """One disk a relation."""
    from matplotlib.figure import Figure

    shown = [one.relation for one in found if one.facts][:DISKS] or [found[0].relation]
    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    figure = Figure(figsize=(3.6 * columns + (columns == 1), 4.3 * rows), facecolor="white")
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for ax, relation in zip(panels, shown, strict=False):
        _disk(ax, relation, disk(model, graph, graph.relations.id(relation)))
    for ax in panels[len(shown) :]:
        ax.remove()
    return figure


def _disk(ax: Axes, relation: str, one: Disk | None) -> None:
    """The part of the disk that holds the points, with rings about its centre."""
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Circle

    ax.set_title(short(relation), loc="left", fontsize=11, color=INK)
    ax.set(aspect="equal", xticks=[], yticks=[])
    bare(ax)
    if one is None:
        ax.set_xlabel("no training facts", fontsize=8, color=SOFT)
        return
    farthest = float(torch.cat((one.arrived, one.tails)).norm(dim=1).max())
    reach = min(1.04, 1.15 * farthest + 1e-3)
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach))
    for radius in (*(r for r in RINGS if r < reach), 1.0):
        edge = SOFT if radius == 1 else FAINT
        ax.add_patch(Circle((0, 0), radius, fill=False, edgecolor=edge, linewidth=1, zorder=0))
        if 0.35 * reach < radius < reach:
            ax.annotate(
                f"{radius:g}", (0, radius), ha="center", va="bottom", fontsize=7, color=SOFT
            )
    links = torch.stack((one.arrived, one.tails), 1).tolist()
    ax.add_collection(LineCollection(links, color=SOFT, alpha=0.5, linewidth=0.6, zorder=1))
    for points, color, what in (
        (one.tails, ORANGE, "tails"),
        (one.arrived, BLUE, "heads where the relation takes them"),
    ):
        x, y = points.T.tolist()
        ax.scatter(x, y, s=12, color=color, alpha=0.75, linewidth=0, label=what, zorder=2)
    ax.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        ncols=2,
        frameon=False,
        fontsize=8,
        handletextpad=0.1,
        columnspacing=1.0,
    )
    ax.set_xlabel(
        f"{one.component}, curvature {one.curvature:.2f}; rings: radius, 1 is infinity\n"
        f"two principal directions of the tangent vectors ({one.kept:.0%})",
        fontsize=8,
        color=SOFT,
        labelpad=20,
    )


def ellipsoids(found: Sequence[RelationGeometry]) -> Figure:
    """The semi-axes ``1/√p`` of every component, a row for each relation."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 1.1 + 0.34 * len(found)), facecolor="white")
    ax = figure.subplots()
    for row, one in enumerate(found):
        axes = one.pooled("weights").rsqrt().sort().values
        low, middle, high = axes.quantile(torch.tensor([0.25, 0.5, 0.75]).double()).tolist()
        ax.plot([low, high], [row, row], color=BLUE, linewidth=5, alpha=0.35, zorder=1)
        ax.scatter(axes.tolist(), [row] * len(axes), s=6, color=BLUE, alpha=0.45, linewidth=0)
        ax.scatter([middle], [row], s=26, color=INK, zorder=3)
    ax.axvline(1, color=ORANGE, linewidth=1, linestyle=(0, (4, 3)), zorder=0)
    ax.set_xscale("log")
    _ticks(ax)
    ax.set_yticks(range(len(found)), [short(one.relation) for one in found])
    ax.set_ylim(len(found) - 0.5, -0.5)
    ax.set_xlabel(
        "semi-axes 1/√p of the elliptic components: all, middle half, median; 1 is Euclidean",
        color=SOFT,
        fontsize=9,
    )
    bare(ax)
    ax.xaxis.grid(True, color=FAINT)
    return figure


def _ticks(ax: Axes) -> None:
    """Plain figures, from the range that is there."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = ax.get_xlim()
    marks = [m for m in (0.25, 0.35, 0.5, 0.7, 1, 1.4, 2, 2.8, 4) if low <= m <= high]
    ax.xaxis.set_major_locator(FixedLocator(marks))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def rotations(found: Sequence[RelationGeometry]) -> Figure:
    """How the angles of the rotations are spread, a row for each relation and a panel for each group."""
    from matplotlib.figure import Figure

    groups = found[0].groups
    figure = Figure(figsize=(2.2 + 3.6 * len(groups), 1.3 + 0.30 * len(found)), facecolor="white")
    panels = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
    for number, (ax, group) in enumerate(zip(panels, groups, strict=True)):
        shares = torch.stack([_shares(one.groups[number].angles) for one in found])
        ax.imshow(
            shares.sqrt().tolist(),
            cmap="Blues",
            aspect="auto",
            extent=(0, 180, len(found) - 0.5, -0.5),
            vmin=0,
        )
        ax.set_title(str(group.term), loc="left", fontsize=11, color=INK)
        ax.set_xticks([0, 45, 90, 135, 180])
        bare(ax)
    panels[0].set_yticks(range(len(found)), [short(one.relation) for one in found])
    figure.supxlabel(
        "angles of the rotations in degrees; the darker, the more of them", color=SOFT, fontsize=9
    )
    return figure


def _shares(angles: Tensor) -> Tensor:
    counts = torch.histc(angles.flatten(), bins=BINS, min=0, max=180)
    return counts / counts.sum()
