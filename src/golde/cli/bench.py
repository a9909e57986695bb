"""``golde bench``: what a step of training costs on this machine."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from golde.cli import options
from golde.cli.output import bar, complain, note, say, say_json, say_points, say_table
from golde.errors import GoldeError

if TYPE_CHECKING:
    import torch

    from golde.benchmark.size import Size

REPEATS = {"cuda": 60, "cpu": 15}

EXAMPLES = """\b
Example: golde bench
  golde bench --device cpu --signature "P8x16 Q9x16" --batch 1024
  golde bench --sweep batch --sweep negatives --out bench.json
"""


class Sweep(StrEnum):
    batch = "batch"
    negatives = "negatives"
    components = "components"
    dimension = "dimension"
    entities = "entities"


class Optimiser(StrEnum):
    adam = "adam"
    lazy_adam = "lazy-adam"


def register(app: typer.Typer) -> None:
    app.command(epilog=EXAMPLES)(bench)


def bench(
    signature: Annotated[
        str | None, typer.Option(help="The space, such as 'P10x36 Q13x36'.")
    ] = None,
    entities: Annotated[int | None, typer.Option(min=2, help="Of a random graph.")] = None,
    relations: Annotated[int | None, typer.Option(min=1, help="Of the same.")] = None,
    facts: Annotated[int | None, typer.Option(min=1, help="Of the same.")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Queries a step.")] = None,
    negatives: Annotated[
        int | None, typer.Option(min=0, help="Negatives that they share; 0: all entities.")
    ] = None,
    sweep: Annotated[
        list[Sweep] | None,
        typer.Option(help="How the cost grows over this; may be given several times."),
    ] = None,
    optimiser: Annotated[
        Optimiser | None, typer.Option(help="Other than that of a default run.")
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(min=3, help="Steps timed; unset: 60 on a GPU, 15 on a CPU."),
    ] = None,
    device: options.OnDevice = options.Device.auto,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all figures as JSON too.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Time a step of training in every form, side by side.

    Each form is first compared with the plain one, at once and after several steps: loss, gradient norm
    and parameters. One that differs has no time, and the exit code is 1. Sizes that are not given are the
    paper's on WN18RR on a GPU, and smaller ones on a CPU.
    """
    # Before torch is imported: its profiler tells of every start and of memory it did not see.
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    from golde.benchmark.compare import bench as run_bench
    from golde.benchmark.task import Task
    from golde.runs.atomic import refuse_what_is_no_file, write_json
    from golde.runs.folder import refuse_part_of_a_run
    from golde.training.loop import pick_device

    if out is not None:  # before minutes of measuring
        if not out.parent.is_dir():
            raise GoldeError(f"{out}: there is no folder {out.parent}; make it first")
        refuse_what_is_no_file(out)
        refuse_part_of_a_run(out)
    place = pick_device(device.value)
    size = _size(
        place,
        signature=signature,
        entities=entities,
        relations=relations,
        facts=facts,
        batch=batch,
        negatives=negatives,
    )
    settings = () if optimiser is None else (f"training.optimiser={optimiser.value}",)
    with bar("measuring") as progress:
        found = run_bench(
            Task(size, place, settings),
            repeats=repeats or REPEATS[place.type],
            sweeps=[one.value for one in dict.fromkeys(sweep or [])],
            progress=progress,
            tell=note,
        )
    if out is not None:
        write_json(out, found)
    if json:
        say_json(found)
    else:
        _print(found)
    wrong = {
        name: one["failed"]
        for name, one in (found["forms"] | found["sizes"]).items()
        if "failed" in one
    }
    for name, reason in wrong.items():
        complain(f"{name} has no time: {reason}")
    if wrong:
        raise typer.Exit(1)


def _size(device: torch.device, **given: Any) -> Size:
    """The usual size with what was asked for."""
    from golde.benchmark.size import usual

    return usual(device)._replace(**{k: v for k, v in given.items() if v is not None})


def _print(found: dict[str, Any]) -> None:
    size, machine, versions = found["size"], found["machine"], found["versions"]
    on_gpu = machine["device"] == "cuda"
    negatives = f"{size['negatives']:,} negatives" if size["negatives"] else "all as negatives"
    threads = f"{machine['threads']} thread{'s'[: machine['threads'] > 1]}"
    packages = ", ".join(f"{name} {version}" for name, version in versions.items())
    say_points(
        [
            ("space", size["signature"]),
            (
                "graph",
                f"{size['entities']:,} entities, {size['relations']:,} relations, {size['facts']:,} facts",
            ),
            ("step", ", ".join([f"{size['batch']:,} queries", negatives, *found["given"]])),
            ("machine", machine["gpu"] if on_gpu else f"{machine['cpu']}, {threads}"),
            ("versions", f"{packages}\ncommit {found['commit']}"),
        ]
    )
    say()
    _print_times("form", found["forms"], captured=on_gpu)
    if found["sizes"]:
        _print_times("at other sizes", found["sizes"], captured=on_gpu)
    say(
        f"Medians of {found['settings']['repeats']} steps, with quartiles. Memory: beyond parameters, "
        "the moments\nof Adam and the facts. Gathered: 200 negatives for every query alone.",
        style="dim",
    )


def _print_times(title: str, rows: dict[str, dict[str, Any]], *, captured: bool) -> None:
    """One line a form or a size; why one has no time is told below."""
    headings = [title, "a step", "quartiles", "pairs/s", "memory"]
    say_table(
        [*headings, "CUDA graph"] if captured else headings,
        ([name, *_cells(one)][: 6 if captured else 5] for name, one in rows.items()),
        "<>>>><" if captured else "<>>>>",
    )
    for name, one in rows.items():
        if "skipped" in one:
            say(f"{name}: {one['skipped']}\n")


def _cells(one: dict[str, Any]) -> list[str]:
    if "ms" not in one:
        return ["failed" if "failed" in one else "skipped", "", "", "", ""]
    low, high = one["quartiles_ms"]
    return [
        f"{one['ms']:,.2f} ms",
        f"{low:,.2f}–{high:,.2f}",
        f"{one['pairs_per_second'] / 1e6:,.1f} M",
        f"{one['memory_beyond_state_mb']:,} MiB",
        "yes" if one["captured"] else "no",
    ]
