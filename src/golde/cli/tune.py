"""``golde tune``: a search for settings."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

import typer

from golde.cli import options
from golde.cli.output import console, note, say, say_json, say_points, say_table
from golde.cli.train import read_graph, stopping
from golde.cli.trials import align, cells, headings, table
from golde.errors import GoldeError
from golde.words import duration

if TYPE_CHECKING:
    from golde.config import Config
    from golde.data.graph import KnowledgeGraph
    from golde.tuning import Study, Trial

TRIALS = 50
"""Trials of a search that was given neither a number nor a time."""

UNLIMITED = 10**9
ROWS_LIVE, ROWS_SHOWN = 12, 10

EXAMPLES = """\b
Example: golde tune facts.tsv --out facts.toml
  golde tune umls --out umls.toml --time 600 --workers 2 --plot umls.png
  golde tune wn18rr --out wn.toml --space paper --set training.steps=20000
  golde tune umls --out umls.toml --study postgresql://me@db.example/umls
"""


class SpaceChoice(StrEnum):
    default = "default"
    paper = "paper"


def register(app: typer.Typer) -> None:
    app.command(epilog=EXAMPLES)(tune)


def tune(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|PATH",
            help="A named set, a folder with train and valid files, or one file of facts. "
            "A configuration may name one.",
        ),
    ] = None,
    *,
    out: Annotated[
        Path, typer.Option(metavar="FILE.toml", help="Where the best settings are written.")
    ],
    study: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.db",
            envvar="GOLDE_STUDY",
            help="Where trials are kept, to go on with: a file, or the URL of a database, "
            "postgresql://USER@HOST/NAME. Unset: beside --out.",
        ),
    ] = None,
    space: Annotated[
        SpaceChoice,
        typer.Option(help="What is searched; paper: Table 10 at random, each run to its end."),
    ] = SpaceChoice.default,
    trials: Annotated[
        int | None,
        typer.Option(min=1, help=f"Trials in all; unset: {TRIALS}, or as many as --time allows."),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--time", min=1, metavar="SECONDS", help="Stop after this long.")
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, max=256, help="Processes that search side by side.")
    ] = 1,
    numbers: Annotated[
        int | None,
        typer.Option(help="Numbers an entity, the most a signature may use; unset: as for train."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Settings that stay as they are, as TOML.")
    ] = None,
    set_: options.Set = None,
    seed: Annotated[
        int, typer.Option(min=0, max=options.LARGEST_SEED, help="Seed of the search.")
    ] = 0,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw what mattered, as PNG or SVG (extra: plots)."),
    ] = None,
    device: options.OnDevice = options.Device.auto,
    data_dir: options.DataDir = None,
    columns: options.Columns = None,
    valid: options.ValidSize = options.HELD_OUT,
    test: options.TestSize = options.HELD_OUT,
    json: options.Json = False,
    worker: Annotated[bool, typer.Option("--worker", hidden=True)] = False,
) -> None:
    """Search the settings that rank validation facts best.

    The first trial has the default settings. Those that fall behind are cut short early. Settings that are
    given stay as they are, and test facts are never ranked. The same command again goes on where it stopped.
    """
    from golde.config import Config
    from golde.tuning import Study, search_space
    from golde.tuning.study import need_optuna

    need_optuna()  # before a large graph is read, should it be missing
    place = study or str(out.with_suffix(".db"))
    _refuse_places(out, place, config, plot)
    base = Config.load(config, set_ or [])
    graph_name = source or base.graph
    if graph_name is None:
        raise GoldeError("name the graph to search on: golde tune NAME|PATH --out FILE.toml")
    graph = read_graph(graph_name, data_dir, columns, valid, test)
    if not len(graph.valid):
        raise GoldeError(
            f"{graph_name}: no facts are held out for validation, and settings are chosen by them; give "
            "it a valid file, or one file of facts with --valid 0.1"
        )
    searched = search_space(space.value, base, graph, numbers)
    wanted = trials or (TRIALS if seconds is None else UNLIMITED)
    there = Study(place, searched, graph, seed=seed)
    reading = options.reading(data_dir, columns, valid, test)
    if worker:
        raise typer.Exit(_work(there, graph, wanted, device.value))
    command: list[Any] = [sys.executable, "-m", "golde", "tune", graph_name, *reading]
    command += ["--out", out, "--space", space.value, "--trials", wanted]
    command += ["--numbers", numbers] if numbers is not None else []
    command += ["--config", config] if config is not None else []
    command += [word for setting in set_ or [] for word in ("--set", setting)]
    command += ["--seed", seed, "--device", device.value, "--worker"]

    with stopping() as asked, there.alone():
        end = time.monotonic() + (UNLIMITED if seconds is None else seconds)
        with _shown(there, None if wanted == UNLIMITED else wanted, end) as tell:
            _search(
                there,
                graph,
                wanted,
                device=device.value,
                command=[str(word) for word in command] if workers > 1 else None,
                workers=workers,
                tell=tell,
                should_stop=lambda: asked() or time.monotonic() >= end,
            )
        stopped = asked()
    best = there.best()
    if best is not None:
        _write(out, there, graph, best)
    if stopped:
        _say_stopped(there, out if best is not None else None)
        raise typer.Exit(130)
    if best is None:
        raise GoldeError(_nothing(there))
    importance = there.importance()
    if plot is not None:
        _draw(plot, there, graph, best, importance)
    if json:
        say_json(_summary(there, graph, best, importance, out))
    else:
        train = shlex.join(["golde", "train", graph_name, *map(str, reading), "--config", str(out)])
        _print(there, best, importance, [out, *([plot] if plot else [])], f"{train} --out RUN")


def _refuse_places(out: Path, place: str, config: Path | None, plot: Path | None) -> None:
    """Before hours of searching: places that could not be written to, or would be lost."""
    from golde.runs.atomic import refuse_what_is_no_file
    from golde.runs.folder import refuse_part_of_a_run

    for path in filter(None, (out, plot)):
        if not path.absolute().parent.is_dir():
            raise GoldeError(f"{path}: there is no folder {path.parent}; make it first")
        refuse_what_is_no_file(path)
        refuse_part_of_a_run(path)
    if out.suffix != ".toml":
        raise GoldeError(f"--out {out}: settings are written as TOML; name it FILE.toml")
    if config is not None and config.exists() and out.exists() and config.samefile(out):
        raise GoldeError(f"--out {out}: is the --config too, which would be lost; name another")
    if plot is not None:
        from golde.report.drawing import style

        if plot.suffix not in (".png", ".svg"):
            raise GoldeError(f"--plot {plot}: pictures are drawn as .png or .svg; name it so")
        with style():  # should the extra be missing
            pass
    if "://" not in place and Path(place).suffix in (".toml", ".png", ".svg"):
        raise GoldeError(f"--study {place}: is no name for a database; name it FILE.db")


def _work(study: Study, graph: KnowledgeGraph, wanted: int, device: str) -> int:
    """Be one of several workers; the exit code."""
    from golde.tuning.processes import STOPPED, orphaned
    from golde.tuning.worker import search

    alone = orphaned()
    with stopping() as asked:
        done = search(study, graph, wanted, device=device, should_stop=lambda: asked() or alone())
    return 0 if done else STOPPED


def _search(
    study: Study,
    graph: KnowledgeGraph,
    wanted: int,
    *,
    device: str,
    command: list[str] | None,
    workers: int,
    tell: Callable[[], None],
    should_stop: Callable[[], bool],
) -> None:
    """Search in this process, or in several that run ``command``."""
    from golde.tuning.processes import search_side_by_side
    from golde.tuning.worker import search

    if sum(trial.counts for trial in study.trials()) >= wanted:
        return
    if command is None:
        search(study, graph, wanted, device=device, tell=tell, should_stop=should_stop)
    else:
        search_side_by_side(study, command, workers, tell=tell, should_stop=should_stop)


@contextmanager
def _shown(study: Study, wanted: int | None, end: float) -> Iterator[Callable[[], None]]:
    """Shows the trials as they come: a table in a terminal, a line a trial elsewhere."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        told = {trial.number for trial in study.trials() if trial.counts}

        def log() -> None:
            for trial in study.trials():
                if trial.counts and trial.number not in told:
                    told.add(trial.number)
                    note(_line(study, trial))

        yield log
        return
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    def picture() -> Group:
        trials = study.trials()
        done = sum(trial.counts for trial in trials)
        of = "" if wanted is None else f" of {wanted:,}"
        left = end - time.monotonic()
        more = f", {duration(max(0.0, left))} left" if left < UNLIMITED / 2 else ""
        best = study.best()
        top = "" if best is None else f"; best MRR {best.mrr:.4f}, trial {best.number}"
        seen = [trial for trial in trials if trial.counts or trial.state == "running"]
        rows = table(study.space, seen[-ROWS_LIVE:], study.validations, best)
        return Group(Text(f"{done}{of} trials{more}{top}", style="bold"), rows)

    with Live(console=screen, auto_refresh=False, transient=True) as live:
        yield lambda: live.update(picture(), refresh=True)


