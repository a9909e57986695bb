"""``golde reproduce`` and ``golde report``."""

from __future__ import annotations

import shlex
import signal
import sys
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

import typer

from golde.cli import options
from golde.cli.handout import write_handout
from golde.cli.output import complain, note, say, say_json, say_table
from golde.cli.train import read_graph, stopping, watching
from golde.errors import GoldeError
from golde.words import duration

if TYPE_CHECKING:
    from golde.data.graph import KnowledgeGraph
    from golde.progress import Progress
    from golde.report.reproduce import Place
    from golde.report.studies import Job
    from golde.report.tables import Table

RESULTS, RUNS = Path("results"), Path("runs")

EXAMPLES = """\b
Example: golde reproduce configs/wn18rr.toml
  golde reproduce studies/table3.toml --jobs 4
  golde report --write
"""

REPORTS = """\b
Example: golde report --paper
  golde report runs/world --html world.html
"""

STOPPED = {130, -signal.SIGTERM}
"""Exit codes of a training that was asked to stop, the second one's before it could listen."""

Results = Annotated[Path, typer.Option(metavar="FOLDER", help="Where result files are kept.")]


def register(app: typer.Typer) -> None:
    app.command(epilog=EXAMPLES)(reproduce)
    app.command(epilog=REPORTS)(report)


def reproduce(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A configuration that names its graph, or a study."),
    ],
    seeds: Annotated[
        str | None,
        typer.Option(metavar="N,N,…", help="Unset: 0,1,2 for a configuration; those of a study."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="VARIANT", help="This one of a study; may be given several times."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Trainings at a time, each a process.")] = 1,
    again: Annotated[
        bool, typer.Option("--again", help="Replace results; the old ones are kept inside the new.")
    ] = False,
    results: Results = RESULTS,
    runs: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where run folders are kept.")
    ] = RUNS,
    device: options.OnDevice = options.Device.auto,
    data_dir: options.DataDir = None,
    shared: Annotated[int, typer.Option(hidden=True, min=1)] = 1,
) -> None:
    """Train a configuration or a study, rank it once, and keep what it reached.

    A configuration is ranked on test, under the standard protocol and under the self-filter; a study on
    validation, unless it says otherwise. What is there already is left alone, what was interrupted goes on.
    """
    from golde.report.reproduce import Place
    from golde.report.studies import read_jobs
    from golde.training.loop import pick_device

    pick_device(device.value)  # that it is not there is told once
    for option, folder in (
        ("--results", results / "runs"),
        ("--results", results / "studies"),
        ("--runs", runs),
    ):
        _refuse_no_folder(option, folder)
    found = read_jobs(file, seeds=_seeds(seeds), only=only or [])
    graphs: dict[str, KnowledgeGraph] = {}
    places = []
    for job in found:
        if job.graph not in graphs:
            try:
                graphs[job.graph] = read_graph(job.graph, data_dir)
            except GoldeError as error:
                lost = not Path(job.graph).is_absolute() and not Path(job.graph).exists()
                where = f", looked for in {Path.cwd()}" if lost else ""
                raise GoldeError(f"{file}: graph = {job.graph!r}{where}: {error}") from None
        places.append(Place(job, graphs[job.graph], results=results, runs=runs, again=again))
    for place in places:
        if place.is_complete:
            say(f"{place.job}: there already, {place.path}")
    if places and all(place.is_complete for place in places):
        note(
            "nothing is left to train; --again makes these anew, and folders of your own, named by "
            "--results and --runs, others beside them"
        )
    places = [place for place in places if not place.is_complete]
    if jobs > 1:
        given = ["--results", results, "--runs", runs, "--device", device.value]
        given += ["--data-dir", data_dir] if data_dir is not None else []
        failed = _side_by_side(file, places, jobs, again, [*given, *["--again"] * again])
    else:
        failed = _one_by_one(places, device.value, shared, again)
    if failed:
        raise GoldeError(f"{len(failed)} of {len(places)} failed: {'; '.join(map(str, failed))}")


