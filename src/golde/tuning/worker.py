"""Trainings of a search, one after the other, in this process."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from golde.config import Config
from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError, RunError
from golde.training.defaults import resolve
from golde.training.loop import Report, StoppedError, train
from golde.tuning.study import Study
from golde.tuning.trial import Trial

if TYPE_CHECKING:
    import optuna


def search(
    study: Study,
    graph: KnowledgeGraph,
    trials: int,
    *,
    device: str = "auto",
    tell: Callable[[], None] = lambda: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Train until the study has as many trials as wanted; false where ``should_stop`` turned true before.

    Each is judged by the best MRR on validation facts; test facts are never ranked. ``tell`` is called
    after each validation and each trial.
    """
    if not len(graph.valid):
        raise GoldeError(
            f"{graph.name}: the validation split is empty, and settings are chosen by it; hold facts out "
            "with --valid 0.1"
        )
    with _folder(study) as folder:

        def objective(trial: optuna.Trial, point: dict[str, Any]) -> float:
            run = folder / str(trial.number)
            tell()
            try:
                return _trial(study, graph, trial, point, run, device, tell, should_stop)
            finally:
                shutil.rmtree(run, ignore_errors=True)

        try:
            while not should_stop():
                if study.run_next(trials, objective, (FailedTrialError,), worker_name()):
                    tell()
                elif study.waits_for_others(trials):
                    time.sleep(LOOK_AGAIN)
                else:
                    return True
        except StoppedError:
            tell()
        return False


LOOK_AGAIN = 1.0
"""Seconds between looks at the trials that others have under way."""


class FailedTrialError(Exception):
    """A trial came to nothing; the search goes on."""


def _trial(
    study: Study,
    graph: KnowledgeGraph,
    trial: optuna.Trial,
    point: dict[str, Any],
    run: Path,
    device: str,
    tell: Callable[[], None],
    should_stop: Callable[[], bool],
) -> float:
    """The best validation MRR of a point, unless it is pruned on the way."""
    from optuna import TrialPruned

    best, validations = 0.0, 0

    def watch(report: Report) -> None:
        nonlocal best, validations
        if not report.validated or report.mrr is None:
            return
        best, validations = max(best, report.mrr), validations + 1
        trial.report(best, validations)
        tell()
        # Late in a run the little that is left costs less than not knowing its end.
        if validations <= study.validations // 2 and trial.should_prune():
            raise TrialPruned

    try:
        train(
            graph,
            run,
            study.space.config(point),
            device=device,
            watch=watch,
            should_stop=should_stop,
        )
    except StoppedError:
        study.put_off(trial)
        raise
    except RunError:  # a disk that is full is none of the point's doing
        raise
    except GoldeError as error:  # it diverged, or does not fit
        trial.set_user_attr("reason", str(error))
        raise FailedTrialError from error
    return best


def worker_name() -> str:
    """Who runs a trial, in a database that several processes and machines may share."""
    return f"{platform.node()}:{os.getpid()}"


@contextmanager
def _folder(study: Study) -> Iterator[Path]:
    """Where run folders of trials are until each is judged."""
    if study.runs is None:
        with tempfile.TemporaryDirectory(prefix="golde-tune-") as place:
            yield Path(place)
    else:
        study.runs.mkdir(exist_ok=True)
        yield study.runs


def winner(study: Study, graph: KnowledgeGraph, best: Trial) -> Config:
    """The configuration of a trial with every open setting filled in."""
    return resolve(study.space.config(best.point), graph)
