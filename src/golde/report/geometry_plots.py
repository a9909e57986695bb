"""Learned maps as Poincaré disks, ellipsoid scaling and rotation spectrum. Needs the extra ``plots``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from golde.analysis.coordinates import in_disk, principal_axes, share_kept
from golde.analysis.relation_geometry import RelationGeometry
from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError
from golde.geometry import gather
from golde.models import GoldE
from golde.report.drawing import BLUE, FAINT, INK, ORANGE, SOFT, bare, save, short, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DISKS, ROWS, FACTS = 6, 20, 150
"""Relations with a disk, relations with a row, and facts drawn in a disk."""
BINS = 36
RING_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2)
MOST_RINGS = 5


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

    Tangent vectors are projected to their two principal directions and placed as ``in_disk`` says.
    """
    facts = graph.train[graph.train[:, 1] == relation]
    if not len(facts):
        return None
    drawn = torch.randperm(len(facts), generator=torch.Generator().manual_seed(0))[:FACTS]
    head, direction, tail = facts[drawn].to(model.device).unbind(1)
    arrived = model.transport(gather(model.entity, head), direction)
    points = torch.cat((arrived, gather(model.entity, tail))).double().cpu()  # (2n, numbers)
    best: tuple[float, str, float, Tensor] | None = None
    start = 0
    for group, term in zip(model.geometries, model.signature, strict=True):
        stop = start + term.count * term.numbers
        if term.letter == "Q":
            (beta,) = group.maps(direction[:1]).beta.double().cpu()  # (M,)
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
    axes = principal_axes(vectors, 2)
    arrived, tails = in_disk(vectors, axes, beta_).chunk(2)
    return Disk(name, -1 / beta_, arrived, tails, share_kept(vectors, axes))


def disks(model: GoldE, graph: KnowledgeGraph, found: Sequence[RelationGeometry]) -> Figure:
    """One disk a relation."""
    from matplotlib.figure import Figure

    shown = [one.relation for one in found if one.facts][:DISKS] or [found[0].relation]
    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    figure = Figure(figsize=(3.6 * columns + (columns == 1), 4.2 * rows + 0.6), facecolor="white")
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for ax, relation in zip(panels, shown, strict=False):
        _disk(ax, relation, disk(model, graph, graph.relations.id(relation)))
    for ax in panels[len(shown) :]:
        ax.remove()
    title = "Poincaré disk" + "s" * (len(shown) > 1)
    figure.suptitle(title, x=0.03, ha="left", fontsize=12, fontweight="bold", color=INK)
    handles, labels = max(
        (ax.get_legend_handles_labels() for ax in panels), key=lambda both: len(both[1])
    )
    figure.legend(
        handles,
        labels,
        loc="upper right",
        ncols=2,
        frameon=False,
        fontsize=9 if columns > 1 else 8,
        handletextpad=0.1,
        columnspacing=1.0,
    )
    figure.supxlabel(
        "two principal directions of the tangent vectors; rings: radius, 1 is infinity",
        color=SOFT,
        fontsize=9 if columns > 1 else 7.5,
    )
    return figure


def _disk(ax: Axes, relation: str, one: Disk | None) -> None:
    """The part of the disk that holds the points, with rings about its centre; the largest holds all."""
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Circle

    ax.set_title(short(relation), loc="left", fontsize=11, color=INK)
    ax.set(aspect="equal", xticks=[], yticks=[])
    bare(ax)
    if one is None:
        ax.set_xlabel("no training facts", fontsize=8, color=SOFT)
        return
    points = torch.cat((one.arrived, one.tails))
    radii = _rings(float(points.norm(dim=1).max()))
    reach = 1.06 * radii[-1]
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach))
    away = _free_direction(points, radii)
    for radius in radii:
        edge = SOFT if radius == 1 else FAINT
        ax.add_patch(Circle((0, 0), radius, fill=False, edgecolor=edge, linewidth=1, zorder=0))
        ax.annotate(
            f"{radius:g}",
            (radius * float(away[0]), radius * float(away[1])),
            ha="center",
            va="center",
            fontsize=7,
            color=SOFT,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )
    links = torch.stack((one.arrived, one.tails), 1).tolist()
    ax.add_collection(LineCollection(links, color=SOFT, alpha=0.5, linewidth=0.6, zorder=1))
    for points, color, what in (
        (one.tails, ORANGE, "tails"),
        (one.arrived, BLUE, "heads where the map takes them"),
    ):
        x, y = points.T.tolist()
        ax.scatter(x, y, s=12, color=color, alpha=0.75, linewidth=0, label=what, zorder=2)
    curvature = f"{one.curvature:.2f}".replace("-", "−")
    ax.set_xlabel(
        f"{one.component}, curvature {curvature}; {one.kept:.0%} of the squared length",
        fontsize=8,
        color=SOFT,
    )


def _rings(farthest: float) -> list[float]:
    """A few radii evenly apart, of which the last is the first that no point lies beyond."""
    step = next((s for s in RING_STEPS if farthest <= MOST_RINGS * s), RING_STEPS[-1])
    return [round(step * (i + 1), 2) for i in range(max(1, math.ceil(farthest / step)))]


def _free_direction(points: Tensor, radii: Sequence[float]) -> Tensor:
    """The direction, (2,), in which figures on the rings are farthest from the points."""
    angles = torch.linspace(0, 2 * math.pi, 25, dtype=points.dtype)[:-1] + math.pi / 2
    directions = torch.stack((angles.cos(), angles.sin()), 1)  # (24, 2), upwards first
    places = (
        directions[:, None] * torch.tensor(radii, dtype=points.dtype)[:, None]
    )  # (24, rings, 2)
    gaps = torch.cdist(places.flatten(0, 1), points).amin(1).view(len(angles), -1).amin(1)
    return directions[gaps.argmax()]


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
    from matplotlib.colors import PowerNorm
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    groups = found[0].groups
    height = 1.9 + 0.30 * len(found)
    figure = Figure(figsize=(2.9 + 3.6 * len(groups), height), facecolor="white")
    widths = [1.0] * len(groups) + [0.04]
    *panels, scale = figure.subplots(1, len(widths), squeeze=False, width_ratios=widths)[0]
    shares = [
        torch.stack([_shares(one.groups[number].angles) for one in found])
        for number in range(len(groups))
    ]
    norm = PowerNorm(0.5, vmin=0, vmax=max(float(share.max()) for share in shares))
    for ax, group, share in zip(panels, groups, shares, strict=True):
        image = ax.imshow(
            share.tolist(),
            cmap="Blues",
            norm=norm,
            aspect="auto",
            extent=(0, 180, len(found) - 0.5, -0.5),
        )
        ax.set_title(str(group.term), loc="left", fontsize=11, color=INK)
        ax.set_xticks([0, 45, 90, 135, 180])
        ax.set_yticks([])
        bare(ax)
    panels[0].set_yticks(range(len(found)), [short(one.relation) for one in found])
    bar = figure.colorbar(image, cax=scale, format=PercentFormatter(1, decimals=0))
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=8, colors=INK)
    bar.set_label("share of angles", color=SOFT, fontsize=9)
    title = "Angles of the learned rotations"
    figure.suptitle(title, x=0.02, ha="left", fontsize=12, fontweight="bold", color=INK)
    degrees = 180 // BINS
    figure.supxlabel(f"degrees, in steps of {degrees}", color=SOFT, fontsize=9)
    return figure


def _shares(angles: Tensor) -> Tensor:
    counts = torch.histc(angles.flatten(), bins=BINS, min=0, max=180)
    return counts / counts.sum()