def _line(study: Study, trial: Trial) -> str:
    """A finished trial in one line."""
    if trial.state == "failed":
        return f"trial {trial.number}: failed, {trial.reason}"
    settings = zip(headings(study.space)[3:-1], cells(study.space, trial, 0)[3:-1], strict=True)
    told = ", ".join(f"{heading} {cell}" for heading, cell in settings if cell)
    after = "" if trial.state == "complete" else f" after {trial.validations}/{study.validations}"
    state = "done" if trial.state == "complete" else "cut"
    return f"trial {trial.number}: MRR {trial.mrr or 0:.4f}, {state}{after}; {told}"


def _settings(study: Study, graph: KnowledgeGraph, best: Trial) -> Config:
    from golde.tuning import winner

    return winner(study, graph, best)


def _write(out: Path, study: Study, graph: KnowledgeGraph, best: Trial) -> None:
    from golde.runs.atomic import write_text

    done = sum(trial.counts for trial in study.trials())
    about = (
        f"# golde tune {graph.name}: trial {best.number} of {done} in {study.shown}, "
        f"validation MRR {best.mrr:.4f}\n"
    )
    write_text(out, about + _settings(study, graph, best).to_toml())


def _say_stopped(study: Study, out: Path | None) -> None:
    done = sum(trial.counts for trial in study.trials())
    written = "" if out is None else f", the best so far is in {out}"
    note(
        f"stopped after {done} trial{'s' * (done != 1)}, kept in {study.shown}{written}; the same command "
        "goes on"
    )


