"""The trials of a search as rows of a narrow table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from golde.tuning import Space, Trial


def table(space: Space, trials: Sequence[Trial], validations: int, best: Trial | None) -> Table:
    """Trials as they are shown while they run; the best stands out."""
    from rich import box
    from rich.table import Table

    rows = Table(box=box.SIMPLE_HEAD, show_edge=False, collapse_padding=True, pad_edge=False)
    for heading, side in zip(headings(space), align(space), strict=True):
        rows.add_column(heading, justify="left" if side == "<" else "right", no_wrap=True)
    for trial in trials:
        mine = best is not None and trial.number == best.number
        style = "bold green" if mine else "" if trial.state in ("running", "complete") else "dim"
        rows.add_row(*cells(space, trial, validations), style=style)
    return rows


SHORT = {
    "training.batch_size": "batch",
    "model.margin": "γ",
    "training.learning_rate": "rate",
    "training.temperature": "α",
    "training.negatives": "neg.",
    "training.regulariser": "penalty",
    "model.bias": "bias",
}
"""Headings of the axes that may have a column; those of the signature make it up together, with the bias."""


def _has_signature(space: Space) -> bool:
    return any(name.startswith("signature.") for name in space.axes)


def _columns(space: Space) -> list[str]:
    """The axes that have a column of their own."""
    merged = {"model.bias"} if _has_signature(space) else set()
    return [name for name in SHORT if name in space.axes.keys() - merged]


def headings(space: Space) -> list[str]:
    """Of the columns; the second, how far a trial came, has none."""
    axes = [SHORT[name] for name in _columns(space)]
    return ["#", "", "MRR", *(["space"] if _has_signature(space) else []), *axes, "time"]


def align(space: Space) -> str:
    """Words to the left, numbers to the right."""
    words = {"", "space", "penalty", "bias"}
    return "".join("<" if heading in words else ">" for heading in headings(space))


def cells(space: Space, trial: Trial, validations: int) -> list[str]:
    """A row of the table."""
    state = {
        "complete": "done",
        "pruned": f"cut {trial.validations}",
        "running": f"{trial.validations}/{validations}",
    }.get(trial.state, trial.state)
    row = [str(trial.number), state, "" if trial.mrr is None else f"{trial.mrr:.3f}"]
    point, seconds = trial.point, round(trial.seconds)
    if _has_signature(space):
        row.append((space.signature(point) or "") + " +b" * point.get("model.bias", False))
    row += [_value(name, point) for name in _columns(space)]
    return [*row, f"{seconds // 60}:{seconds % 60:02}"]


def _value(name: str, point: dict[str, Any]) -> str:
    """A setting in few letters."""
    value = point.get(name, "")
    if name == "training.regulariser" and value not in ("", "none"):
        weight = f"{point.get('training.regulariser_weight', 0.0):.1g}"
        return f"{value} {weight.removeprefix('0').replace('e-0', 'e-')}"
    if name == "training.learning_rate" and value:
        return f"{value:.1e}".replace("e-0", "e-")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "training.temperature" and value != "":
        return f"{value:.2f}"
    return f"{value:.2g}" if isinstance(value, float) else str(value).replace("none", "")
