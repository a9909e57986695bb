"""What probabilities said against what was true. Needs the extra ``plots``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from golde.evaluation.reliability import Reliability
from golde.inference.calibration import Judged
from golde.report.drawing import BLUE, FAINT, ORANGE, SOFT, bare, short, style
from golde.runs.atomic import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def needs_plots() -> None:
    """An error if the extra is missing."""
    with style():
        pass


def draw_reliability(path: Path, judged: Judged, *, title: str) -> None:
    """The share of true claims in each bin of probabilities, before and after; below, how many there are.

    Points on the diagonal are as true as they were said to be. PNG or SVG, by the name of the file.
    """
    with style(), replacing(path) as partial:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5.2, 5.6), facecolor="white")
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
        upper.plot([0, 1], [0, 1], color=SOFT, linewidth=1, linestyle=":")
        for found, name, colour in (
            (judged.before, "before: σ(score + margin)", ORANGE),
            (judged.after, "after", BLUE),
        ):
            _draw(upper, lower, found, f"{name}, ECE {found.ece:.3f}", colour)
        upper.set_title(short(title), loc="left", fontsize=11, pad=22)
        upper.set_ylabel("share that was true", fontsize=9)
        # Above the panel: inside it the curves may be anywhere.
        upper.legend(
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=2,
            frameon=False,
            fontsize=8,
            borderpad=0.2,
            borderaxespad=0.2,
        )
        upper.set_ylim(-0.02, 1.02)
        lower.set_ylabel("share of claims", fontsize=9)
        lower.set_xlabel("probability said", fontsize=9)
        lower.set_xlim(-0.02, 1.02)
        lower.set_ylim(0, None)
        for ax in (upper, lower):
            bare(ax)
            ax.grid(True, color=FAINT)
        figure.set_layout_engine("tight")
        kind = path.suffix.removeprefix(".")
        # The same bytes every time.
        metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
        figure.savefig(partial, format=kind, dpi=140, metadata=metadata)


def _draw(upper: Axes, lower: Axes, found: Reliability, name: str, colour: str) -> None:
    said = [bin.said for bin in found.bins]
    upper.plot(said, [bin.true for bin in found.bins], "o-", color=colour, markersize=5, label=name)
    lower.plot(
        said, [bin.weight for bin in found.bins], "o-", color=colour, markersize=3, clip_on=False
    )
