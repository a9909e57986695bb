"""TensorBoard event files of a run under way. Needs the extra ``track``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from golde.config import Config
from golde.errors import MissingExtraError
from golde.runs import RunFolder
from golde.training.loop import Report, Watcher
from golde.training.schedule import learning_rate

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

    The settings of the run are there too: as text, and as hyper-parameters beside the validation MRR, for
    TensorBoard to compare runs by. Nothing is written before the first report: the run folder is training's
    to create.
    """
    make = summary_writer()
    writer: SummaryWriter | None = None
    rate: Callable[[int], float] | None = None

    def track(report: Report) -> None:
        nonlocal writer, rate
        watch(report)
        if writer is None or rate is None:
            folder, config = Path(run, EVENTS), RunFolder(run).config()
            started = folder.exists()
            # A run that is resumed does its last steps again: hide what they were.
            writer = make(folder, purge_step=report.step, flush_secs=10)
            if not started:
                _add_settings(writer, config)
            rate = partial(
                learning_rate,
                steps=report.steps,
                peak=config.training.learning_rate or 0.0,
                warmup=config.training.warmup,
            )
        writer.add_scalar("loss", report.loss, report.step)
        writer.add_scalar("learning_rate", rate(report.step - 1), report.step)
        writer.add_scalar("queries_per_second", report.queries_per_second, report.step)
        if report.validated and report.mrr is not None:
            writer.add_scalar("validation_mrr", report.mrr, report.step)

    try:
        yield track
    finally:
        if writer is not None:
            writer.close()


def _add_settings(writer: SummaryWriter, config: Config) -> None:
    """The settings as text, and for the table of hyper-parameters."""
    from torch.utils.tensorboard.summary import hparams

    writer.add_text("settings", "".join(f"    {line}\n" for line in config.to_toml().splitlines()))
    values = {
        f"{section}.{key}": value if isinstance(value, bool | int | float | str) else str(value)
        for section, settings in config.settings().items()
        if isinstance(settings, dict)
        for key, value in settings.items()
    }
    for summary in hparams(values, {"validation_mrr": None}):
        writer._get_file_writer().add_summary(
            summary
        )  # ``add_hparams`` would make a run of its own
