"""The paper's Figure 2, drawn by the library's own maps: ``python scripts/draw_figure2.py [FILE]``.

Every point below comes out of ``golde.geometry``; nothing is placed by hand but the inputs. The
first coordinate, time on the hyperboloid, points up in every panel.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from golde.geometry.hyperbolic import boost, exp_map
from golde.geometry.reflections import inner, orth_apply, reflect

FIGURE = Path(__file__).parents[1] / "docs" / "assets" / "figure2.png"

INK, SOFT, FAINT = "#1d2433", "#7c8597", "#e3e6ec"
GREEN, PURPLE, BLUE, ORANGE = "#1c8f5a", "#8a3fb8", "#1f6fd6", "#d9622b"
HALF = 2.45
"""Half the side of every window."""

STYLE = {"font.family": "STIXGeneral", "mathtext.fontset": "stix", "font.size": 17}


def main(path: Path = FIGURE) -> None:
    """Draw all four panels into one picture."""
    with rc_context(STYLE):
        figure = Figure(figsize=(10, 10.9), facecolor="white")
        panels = (one_reflection, three_reflections, elliptic_map, hyperbolic_map)
        for ax, panel in zip(figure.subplots(2, 2).flat, panels, strict=True):
            panel(ax)
        figure.subplots_adjust(0.015, 0.05, 0.985, 0.965, wspace=0.06, hspace=0.19)
        figure.savefig(path, dpi=140, metadata={"Software": None}, pil_kwargs={"optimize": True})


def one_reflection(ax: Axes) -> None:
    """(a) x' = Pro_ζ(x) − Pro_u(x), Eq. 5–7."""
    frame(ax, "(a)  one generalised Householder reflection", centre=(0.35, 0.1))
    w, x, u = vector(1.0, 0.55), vector(1.35, 1.9), vector(0.72, 0.32)
    along = inner(u, x, w) / inner(u, u, w) * u
    across, mirrored = x - along, reflect(x, u, w)
    hyperplane(ax, u, w, INK, r"$\zeta$", label_at=-1.95)
    join(ax, x, mirrored, color=SOFT, linewidth=1.4, linestyle=(0, (4, 3)))
    join(ax, x, along, color=SOFT, linewidth=1.0, linestyle=(0, (1, 2)))
    vector_to(ax, along, ORANGE, r"$\mathrm{Pro}_\mathbf{u}(\mathbf{x})$", (-0.42, 0.12))
    vector_to(ax, u, SOFT, r"$\mathbf{u}$", (-0.2, 0.0))
    vector_to(ax, across, GREEN, r"$\mathrm{Pro}_\zeta(\mathbf{x})$", (0.6, 0.13))
    vector_to(ax, x, INK, r"$\mathbf{x}$", (0.16, 0.1))
    vector_to(ax, mirrored, BLUE, r"$\mathbf{x}^\prime$", (0.16, -0.16))
    formula(
        ax,
        r"$\mathbf{x}^\prime = \mathrm{Pro}_\zeta(\mathbf{x}) - \mathrm{Pro}_\mathbf{u}(\mathbf{x})"
        r" = \mathbf{H}(\mathbf{u}, \mathbf{w})\;\mathbf{x}$",
    )


def three_reflections(ax: Axes) -> None:
    """(b) One x and one u, reflected under w = 1, p and q, each along its own level set."""
    frame(
        ax,
        r"(b)  three reflections of $\mathbf{x}$: $\mathbf{w} = \mathbf{1}, \mathbf{p}, \mathbf{q}$",
    )
    x, u = vector(1.55, 1.0), vector(0.45, 1.0)
    kinds = (
        (vector(1.0, 1.0), GREEN, "E", (-0.3, 0.12), -2.2),
        (vector(1.0, 3.0), PURPLE, "P", (-0.06, 0.25), 1.75),
        (vector(-1.0, 1.0), BLUE, "Q", (-0.18, 0.22), -2.2),
    )
    ends = [reflect(x, u, w) for w, *_ in kinds]
    join(ax, ends[0], x, color=INK, linewidth=1.2, linestyle=(0, (4, 3)))
    for (w, color, name, offset, label_at), end in zip(kinds, ends, strict=True):
        for branch in level_set(w, inner(x, x, w)):
            line(ax, branch, color=color, alpha=0.38, linewidth=1.4)
        hyperplane(ax, u, w, color, rf"$\zeta_\mathbb{{{name}}}$", label_at=label_at)
        point(ax, end, color, rf"$\mathbf{{x}}^\prime_\mathbb{{{name}}}$", offset)
    vector_to(ax, u, SOFT, r"$\mathbf{u}$", (0.18, 0.02))
    point(ax, x, INK, r"$\mathbf{x}$", (0.2, 0.1))
    formula(
        ax,
        r"$\langle\mathbf{x}^\prime,\mathbf{x}^\prime\rangle_\mathbf{w} = "
        r"\langle\mathbf{x},\mathbf{x}\rangle_\mathbf{w}$:  circle, ellipse, hyperbola",
    )