def _refuse_no_folder(option: str, folder: Path) -> None:
    """What can hold nothing is told before anything is trained."""
    places = (folder, *folder.absolute().parents)
    there = next(place for place in places if place.exists() or place.is_symlink())
    if not there.is_dir():
        raise GoldeError(f"{option}: {there} is no folder; name another")


def _seeds(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        seeds = [int(part) for part in text.split(",")]
    except ValueError:
        seeds = [-1]
    if not all(0 <= seed < 2**32 for seed in seeds):
        raise GoldeError(f"--seeds {text!r}: give whole numbers from 0 to 2³² − 1, such as 0,1,2")
    return seeds


def _goes_on(again: bool, places: list[Place]) -> str:
    """What to do after a stop."""
    if again and len(places) > 1:
        return (
            "the same command goes on, and also makes anew what it had finished: name the rest with --seeds "
            "or --only"
        )
    return "the same command goes on"


def _one_by_one(places: list[Place], device: str, shared: int, again: bool) -> list[Job]:
    """Reproduce here; the jobs that failed. A single one that fails stops the command."""
    from golde.report.reproduce import reproduce as run
    from golde.training.loop import StoppedError

    failed = []
    for place in places:
        try:
            note(
                f"{place.job}: {'going on from' if place.is_trained else 'training in'} {place.run}"
            )
            with watching() as watch, stopping() as should_stop:
                run(
                    place,
                    device=device,
                    shared=shared,
                    watch=watch,
                    should_stop=should_stop,
                    progress=_say_once(f"{place.job}: weighing facts in a row"),
                )
                stopped = should_stop()
        except StoppedError as error:
            note(f"{error}; {_goes_on(again, places)}")
            raise typer.Exit(130) from None
        except GoldeError as error:
            if len(places) == 1:
                raise
            complain(f"{place.job}: {error}")
            failed.append(place.job)
            continue
        _say_outcome(place)
        if stopped and place is not places[-1]:
            note(f"stopped; {_goes_on(again, places)}")
            raise typer.Exit(130)
    return failed


def _say_once(what: str) -> Progress:
    """Says what has begun, and no more."""
    said = False

    def say_it(done: int, total: int) -> None:
        nonlocal said
        if not said:
            note(what)
        said = True

    return say_it


def _side_by_side(
    file: Path, places: list[Place], jobs: int, again: bool, given: list[Any]
) -> list[Job]:
    """Reproduce in processes, several at a time; the jobs that failed."""
    from golde.report.processes import Command, run_side_by_side

    commands, by_name = {}, {str(place.job): place for place in places}
    for name, place in by_name.items():
        words = [sys.executable, "-m", "golde", "reproduce", file, "--seeds", place.job.seed]
        words += ["--only", place.job.name] if place.job.study else []
        log = place.run.with_name(place.run.name + ".log")
        commands[name] = Command([str(word) for word in [*words, *given, "--shared", jobs]], log)
    failed = []
    begun = {name: _size(command.log) for name, command in commands.items()}

    def tell_begun(name: str) -> None:
        note(f"{name}: begun, log in {commands[name].log}")

    def tell(name: str, code: int) -> None:
        if code == 0:
            _say_outcome(by_name[name])
        elif code not in STOPPED:
            failed.append(by_name[name].job)
            complain(f"{name}: {_last_error(commands[name].log, begun[name])}")

    with stopping() as should_stop:
        codes = run_side_by_side(
            commands, jobs, tell_begun=tell_begun, tell=tell, should_stop=should_stop
        )
    if len(codes) < len(commands) or not STOPPED.isdisjoint(codes.values()):
        note(f"stopped; {_goes_on(again, places)}")
        raise typer.Exit(130)
    return failed


def _size(log: Path) -> int:
    return log.stat().st_size if log.is_file() else 0


def _last_error(log: Path, begun: int) -> str:
    """What went wrong, by what was added to a log since then; another process may be writing to it, too."""
    lines = log.read_bytes()[begun:].decode("utf-8", errors="replace").split("\n")
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return (errors or [line for line in lines if line] or ["no word"])[-1]


def _say_outcome(place: Place) -> None:
    from golde.report.results import EMBEDDING, read_record, values

    record = read_record(place.path)
    (standard,), (filtered,) = (values([record], "mrr", p) for p in ("standard", "self_filter"))
    has_alone = EMBEDDING in record["figures"]
    alone = (
        f" (the embedding alone {values([record], 'mrr', EMBEDDING)[0]:.4f})" if has_alone else ""
    )
    say(
        f"{place.job}: {record['split']} MRR {standard:.4f}{alone}, self-filter {filtered:.4f}, "
        f"{duration(record['training']['seconds'])}; {place.path}"
    )


def report(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN", help="With --html: folders of finished runs."),
    ] = None,
    results: Results = RESULTS,
    study: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The variants of a study, the best first."),
    ] = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="The paper's tables with ours beside them.")
    ] = False,
    write: Annotated[
        bool,
        typer.Option(
            "--write", help="Write README.md, docs/results.md, docs/paper.md and its figures anew."
        ),
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write what 'golde serve' shows of runs, in one file."),
    ] = None,
    device: options.OnDevice = options.Device.auto,
    json: options.Json = False,
) -> None:
    """Show what was reproduced, by configuration, and write it into the documentation.

    With --html: runs as one page that needs no service, to send to somebody.
    """
    if sum((json, paper, study is not None)) > 1:
        raise GoldeError("--json, --paper and --study each show something else; give one of them")
    if (html is None) != (not runs) or (html is not None and (paper or write or study is not None)):
        raise GoldeError(
            "--html FILE goes with the folders of runs and stands alone: golde report RUN --html FILE"
        )
    if html is not None:
        write_handout(runs or (), html, device, json)
        return
    from golde.report.paper import PaperTables
    from golde.report.results import read_records, summaries, unfinished
    from golde.report.tables import ranked_again, reproduced
    from golde.report.variations import study_names, study_tables

    if not results.is_dir():
        what = "is no folder" if results.exists() else "no such folder"
        raise GoldeError(f"{results}: {what}; reproduce something first, or name it with --results")
    if write:
        from golde.report.pages import write_pages

        for path in write_pages(results.absolute().parent, results):
            note(f"written {path}")
    for path in unfinished(results, study):
        note(
            f"{path}: not ranked to the end, and left out; the golde reproduce that began it goes on"
        )
    if json:
        say_json(summaries(results))
    elif study is not None:
        _print(study_tables(results, study))
    elif paper:
        _print(PaperTables(results, results.absolute().parent / "configs").tables())
    elif not write:
        studies = study_names(results)
        if tables := reproduced(results):
            _print(tables)
            say(READING, style="dim")
        elif not studies:
            note("nothing was reproduced yet; start with: golde reproduce CONFIGURATION.toml")
        for told in ranked_again(read_records(results, "runs")):
            note(f"ranked on test more than once: {told}")
        if studies:
            names = fill(f"studies: {', '.join(studies)}", 80)
            given = [] if results == RESULTS else ["--results", str(results)]
            words = ["golde", "report", *given, "--study", studies[0]]
            say(f"{names}\nshown by: {shlex.join(words)}", style="dim")


READING = (
    "Test, filtered, both sides, realistic rank on ties; means over seeds, ± their\nstandard deviation. "
    "self-f.: MRR without the query's own entity as a candidate.\n"
    "alone: that of the embedding, where evidence counts beside it."
)


def _print(tables: list[Table]) -> None:
    for table in tables:
        say(table.title, style="bold")
        words = (table.head[0], "commit")  # several commits are folded
        align = "".join("<" if heading in words else ">" for heading in table.head)
        say_table(table.head, table.rows, align, within_words=sys.stdout.isatty())
        if table.note:
            say(fill(table.note, 80) + "\n", style="dim")
