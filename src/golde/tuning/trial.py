"""A trial of a search: what is known of it, and how Optuna asks for one and keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from golde.tuning.space import Axis, Choice

if TYPE_CHECKING:
    import optuna

State = Literal["waiting", "running", "complete", "pruned", "failed", "lost"]

KILLED = "its process was killed, twice"


@dataclass(frozen=True)
class Trial:
    """One training of the search."""

    number: int
    state: State
    point: dict[str, Any]
    mrr: float | None  # the best validation so far
    validations: int
    seconds: float
    reason: str | None  # why it failed

    @property
    def counts(self) -> bool:
        """Whether it is one of the trials asked for; one that was lost is tried again."""
        return self.state in ("complete", "pruned", "failed")


def as_trial(trial: optuna.trial.FrozenTrial) -> Trial:
    """A trial as the database has it."""
    state: State
    match trial.state.name:
        case "FAIL":
            failed = "reason" in trial.user_attrs
            # A second try that was lost as well is given up; one that was put off is tried again.
            again = "again" in trial.user_attrs and "put off" not in trial.user_attrs
            state = "failed" if failed or again else "lost"
        case "COMPLETE":
            state = "complete"
        case "PRUNED":
            state = "pruned"
        case other:
            state = "running" if other == "RUNNING" else "waiting"
    reports = trial.intermediate_values
    began, ended = trial.datetime_start, trial.datetime_complete
    seconds = ((ended or datetime.now()) - began).total_seconds() if began else 0.0
    return Trial(
        number=trial.number,
        state=state,
        point=dict(trial.params),
        mrr=trial.value if state == "complete" else max(reports.values(), default=None),
        validations=len(reports),
        seconds=seconds,
        reason=trial.user_attrs.get("reason", KILLED if state == "failed" else None),
    )


def suggest(trial: optuna.Trial, name: str, axis: Axis) -> Any:
    """The value that the sampler draws for an axis."""
    if isinstance(axis, Choice):
        return trial.suggest_categorical(name, axis.values)
    if axis.whole:
        return trial.suggest_int(name, int(axis.low), int(axis.high), log=axis.log)
    return trial.suggest_float(name, axis.low, axis.high, log=axis.log)


def try_again(study: optuna.Study, lost: optuna.trial.FrozenTrial) -> None:
    """A trial whose process was killed is tried once more."""
    if not lost.user_attrs.get("again") and lost.params:
        study.enqueue_trial(lost.params, user_attrs={"again": True})