def elliptic_map(ax: Axes) -> None:
    """(c) Two reflections turn the head along its ellipse; the tail lies on another (Eq. 9, 10)."""
    frame(ax, r"(c)  an elliptic orthogonal map on $\mathbb{P}^{2}_{\mathbf{p},\beta}$")
    p = vector(1.0, 0.55)
    head, tail = on_ellipse(p, 205, radius=1.6), on_ellipse(p, 20, radius=1.2)
    U = torch.stack([on_ellipse(p, 248), on_ellipse(p, 171)])
    middle, moved = reflect(head, U[0], p), orth_apply(head, U, p)
    for beta, color in ((inner(head, head, p), PURPLE), (inner(tail, tail, p), SOFT)):
        line(ax, level_set(p, beta)[0], color=color, linewidth=1.6)
    for u, name, label_at in ((U[0], "1", 2.3), (U[1], "2", 2.05)):
        hyperplane(ax, u, p, SOFT, rf"$\zeta_{name}$", label_at=label_at, linewidth=0.9)
    for start, end in ((head, middle), (middle, moved)):
        arrow(ax, start, end, PURPLE)
    join(ax, moved, tail, color=ORANGE, linewidth=3)
    note(ax, (moved + tail) / 2, r"$d_\mathbb{P}$", ORANGE, (0.2, 0.02))
    point(ax, head, INK, r"$\mathbf{e}_{h,r}$", (-0.2, -0.2))
    point(ax, middle, PURPLE)
    point(ax, moved, PURPLE, r"$\mathbf{e}^\prime_{h,r}$", (0.2, 0.22))
    point(ax, tail, INK, r"$\mathbf{e}_{t,r}$", (-0.24, -0.12))
    formula(
        ax,
        r"$\mathbf{e}^\prime_{h,r} = \mathbf{H}(\mathbf{u}_2,\mathbf{p}_r)\,"
        r"\mathbf{H}(\mathbf{u}_1,\mathbf{p}_r)\;\mathbf{e}_{h,r}$",
    )


def hyperbolic_map(ax: Axes) -> None:
    """(d) Exp map, boost, reflection and geodesic on the upper sheet (Eq. 11–13)."""
    frame(ax, r"(d)  a hyperbolic orthogonal map on $\mathbb{Q}^{2}_{\beta}$", centre=(0.0, 0.75))
    root = torch.tensor(0.6).sqrt()
    b, e_h, e_t = torch.tensor([-1.15]), torch.tensor([-0.36]), torch.tensor([0.62])
    upper, lower = level_set(vector(-1.0, 1.0), -root.square())
    line(ax, upper, color=BLUE, linewidth=1.8)
    line(ax, lower, color=BLUE, linewidth=1.2, linestyle=(0, (2, 3)), alpha=0.55)
    for slope in (-1.0, 1.0):
        ax.axline((0, 0), slope=slope, color=FAINT, linewidth=1.4, zorder=0)
    ax.axhline(float(root), color=SOFT, linewidth=0.9, zorder=0)
    note(ax, vector(float(root) - 0.17, -1.8), r"tangent $\mathbb{R}^{1}$", SOFT)
    note(ax, vector(-1.3, 0.0), "lower sheet", SOFT)

    def lifted(alpha: Tensor, z0: Tensor, z: Tensor) -> Tensor:
        return root * alpha.exp() * torch.cat([z0.reshape(1), z])

    alpha, z0, z = exp_map(e_h, root)
    z0_boosted, z_boosted = boost(z0, z, b)
    z_moved = reflect(z_boosted, torch.ones(1), torch.ones(1))  # H(u, 1) is −1 on a line
    head, middle = lifted(alpha, z0, z), lifted(alpha, z0_boosted, z_boosted)
    moved, tail = lifted(alpha, z0_boosted, z_moved), lifted(*exp_map(e_t, root))
    for tangent, end, name in ((e_h, head, "h"), (e_t, tail, "t")):
        foot = torch.cat([root.reshape(1), tangent])
        join(ax, foot, end, color=SOFT, linewidth=1.2, linestyle=(0, (1, 2)))
        point(ax, foot, SOFT, rf"$\mathbf{{e}}_{name}$", (0.04, -0.2), size=5)
    geodesic(ax, root, moved, tail)
    arrow(ax, head, middle, BLUE, bend=0.25)
    arrow(ax, middle, moved, BLUE, bend=-0.18)
    note(ax, (head + middle) / 2, "boost", BLUE, (0.52, 0.3))
    note(ax, (middle + moved) / 2, "reflection", BLUE, (0.0, 0.46))
    point(ax, head, INK, r"$\mathbf{e}_{h,r}$", (0.3, 0.14))
    point(ax, middle, BLUE)
    point(ax, moved, BLUE, r"$\mathbf{e}^\prime_{h,r}$", (0.3, -0.1))
    point(ax, tail, INK, r"$\mathbf{e}_{t,r}$", (-0.12, 0.22))
    formula(
        ax,
        r"$\mathbf{e}^\prime_{h,r} = \mathrm{Orth}_\mathbb{Q}(\mathbf{U}_r,\mathbf{b}_r)\;"
        r"g_{\beta_r}(\mathbf{e}_h)$",
    )


