"""TensorBoard event files of a run under way. Needs the extra ``track``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from golde.errors import MissingExtraError
from golde.training.loop import Report, Watcher

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

EVENTS = "events"
"""The folder inside the run folder that TensorBoard is pointed at."""


def summary_writer() -> type[SummaryWriter]:
    """TensorBoard's writer, or an error that names the extra."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtraError("tracking with TensorBoard", "track") from None
    return SummaryWriter


@contextmanager
def tracking(run: str | Path, watch: Watcher = lambda report: None) -> Iterator[Watcher]:
    """A watcher that tells ``watch`` and writes every figure as event files into the run folder.

    Nothing is written before the first report: the run folder is training's to create.
    """
    make = summary_writer()
    writer: SummaryWriter | None = None

    def track(report: Report) -> None:
        nonlocal writer
        watch(report)
        if writer is None:  # a run that is resumed does its last steps again: hide what they were
            writer = make(Path(run, EVENTS), purge_step=report.step, flush_secs=10)
        writer.add_scalar("loss", report.loss, report.step)
        writer.add_scalar("queries_per_second", report.queries_per_second, report.step)
        if report.validated and report.mrr is not None:
            writer.add_scalar("validation_mrr", report.mrr, report.step)

    try:
        yield track
    finally:
        if writer is not None:
            writer.close()
