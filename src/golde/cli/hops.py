"""``golde predict --path``: answers several hops away."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from golde.cli import options
from golde.cli.output import bar, note, say, say_json, say_points, say_table
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
    from golde.cli.ask import explain_claims, open_run
    from golde.inference.batch import read_names
    from golde.inference.path_probability import path_prior

    opened = open_run(run, device)
    pool = None if candidates is None else read_names(candidates, opened.graph.entities)
    with bar("fitting probabilities") as progress:
        found = opened.predict_path(
            path,
            head=head,
            tail=tail,
            beam=beam,
            top=top,
            known=known,
            candidates=pool,
            progress=progress,
        )
    calibrated = opened.calibration is not None
    if opened.calibration is not None and any(one.probability is not None for one in found):
        explain_claims(path_prior(opened.calibration))
    elif calibrated and found:
        note(
            "note: no probabilities: validation facts add too few ends to this path, or nearly all entities "
            "of the right kind are ends of it"
        )
    if out is not None:
        _write(out, found, calibrated)
    if json:
        query = {"head": head, "tail": tail, "path": path, "beam": beam}
        say_json({"query": query, "answers": [asdict(one) for one in found]})
    elif out is not None:
        say_points([("written", f"{out} ({len(found):,} answers)")])
    else:
        say(f"({head or '?'}, {path}, {tail or '?'})", style="bold")
        _print(found, marked=known == "mark", explained=beam is not None)


def _write(path: pathlib.Path, found: Sequence[PathAnswer], calibrated: bool) -> None:
    from golde.inference.tables import open_table

    columns: dict[str, type] = {
        "rank": int,
        "answer": str,
        "score": float,
        "known": str,
        "via": str,
    }
    columns |= {"probability": float} if calibrated else {}
    with open_table(path, columns) as write:
        for rank, one in enumerate(found, 1):
            row = (rank, one.answer, one.score, _mark(one), _via(one))
            write([(*row, one.probability) if calibrated else row])


def _print(found: Sequence[PathAnswer], marked: bool, explained: bool) -> None:
    from golde.cli.ask import probability_cell

    headings, align = ["", "answer", "score"], "><>"
    rows = [[str(i), one.answer, f"{one.score:.3f}"] for i, one in enumerate(found, 1)]
    if any(one.probability is not None for one in found):
        headings, align = [*headings, "probability"], align + ">"
        rows = [[*row, *probability_cell(one)] for row, one in zip(rows, found, strict=True)]
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