def vector(x1: float, x2: float) -> Tensor:
    return torch.tensor([x1, x2])


def level_set(w: Tensor, value: Tensor) -> list[Tensor]:
    """All x with ⟨x, x⟩_w = value: an ellipse, or the two branches of a hyperbola, (n, 2) each."""
    if (w > 0).all():
        turn = torch.linspace(0, 2 * torch.pi, 400)
        return [torch.stack([turn.cos(), turn.sin()], 1) * (value / w).sqrt()]
    rapidity, radius = torch.linspace(-3, 3, 400), value.abs().sqrt()
    branch = radius * torch.stack([rapidity.cosh(), rapidity.sinh()], 1)
    branch = branch if value < 0 else branch.flip(1)
    return [branch, -branch]


def on_ellipse(p: Tensor, degrees: float, radius: float = 1.0) -> Tensor:
    """The point of ⟨x, x⟩_p = radius² that a circle has at this angle, stretched along."""
    turn = torch.deg2rad(torch.tensor(float(degrees)))
    return radius * torch.stack([turn.sin(), turn.cos()]) / p.sqrt()


def geodesic(ax: Axes, root: Tensor, start: Tensor, end: Tensor) -> None:
    """The arc of the upper sheet between two points, by rapidity."""
    first, last = (torch.asinh(x[1] / root) for x in (start, end))
    steps = torch.lerp(first, last, torch.linspace(0, 1, 101))
    arc = root * torch.stack([steps.cosh(), steps.sinh()], 1)
    line(ax, arc, color=ORANGE, linewidth=3)
    note(ax, arc[50], r"$d_\mathbb{Q}$", ORANGE, (0.24, -0.08))


def frame(ax: Axes, title: str, centre: tuple[float, float] = (0.0, 0.0)) -> None:
    """A square window with faint axes and no ticks; ``centre`` is (x2, x1)."""
    ax.set(xlim=(centre[0] - HALF, centre[0] + HALF), ylim=(centre[1] - HALF, centre[1] + HALF))
    ax.set(aspect="equal", xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set_color(FAINT)
    ax.axhline(0, color=FAINT, linewidth=1, zorder=0)
    ax.axvline(0, color=FAINT, linewidth=1, zorder=0)
    ax.set_title(title, loc="left", color=INK, fontsize=16, pad=8)


def formula(ax: Axes, text: str) -> None:
    ax.set_xlabel(text, color=INK, fontsize=16, labelpad=8)


def line(ax: Axes, points: Tensor, **style: Any) -> None:
    ax.plot(points[:, 1], points[:, 0], solid_capstyle="round", **style)


def join(ax: Axes, start: Tensor, end: Tensor, **style: Any) -> None:
    line(ax, torch.stack([start, end]), **style)


def arrow(
    ax: Axes,
    start: Tensor,
    end: Tensor,
    color: str,
    *,
    width: float = 1.5,
    gap: float = 5,
    bend: float = 0.0,
) -> None:
    """From point to point, leaving a gap (in points) at both ends."""
    style = {"arrowstyle": "-|>,head_width=0.25,head_length=0.5", "shrinkA": gap, "shrinkB": gap}
    style |= {"color": color, "linewidth": width, "connectionstyle": f"arc3,rad={bend}"}
    ax.annotate("", _xy(end), _xy(start), arrowprops=style)


def vector_to(ax: Axes, tip: Tensor, color: str, label: str, offset: Sequence[float]) -> None:
    """A vector from the origin."""
    arrow(ax, torch.zeros(2), tip, color, width=2.2, gap=0)
    note(ax, tip, label, color, offset)


def point(
    ax: Axes,
    x: Tensor,
    color: str,
    label: str = "",
    offset: Sequence[float] = (0, 0),
    *,
    size: float = 8,
) -> None:
    ax.plot(*_xy(x), "o", color=color, markersize=size, markeredgecolor="white", zorder=5)
    note(ax, x, label, color, offset)


def hyperplane(
    ax: Axes,
    u: Tensor,
    w: Tensor,
    color: str,
    label: str,
    *,
    label_at: float,
    linewidth: float = 1.5,
) -> None:
    """The line of all x with ⟨u, x⟩_w = 0, labelled at a distance from the origin along it."""
    across = torch.stack([-(w * u)[1], (w * u)[0]])
    across = across / across.norm() * across[1].sign()
    line(ax, torch.stack([-9 * across, 9 * across]), color=color, linewidth=linewidth, alpha=0.85)
    beside = 0.2 * torch.stack([across[1], -across[0]])
    note(ax, label_at * across + beside, label, color)


def note(ax: Axes, x: Tensor, text: str, color: str, offset: Sequence[float] = (0.0, 0.0)) -> None:
    """Text at a point, moved by (right, up)."""
    right, up = _xy(x)
    ax.text(
        right + offset[0], up + offset[1], text, color=color, ha="center", va="center", zorder=6
    )


def _xy(x: Tensor) -> tuple[float, float]:
    return float(x[1]), float(x[0])


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
