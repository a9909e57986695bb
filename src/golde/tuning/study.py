"""The study: which trials there were, kept in a database that several processes share.

One database holds one search. What it searches (graph, space, settings that stay) is stored with it, and
another search is refused there.
"""

from __future__ import annotations

import math
import random
import shutil
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError, MissingExtraError
from golde.runs.lock import locked
from golde.training.defaults import resolve
from golde.tuning.database import Database
from golde.tuning.importance import importance
from golde.tuning.space import Space
from golde.tuning.trial import Trial, as_trial, suggest, try_again
from golde.written_settings import RETIRED

if TYPE_CHECKING:
    import optuna

FORMAT = 1
NAME = "golde"
HEARTBEAT = 30
"""Seconds between signs of life in a database that several machines share; twice that means dead."""

STARTUP = 10
"""Trials drawn at random before the sampler has something to go by."""

_STUDIES = {"study_id", "study_name"}
"""Columns of Optuna's table of studies, by which it is known from another program's."""


class Study:
    """A search in a database: asked for new trials, told of their ends."""

    def __init__(self, place: str, space: Space, graph: KnowledgeGraph, *, seed: int = 0) -> None:
        """Open the study at a path or database URL, or begin one; refuses the study of another search."""
        need_optuna()
        self.place, self.space, self.seed = place, space, seed
        self.database = Database(place) if "://" in place else None
        self.path = Path(place) if self.database is None else None
        usual = resolve(space.base, graph).training
        self.validations = math.ceil((usual.steps or 1) / (usual.validate_every or 1))  # of a run
        self._identity: dict[str, Any] = {
            "format": FORMAT,
            "graph": graph.name,
            "digest": graph.digest,
            "space": space.name,
            "numbers": space.numbers,
            "given": space.given,
        }
        if self.path is not None:
            _refuse_other_files(self.path)
        import optuna
        import sqlalchemy

        optuna.logging.set_verbosity(optuna.logging.ERROR)  # only the command line speaks
        try:
            # Of several that begin the study at once, one does.
            with nullcontext() if self.database is None else self.database.turn():
                self._study = self._open()
        except GoldeError:
            raise
        except (
            sqlalchemy.exc.SQLAlchemyError,
            optuna.exceptions.OptunaError,  # what a damaged database makes of it
            ImportError,
            RuntimeError,
            ValueError,
        ) as error:
            raise GoldeError(
                f"{self.shown}: cannot be used as a study: {self._why(error)}; name another file, or the URL "
                "of a database that can be reached from here"
            ) from None

    def _why(self, error: BaseException) -> str:
        """What a database says, in one line."""
        words = str(getattr(error, "orig", None) or error.__cause__ or error).splitlines()[0]
        return words if self.database is None else self.database.without_secrets(words)

    def _open(self) -> optuna.Study:
        import optuna

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            storage = self._storage()
        study = optuna.create_study(
            storage=storage, study_name=NAME, direction="maximize", load_if_exists=True
        )
        stored, begun = study.user_attrs.get(NAME), bool(study.get_trials(deepcopy=False))
        if stored is None and not begun:
            study.set_user_attr(NAME, self._identity)
            if self.space.start is not None:
                study.enqueue_trial(self.space.start)
        elif not isinstance(stored, dict):
            raise GoldeError(
                f"{self.shown}: holds a study that 'golde tune' did not begin; choose another --study"
            )
        elif other := self._difference(stored):
            raise GoldeError(
                f"{self.shown}: holds another search: {other}; repeat the command it was begun with, or "
                "choose another --study"
            )
        return study

    def _storage(self) -> optuna.storages.RDBStorage:
        import optuna
        from sqlalchemy import URL

        if self.path is None:
            assert self.database is not None
            return optuna.storages.RDBStorage(
                self.database.url,
                heartbeat_interval=HEARTBEAT,
                heartbeat_stale_trial_callback=try_again,
            )
        url = URL.create("sqlite", database=str(self.path.absolute())).render_as_string()
        return optuna.storages.RDBStorage(
            url.replace("{", "{{").replace(
                "}", "}}"
            ),  # Optuna takes braces for a template of its own
            engine_kwargs={"connect_args": {"timeout": 60}},  # workers write in turn
        )

    def _difference(self, there: dict[str, Any]) -> str:
        """How the stored search differs from this one, in words."""
        here = self._identity
        if there.get("format") != FORMAT:
            return f"format {there.get('format')!r} there and {FORMAT} here"
        if there["digest"] != here["digest"]:
            same = there["graph"] == here["graph"]
            return (
                f"on another {here['graph']}, its facts are not those here"
                if same
                else f"on the graph {there['graph']} there and {here['graph']} here"
            )
        for key, option in (("space", "--space"), ("numbers", "--numbers")):
            if there[key] != here[key]:
                return f"{option} {there[key]} there and {here[key]} here"
        began, now = _still_a_choice(there["given"]), here["given"]
        told = [
            f"{key} is {_told(began, key)} there and {_told(now, key)} here"
            for key in sorted(began.keys() | now.keys())
            if began.get(key) != now.get(key)
        ]
        return ", ".join(told)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep every other search from the file; a database of several machines is open to all."""
        if self.path is None:
            yield
            return
        with locked(self.path.with_name(self.path.name + ".lock")) as mine:
            if not mine:
                raise GoldeError(
                    f"{self.path}: another process is searching there; wait for it, stop it, or search "
                    "with several --workers from the start"
                )
            self.give_up_running()  # of a search that was killed: nobody is running them
            try:
                self._remove_runs()
                yield
            finally:
                self._remove_runs()

    @property
    def shown(self) -> str:
        """Where the study is, without a password."""
        return self.place if self.database is None else self.database.shown

    @property
    def runs(self) -> Path | None:
        """The folder beside the file in which trials train."""
        return None if self.path is None else self.path.with_name(self.path.name + ".runs")

    def _remove_runs(self) -> None:
        if self.runs is not None:
            shutil.rmtree(self.runs, ignore_errors=True)

    def run_next(
        self,
        wanted: int,
        objective: Callable[[optuna.Trial, dict[str, Any]], float],
        failures: tuple[type[Exception], ...],
        worker: str,
    ) -> bool:
        """Begin a trial, have ``objective`` train it and keep its end; false where there are enough.

        What is in ``failures`` ends the trial, other errors also the search.
        """
        import optuna

        with self._reached(), ExitStack() as turn:
            turn.enter_context(self._turn())
            trials = self.trials()
            place = sum(trial.counts or trial.state == "running" for trial in trials)
            if place >= wanted:
                return False
            # A seed for each place: a search that goes on draws what it would have drawn without the break.
            salt = "" if self.path is not None else worker
            seed = random.Random(f"{self.seed} {place} {salt}").getrandbits(32)
            self._study.sampler, self._study.pruner = self._sampler(seed), self._pruner()

            def run(trial: optuna.Trial) -> float:
                trial.set_user_attr("worker", worker)
                point = {name: suggest(trial, name, axis) for name, axis in self.space.axes.items()}
                turn.close()  # all of it is written down: the next may ask
                return objective(trial, point)

            with warnings.catch_warnings():
                warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
                self._study.optimize(run, n_trials=1, catch=failures)
        return True

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Whatever is done inside; a database that goes away on the way is told as such."""
        import optuna
        import sqlalchemy

        lost = optuna.exceptions.StorageInternalError, sqlalchemy.exc.SQLAlchemyError
        try:
            yield
        except Exception as error:
            # Optuna may stumble over it once more, and then it is only the reason.
            reason = next((one for one in _reasons(error) if isinstance(one, lost)), None)
            if reason is None:
                raise
            raise GoldeError(
                f"{self.shown}: the study cannot be reached any more: {self._why(reason)}; the same command "
                "goes on where it stopped"
            ) from None

    def waits_for_others(self, wanted: int) -> bool:
        """Whether trials that others have under way may yet be lost, and with them the number that is wanted.

        Those whose process gave no sign of life for twice ``HEARTBEAT`` are, and then tried once more.
        """
        import optuna

        if self.database is None:
            return False
        with self._reached(), warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            optuna.storages.fail_stale_trials(self._study)
        return sum(trial.counts for trial in self.trials()) < wanted

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Processes that share a study ask one after the other, so that none is asked for too many."""
        if self.database is not None:
            with self.database.turn():
                yield
            return
        while self.path is not None:
            with locked(self.path.with_name(self.path.name + ".turn")) as mine:
                if mine:
                    yield
                    return
            time.sleep(0.02)

    def _sampler(self, seed: int) -> optuna.samplers.BaseSampler:
        import optuna

        if self.space.name == "paper":
            return optuna.samplers.RandomSampler(seed)
        return optuna.samplers.TPESampler(
            seed=seed, n_startup_trials=STARTUP, multivariate=True, constant_liar=True
        )

    def _pruner(self) -> optuna.pruners.BasePruner:
        import optuna

        if self.space.name == "paper":
            return optuna.pruners.NopPruner()
        return optuna.pruners.HyperbandPruner(max_resource=self.validations)

    def give_up_running(self, worker: str | None = None) -> int:
        """Trials under way, or those of a worker, were lost with their process: each is tried once more."""
        import optuna

        running = self._study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,))
        lost = [t for t in running if worker is None or t.user_attrs.get("worker") == worker]
        for trial in lost:
            self._study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
            try_again(self._study, trial)
        return len(lost)

    def put_off(self, trial: optuna.Trial) -> None:
        """A trial that was interrupted is the first to be tried when the search goes on."""
        trial.set_user_attr("put off", True)
        self._study.enqueue_trial(trial.params)

    def trials(self) -> list[Trial]:
        """All trials so far, as the database has them now."""
        with self._reached():
            return [as_trial(trial) for trial in self._study.get_trials(deepcopy=False)]

    def best(self) -> Trial | None:
        """The complete trial with the highest validation MRR, of equals the first."""
        complete = [trial for trial in self.trials() if trial.state == "complete"]
        return max(complete, key=lambda trial: trial.mrr or 0.0, default=None)

    def importance(self) -> dict[str, float]:
        """How much each axis decides whether a trial is among the best (see ``golde.tuning.importance``)."""
        return importance(self._study.get_trials(deepcopy=False), self.space.axes)


def need_optuna() -> None:
    """An error that names the extra where Optuna is missing."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise MissingExtraError("searching settings", "tune") from None


