"""``golde predict --path``: answers several hops away."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from golde.cli import options
from golde.cli.output import say, say_json, say_points, say_table
from golde.errors import GoldeError

if TYPE_CHECKING:
    from golde.inference import PathAnswer

Path = Annotated[
    str | None,
    typer.Option(
        metavar="R1,R2,…",
        help="Several hops from --head, or back from --tail; ^R is a hop against R.",
    ),
]
Beam = Annotated[
    int | None,
    typer.Option(min=1, help="With --path: keep so many entities a hop; unset: compose maps."),
]


def answer(
    run: pathlib.Path,
    head: str | None,
    tail: str | None,
    path: str | None,
    beam: int | None,
    top: int,
    known: str,
    candidates: pathlib.Path | None,
    out: pathlib.Path | None,
    device: options.Device,
    json: bool,
) -> None:
    """Answer one path and deliver the answers to a file, as JSON or as a table."""
    if path is None:
        raise GoldeError("--beam is about the hops of a path: give --path R1,R2 too")
    if (head is None) == (tail is None):
        raise GoldeError("a path has one known end: give either --head or --tail with --path")
    import golde
    from golde.inference.batch import read_names
    from golde.inference.tables import open_table

    opened = golde.load_run(run, device=device.value)
    pool = None if candidates is None else read_names(candidates, opened.graph.entities)
    found = opened.predict_path(
        path, head=head, tail=tail, beam=beam, top=top, known=known, candidates=pool
    )
    if out is not None:
        columns: dict[str, type] = {"rank": int, "answer": str, "score": float}
        with open_table(out, columns | {"known": str, "via": str}) as write:
            write([(i, a.answer, a.score, _mark(a), _via(a)) for i, a in enumerate(found, 1)])
    if json:
        query = {"head": head, "tail": tail, "path": path, "beam": beam}
        say_json({"query": query, "answers": [asdict(one) for one in found]})
    elif out is not None:
        say_points([("written", f"{out} ({len(found):,} answers)")])
    else:
        say(f"({head or '?'}, {path}, {tail or '?'})", style="bold")
        _print(found, marked=known == "mark", explained=beam is not None)


def _print(found: Sequence[PathAnswer], marked: bool, explained: bool) -> None:
    headings, align = ["", "answer", "score"], "><>"
    rows = [[str(i), one.answer, f"{one.score:.3f}"] for i, one in enumerate(found, 1)]
    if marked:
        headings, align = [*headings, "known from"], align + "<"
        rows = [[*row, _mark(one)] for row, one in zip(rows, found, strict=True)]
    if explained:
        headings, align = [*headings, "best path by way of"], align + "<"
        rows = [[*row, _via(one)] for row, one in zip(rows, found, strict=True)]
    say_table(headings, rows, align)


def _mark(one: PathAnswer) -> str:
    return "facts" if one.known else ""


def _via(one: PathAnswer) -> str:
    return ", ".join(one.via or ())
