"""The look of all pictures, and how they are kept: the same bytes every time. Needs the extra ``plots``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from golde.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, SOFT, FAINT = "#1d2433", "#7c8597", "#e3e6ec"
BLUE, ORANGE = "#1f6fd6", "#d9622b"
STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "svg.hashsalt": "golde",
}


@contextmanager
def style() -> Iterator[None]:
    """Everything drawn inside looks alike."""
    try:
        from matplotlib import rc_context
    except ImportError:
        raise MissingExtraError("drawing figures", "plots") from None
    with rc_context(STYLE), warnings.catch_warnings():
        # Signs that the font lacks are drawn as boxes, and what does not fit as it is.
        warnings.simplefilter("ignore", UserWarning)
        yield


def short(name: str, most: int = 34) -> str:
    """The end of a long name, which is what tells an IRI from another; a dollar starts no formula."""
    kept = name if len(name) <= most else "…" + name[1 - most :]
    return kept.replace("$", r"\$")


def bare(ax: Axes) -> None:
    """No frame, and the grid behind what is drawn."""
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.tick_params(length=0, colors=INK, labelsize=9)
    ax.set_axisbelow(True)


def save(figure: Figure, path: Path) -> Path:
    """Write a PNG or SVG, by the name of the file."""
    figure.set_layout_engine("tight")
    if path.suffix == ".svg":
        figure.savefig(path, metadata={"Date": None, "Creator": None})
    else:
        figure.savefig(path, dpi=140, metadata={"Software": None}, pil_kwargs={"optimize": True})
    return path
