"""``golde train``."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from golde.cli import options
from golde.cli.evidence import evidence_points
from golde.cli.output import bar, console, note, say_points
from golde.errors import GoldeError
from golde.progress import silent
from golde.words import duration

if TYPE_CHECKING:
    from golde.config import Config
    from golde.data.graph import KnowledgeGraph
    from golde.distributed.graph import GraphShare
    from golde.distributed.world import World
    from golde.runs import RunFolder
    from golde.training.loop import Watcher

NUMBERS = 128
"""Numbers an entity that a preset fills unless told otherwise."""


STALL_LIMIT = 600.0
"""Seconds that the others wait for one of several processes before they name it and end."""


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: golde train facts.tsv --out runs/facts")(train)


def train(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|PATH",
            help="A named set, a folder with train, valid and test files, or one file of facts. "
            "A run that is resumed knows its own, and a configuration may name one.",
        ),
    ] = None,
    *,
    out: Annotated[Path, typer.Option(metavar="RUN", help="Folder of the run.")],
    config: Annotated[Path | None, typer.Option(help="Settings, as TOML.")] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="A known model: rotate, house, roth, transe, distmult, complex …"),
    ] = None,
    numbers: Annotated[
        int | None, typer.Option(help=f"Numbers an entity, for the preset ({NUMBERS}).")
    ] = None,
    set_: options.Set = None,
    device: options.OnDevice = options.Device.auto,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in --out, if there is one.")
    ] = False,
    data_dir: options.DataDir = None,
    columns: options.Columns = None,
    valid: options.ValidSize = options.HELD_OUT,
    test: options.TestSize = options.HELD_OUT,
    threads: Annotated[
        int | None, typer.Option(min=1, max=1024, help="CPU threads; unset: one a core.")
    ] = None,
    devices: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1024,
            metavar="N",
            help="Spread training over N processes of this machine, one a GPU if there are any.",
        ),
    ] = None,
    stall_limit: Annotated[
        float,
        typer.Option(
            min=1,
            metavar="SECONDS",
            help="Of several processes, name one that keeps the others waiting so long, and end.",
        ),
    ] = STALL_LIMIT,
    track: Annotated[
        bool,
        typer.Option("--track", help="Write TensorBoard files into the run folder (extra: track)."),
    ] = False,
) -> None:
    """Train a model on a graph."""
    from golde.distributed import launch
    from golde.distributed.loop import train_sharded
    from golde.inference.run import add_evidence
    from golde.runs import RunFolder
    from golde.training import train as trained
    from golde.training.loop import StoppedError, pick_device
    from golde.training.tracking import summary_writer, tracking

    if devices is not None:
        raise typer.Exit(launch.run_on(devices, _without_devices(sys.argv[1:])))
    with launch.telling(), launch.joined_if_several(device.value, stall_limit, note) as world:
        with nullcontext() if world is None else world.all_or_none():
            if track:
                summary_writer()  # before a large graph is read, should it be missing
            resume, leads = resume or launch.was_restarted(), launch.leads()
            track = track and leads
            goes_on = resume and RunFolder(out).exists()
            stored = RunFolder(out).config() if goes_on else None
            settings = _settings(config, preset, numbers, set_ or [], stored)
            name = source or (None if goes_on else settings.graph)
            if name is None and resume and not goes_on:
                raise GoldeError(
                    f"{out}: no run here to go on with; name the folder of one with --out, or the graph to "
                    "begin one on"
                )
            if name is None and not goes_on:
                raise GoldeError("name the graph to train on: golde train NAME|PATH --out RUN")
            if threads is not None:
                import torch

                torch.set_num_threads(threads)
        reading = data_dir, columns, valid, test
        run: Callable[..., RunFolder]
        if world is not None:
            run = partial(train_sharded, _share(name, out, world, reading), out, settings, world)
        elif name is not None:
            run = partial(trained, read_graph(name, *reading), out, settings)
        else:
            run = partial(trained, RunFolder(out).graph(), out, settings)
        try:
            with (
                watching() as shown,
                tracking(out, shown) if track else nullcontext(shown) as watch,
                stopping() as should_stop,
            ):
                folder = run(
                    device=device.value, resume=resume, watch=watch, should_stop=should_stop
                )
        except StoppedError as stopped:
            if leads:
                stop_message(stopped, out, launch.processes())
            raise typer.Exit(launch.stop_code()) from None
    if leads:
        if folder.config().evidence.hops:
            try:
                with bar("weighing facts in a row") as progress:
                    add_evidence(folder, pick_device(device.value), progress=progress)
            except KeyboardInterrupt:
                note(
                    f"trained, but stopped before evidence was gathered; go on with: golde evidence {out}"
                )
                raise typer.Exit(130) from None
        say_points([*outcome(folder), ("next", _next_command(folder))])


def _share(
    name: str | None, out: Path, world: World, reading: tuple[Path | None, str | None, str, str]
) -> GraphShare:
    """What this one of several processes has of the graph: of that of the run if there is no name."""
    from golde.distributed.graph import GraphShare
    from golde.distributed.reading import load_share
    from golde.runs import RunFolder

    if name is None:
        return GraphShare.stored(RunFolder(out), world)
    data_dir, columns, *sizes = reading
    with world.all_or_none():
        valid, test = (options.parse_size(size) for size in sizes)
    leads = world.rank == 0
    with bar("reading") if leads else nullcontext(silent) as progress:
        share = load_share(
            name,
            world,
            data_dir=data_dir,
            columns=columns,
            valid=valid,
            test=test,
            progress=progress,
        )
    if leads:
        for line in share.notes:
            note(f"note: {line}")
    return share


def _without_devices(arguments: list[str]) -> list[str]:
    """What each of several processes is started with."""
    kept = [given for given in arguments if not given.startswith("--devices=")]
    if "--devices" in kept:
        at = kept.index("--devices")
        del kept[at : at + 2]
    return kept


def stop_message(stopped: Exception, out: Path, processes: int = 0) -> None:
    """That training was interrupted, and how to go on, with so many processes if it had several."""
    several = f" --devices {processes}" if processes else ""
    note(f"{stopped}; go on with: golde train --resume --out {out}{several}")


def read_graph(
    source: str,
    data_dir: Path | None = None,
    columns: str | None = None,
    valid: str = options.HELD_OUT,
    test: str = options.HELD_OUT,
) -> KnowledgeGraph:
    """A graph, and on stderr what was noticed while reading it."""
    held_out = options.parse_size(valid), options.parse_size(test)
    from golde.data.loading import load_graph

    with bar("reading") as progress:
        graph = load_graph(
            source,
            data_dir=data_dir,
            columns=columns,
            valid=held_out[0],
            test=held_out[1],
            progress=progress,
        )
    for line in graph.notes:
        note(f"note: {line}")
    return graph


def outcome(folder: RunFolder) -> list[tuple[str, str]]:
    """What training left behind, in words."""
    about, settings = folder.about(), folder.config().training
    kept, steps, planned = about["chosen_step"], about["steps"], settings.steps
    which = "" if kept == steps else f", the model of step {kept:,} kept"
    points = [
        ("run", str(folder.path)),
        ("trained", f"{steps:,} steps in {duration(about['seconds'])}{which}"),
    ]
    if planned is not None and steps < planned:
        some = f"{settings.patience} validation{'s' * (settings.patience != 1)}"
        why = f"no better MRR in {some} (patience)"
        points.append(("ended early", f"step {steps:,} of {planned:,}: {why}"))
    facts, limit = about["valid"], settings.validate_limit
    on = "" if facts <= limit else f" on {limit:,} of {facts:,} facts"
    scores = [check["mrr"] for check in about["validation"] if check["step"] == kept]
    points += [("validation", f"MRR {mrr:.3f}{on}") for mrr in scores]
    return points + evidence_points(folder.gathered())


def _next_command(folder: RunFolder) -> str:
    """What to do with a trained run: rank what was held out, if anything was."""
    about = folder.about()
    if about["test"]:
        return f"golde evaluate {folder.path}"
    if about["valid"]:
        return f"golde evaluate {folder.path} --split valid"
    return f"golde complete {folder.path}"


@contextmanager
def watching() -> Iterator[Watcher]:
    """Shows how training gets on: a bar in a terminal, a line every tenth of the way elsewhere."""
    from golde.training.loop import Report

    screen = console(stderr=True)
    if not screen.is_terminal:
        shown = 0

        def log(report: Report) -> None:
            nonlocal shown
            if report.step * 10 // report.steps > shown:
                shown = report.step * 10 // report.steps
                note(f"step {report.step:,}/{report.steps:,}  {_state(report)}")

        yield log
        return
    from rich.progress import BarColumn, Progress, TextColumn

    columns = BarColumn(None), TextColumn("{task.completed:,}/{task.total:,}  {task.fields[state]}")
    with Progress(*columns, console=screen, transient=True, expand=True) as progress:
        task = progress.add_task("training", total=None, state="starting", visible=False)

        def draw(report: Report) -> None:
            progress.update(
                task,
                completed=report.step,
                total=report.steps,
                state=_state(report),
                visible=True,
            )

        yield draw


def _state(report: Any) -> str:
    seconds = round(report.seconds_left)
    left = f"{seconds // 60 % 60}:{seconds % 60:02}"
    if seconds >= 3600:
        left = f"{seconds // 3600}:{left:0>5}"
    mrr = "" if report.mrr is None else f"  MRR {report.mrr:.3f}"
    return f"loss {report.loss:.4f}  {report.queries_per_second:,.0f} queries/s  {left} left{mrr}"


@contextmanager
def stopping() -> Iterator[Callable[[], bool]]:
    """Ctrl-C, a polite kill and a closed terminal ask training to stop; a second time does not wait."""
    from golde.distributed.launch import asked_to_stop, wishes_to_end

    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    signals = [signal.SIGINT, *wishes_to_end()]
    before = [(number, signal.signal(number, ask)) for number in signals]
    try:
        yield lambda: asked or asked_to_stop()
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def _settings(
    path: Path | None,
    preset: str | None,
    numbers: int | None,
    overrides: list[str],
    stored: Config | None,
) -> Config:
    """Those of a run to go on with, then file, preset and single settings, the later ones on top."""
    from golde.config import Config
    from golde.models.presets import preset as find_preset

    if numbers is not None and preset is None:
        preset = "golde"
    if preset is not None:
        space = find_preset(preset, NUMBERS if numbers is None else numbers)
        chosen = space.model_dump(exclude_unset=True)
        overrides = [*(f"model.{key}={_toml(value)}" for key, value in chosen.items()), *overrides]
    return Config.load(path, overrides, base=stored)


def _toml(value: str | bool | int) -> str:
    import json

    return json.dumps(value)  # the same text in both, for words, truth values and numbers
