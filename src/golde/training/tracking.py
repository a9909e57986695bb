"""TensorBoard event files of a run under way. Needs the extra ``track``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from golde.errors import MissingExtraError
from golde.training.loop import Report, Watcher

EVENTS = "events"
"""The folder inside the run folder that TensorBoard is pointed at."""


@contextmanager
def tracking(run: str | Path, watch: Watcher = lambda report: None) -> Iterator[Watcher]:
    """A watcher that tells ``watch`` and writes every figure as event files into the run folder.

    Nothing is written before the first report: the run folder is training's to create.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtraError("tracking with TensorBoard", "track") from None
    writer: SummaryWriter | None = None

    def track(report: Report) -> None:
        nonlocal writer
        watch(report)
        if writer is None:  # a run that is resumed does its last steps again: hide what they were
            writer = SummaryWriter(Path(run, EVENTS), purge_step=report.step, flush_secs=10)
        writer.add_scalar("loss", report.loss, report.step)
        writer.add_scalar("queries_per_second", report.queries_per_second, report.step)
        if report.validated and report.mrr is not None:
            writer.add_scalar("validation_mrr", report.mrr, report.step)

    try:
        yield track
    finally:
        if writer is not None:
            writer.close()
