"""Arguments and options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from golde.errors import GoldeError


class Device(StrEnum):
    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


def parse_size(text: str) -> float:
    """A count such as 500 or a fraction such as 0.1 of the facts, told apart by how it is written."""
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        raise GoldeError(
            f"size {text!r} is no number; give a fraction such as 0.1 or a count such as 500"
        ) from None


LARGEST_SEED = 2**32 - 1

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a trained run.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON value and nothing else.")]
OnDevice = Annotated[Device, typer.Option("--device", help="Where to compute.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting, such as training.steps=2000."),
]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder with named sets, one folder each (also: GOLDE_DATA)."),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="H,R,T",
        help="Columns of head, relation and tail: header names, or positions such as 1,3,2.",
    ),
]
ValidSize = Annotated[
    str,
    typer.Option(
        "--valid",
        metavar="SIZE",
        help="Facts to hold out for validation from a single file: a fraction, or a count.",
    ),
]
TestSize = Annotated[str, typer.Option("--test", metavar="SIZE", help="The same for the test.")]
HELD_OUT = "0.1"
"""How much of a single file each of the two is unless told otherwise."""


def reading(data_dir: Path | None, columns: str | None, valid: str, test: str) -> list[str]:
    """The options by which a graph was read, where it was not as usual, to be given again."""
    words = [] if data_dir is None else ["--data-dir", str(data_dir)]
    words += [] if columns is None else ["--columns", columns]
    for option, size in (("--valid", valid), ("--test", test)):
        words += [] if size == HELD_OUT else [option, size]
    return words