def _refuse_other_files(path: Path) -> None:
    """An error if a file is there that is no study: Optuna would write its tables into any database."""
    if not path.absolute().parent.is_dir():
        raise GoldeError(f"{path}: there is no folder {path.parent}; make it first")
    if path.is_dir():
        raise GoldeError(f"{path}: is a folder; name a file in it")
    if not path.exists() or not path.stat().st_size:
        return
    try:
        with closing(sqlite3.connect(path, timeout=60)) as database:
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
            columns = {row[1] for row in database.execute("PRAGMA table_info(studies)")}
            (found,) = database.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        raise GoldeError(f"{path}: is no study: {error}; choose another --study") from None
    if found != "ok":
        raise GoldeError(
            f"{path}: is a damaged database; restore it from a copy, or choose another --study"
        )
    if tables and columns != _STUDIES:
        raise GoldeError(f"{path}: is a database, but holds no study; choose another --study")


def _reasons(error: BaseException | None) -> Iterator[BaseException]:
    """An error, what it came of, and so on."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _still_a_choice(given: dict[str, Any]) -> dict[str, Any]:
    """Settings without those that are no more and had the value that every run has now."""
    held = {f"{section}.{key}": retired.holds for (section, key), retired in RETIRED.items()}
    return {key: value for key, value in given.items() if key not in held or held[key] != value}


def _told(given: dict[str, Any], key: str) -> str:
    return repr(given[key]) if key in given else "searched or chosen from the graph"
