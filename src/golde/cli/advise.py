"""``golde advise``: a signature from the shape of a graph."""

from __future__ import annotations

import shlex
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from golde.cli import options
from golde.cli.output import bar, say, say_json, say_points, say_table
from golde.cli.train import read_graph
from golde.errors import GoldeError

if TYPE_CHECKING:
    from golde.analysis.advise import Advice
    from golde.data.graph import KnowledgeGraph
    from golde.geometry import Signature

RELATIONS_SHOWN = 20
WIDTH = 78
NAME_SHOWN = 26
"""Letters of a relation's name, the last ones; two lines of a table that fits 80 columns."""


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: golde advise facts.tsv --numbers 64 --plot shape.png")(advise)


def advise(
    source: Annotated[
        str, typer.Argument(metavar="NAME|PATH", help="A named set, a folder, or one file.")
    ],
    numbers: Annotated[
        int | None,
        typer.Option(
            max=1_000_000,
            help="Numbers an entity may have; unset: as many as training would choose.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a configuration (.toml) for golde train."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the shapes into a .png or .svg (extra: plots)."),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=options.LARGEST_SEED, help="Seed of what is sampled.")
    ] = 0,
    data_dir: options.DataDir = None,
    columns: options.Columns = None,
    valid: options.ValidSize = options.HELD_OUT,
    test: options.TestSize = options.HELD_OUT,
    json: options.Json = False,
) -> None:
    """Propose a signature from the shape of a graph, with the reasons.

    Trees call for hyperbolic components, cycles and several answers for elliptic ones, chains and grids
    for Euclidean ones.
    """
    _check_files(out, plot)
    graph = read_graph(source, data_dir, columns, valid, test)
    from golde.analysis.advise import advise as advise_on

    default = _default(graph)
    with bar("measuring") as progress:
        budget = default.numbers if numbers is None else numbers
        found = advise_on(graph, budget, seed=seed, progress=progress)
    if out is not None:
        _write_config(out, source, found)
    if plot is not None:
        from golde.analysis.shape_picture import draw_shapes

        draw_shapes(plot, found)
    if json:
        say_json(found.to_dict() | {"default": str(default)})
    else:
        given = (
            ["--config", str(out)]
            if out
            else [source, "--set", f"model.signature={found.signature}"]
        )
        train = ["golde", "train", *given, *options.reading(data_dir, columns, valid, test)]
        written = [path for path in (out, plot) if path]
        _print(found, default, written, shlex.join([*train, "--out", "RUN"]))


def _check_files(out: Path | None, plot: Path | None) -> None:
    """Mistakes in names are told before a large graph is read."""
    from golde.runs.atomic import refuse_what_is_no_file
    from golde.runs.folder import refuse_part_of_a_run

    if plot is not None:
        from golde.analysis.shape_picture import check_picture

        check_picture(plot)
    if out is not None and out.suffix.lower() != ".toml":
        raise GoldeError(f"{out}: a configuration is TOML; name it .toml")
    for path in filter(None, (out, plot)):
        refuse_what_is_no_file(path)
        refuse_part_of_a_run(path)
        if not path.parent.is_dir():
            raise GoldeError(f"{path}: there is no folder {path.parent}; make it first")


def _default(graph: KnowledgeGraph) -> Signature:
    """That of a run with no option set."""
    from golde.config import Config
    from golde.geometry import Signature
    from golde.training.defaults import resolve

    return Signature.parse(resolve(Config(), graph).model.signature or "")


def _write_config(path: Path, source: str, found: Advice) -> None:
    """The graph and the signature; everything else is left to training, the reasons as comments."""
    import tomli_w

    from golde.runs.atomic import write_text

    lines = [line for reason in found.reasons for line in textwrap.wrap(f"- {reason}", WIDTH)]
    about = "".join(f"# {line}\n" for line in ["Proposed by golde advise.", *lines])
    settings = {"graph": source, "model": {"signature": str(found.signature)}}
    write_text(path, about + tomli_w.dumps(settings))


def _print(found: Advice, default: Signature, written: list[Path], train: str) -> None:
    whole = found.whole
    counts = f"{whole.facts:,} training facts, {whole.entities:,} entities, {len(found.shapes):,} relations"
    say_points(
        [
            ("graph", f"{whole.name}: {counts}"),
            ("signature", f"{found.signature}  ({found.signature.numbers} numbers an entity)"),
            *(
                [("", "the default: training takes it unasked")]
                if found.signature == default
                else []
            ),
        ]
    )
    say("\nReasons", style="bold")
    for reason in found.reasons:
        for line in textwrap.wrap(
            reason, WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False
        ):
            say(line)
    say()
    _print_relations(found)
    files = [("" if i else "written", str(path)) for i, path in enumerate(written)]
    say_points([*files, ("next", train)])


def _print_relations(found: Advice) -> None:
    from golde.analysis.advise import signed

    largest = sorted(found.shapes, key=lambda shape: -shape.structure.facts)
    rows = []
    for shape in largest[:RELATIONS_SHOWN]:
        one = shape.structure
        measured = (one.krackhardt, one.delta_relative, one.curvature)
        rows.append(
            [
                one.name if len(one.name) <= NAME_SHOWN else f"…{one.name[1 - NAME_SHOWN :]}",
                f"{one.facts:,}",
                one.category or "",
                f"{one.symmetry:.0%}",
                f"{one.cyclicity:.0%}",
                *("" if value is None else signed(value) for value in measured),
                f"{shape.shares['Q']:.0%}",
                shape.word,
            ]
        )
    heads = ["relation", "facts", "kind", "symm.", "cyclic", "Krack.", "2δ/d", "curv.", "Q"]
    say_table([*heads, "shape"], rows, "<><>>>>>><")
    if len(largest) > RELATIONS_SHOWN:
        say(f"… and {len(largest) - RELATIONS_SHOWN} more; --json has them all.\n")