def _nothing(study: Study) -> str:
    """Why there is no winner."""
    trials = study.trials()
    if reasons := [trial.reason for trial in trials if trial.reason]:
        return f"{study.shown}: all {len(reasons)} trials failed, the last because {reasons[-1]}"
    return (
        f"{study.shown}: no trial was trained to its end in this time; the same command goes on, with more "
        "--time, or with fewer training.steps in another --study"
    )


def _draw(
    path: Path, study: Study, graph: KnowledgeGraph, best: Trial, importance: dict[str, float]
) -> None:
    from golde.report.search_plot import Dot, draw_search
    from golde.tuning.space import Range

    dots = [
        Dot(trial.point, trial.mrr, trial.state == "complete")
        for trial in study.trials()
        if trial.state in ("complete", "pruned") and trial.mrr is not None
    ]
    axes = study.space.axes.items()
    draw_search(
        path,
        importance,
        dots,
        best=best.point,
        logarithmic=frozenset(k for k, axis in axes if isinstance(axis, Range) and axis.log),
        title=f"What mattered on {graph.name}: {len(dots)} trials, best MRR {best.mrr:.4f}",
    )


def _summary(
    study: Study, graph: KnowledgeGraph, best: Trial, importance: dict[str, float], out: Path
) -> dict[str, Any]:
    trials = [trial for trial in study.trials() if trial.counts]
    return {
        "graph": graph.name,
        "digest": graph.digest,
        "space": study.space.name,
        "study": study.shown,
        "out": str(out),
        "best": {
            "trial": best.number,
            "mrr": best.mrr,
            "settings": _settings(study, graph, best).settings(),
        },
        "importance": importance,
        "trials": [
            {
                "trial": trial.number,
                "state": trial.state,
                "mrr": trial.mrr,
                "signature": study.space.signature(trial.point),
                "point": trial.point,
                "validations": trial.validations,
                "seconds": round(trial.seconds, 2),
                "reason": trial.reason,
            }
            for trial in trials
        ],
    }


def _print(
    study: Study, best: Trial, importance: dict[str, float], written: list[Path], train: str
) -> None:
    trials = [trial for trial in study.trials() if trial.counts]
    order = {"complete": 0, "pruned": 1, "failed": 2}
    ranked = sorted(trials, key=lambda trial: (order[trial.state], -(trial.mrr or 0)))
    rows = [cells(study.space, trial, study.validations) for trial in ranked[:ROWS_SHOWN]]
    say_table(headings(study.space), rows, align(study.space))
    counts = {s: sum(trial.state == s for trial in trials) for s in order}
    told = f"{counts['complete']} trained to the end, {counts['pruned']} cut short"
    told += f", {counts['failed']} failed" if counts["failed"] else ""
    points = [("trials", f"{len(trials)}: {told}"), ("best", _best(study, best, trials))]
    if importance:
        from golde.report.search_plot import label

        parts = [f"{label(name)} {share:.0%}" for name, share in importance.items()]
        points.append(("mattered", fill(", ".join(parts), 68)))
    points += [("" if i else "written", str(path)) for i, path in enumerate(written)]
    say_points([*points, ("study", study.shown), ("next", train)])
    say()


def _best(study: Study, best: Trial, trials: list[Trial]) -> str:
    """What was reached, beside the defaults if they were tried."""
    said, start = f"trial {best.number}, validation MRR {best.mrr:.4f}", study.space.start
    if start is not None and best.point == start:
        return f"{said}, the default settings"
    defaults = next((trial.mrr for trial in trials if trial.point == start), None)
    return said if defaults is None else f"{said}; the defaults reach {defaults:.4f}"
