"""``golde complete``: the facts that a graph lacks, found without being asked."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from golde.cli import options
from golde.cli.ask import (
    check_table,
    explain_probabilities,
    open_run,
    probability_cell,
    say_facts,
    write_facts,
)
from golde.cli.output import bar, note, say_json, say_points
from golde.errors import GoldeError

if TYPE_CHECKING:
    from golde.inference.complete import Completion

DEFAULT_TOP = 100
"""How many facts there are unless a number or a probability is given."""


class Asked(StrEnum):
    kind = "kind"
    known = "known"
    all = "all"


class Order(StrEnum):
    probability = "probability"
    score = "score"


class Links(StrEnum):
    nt = "nt"
    neo4j = "neo4j"


ENDINGS = {Links.nt: ".nt", Links.neo4j: ".csv"}
OTHER_ENDINGS = frozenset((".tsv", ".csv", ".parquet", ".nt", ".gz", ".xz", ".zst"))
"""What a file so named is taken for is settled."""

EXAMPLES = """\b
Example: golde complete runs/world --top 1000 --out missing.csv
  golde complete runs/world --min-probability 0.9 --out missing.tsv
  golde complete runs/world --out links.nt --base https://example.org/
  golde complete runs/world --out links.csv --format neo4j
"""


def register(app: typer.Typer) -> None:
    app.command(epilog=EXAMPLES)(complete)


def complete(
    run: options.Run,
    top: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"How many facts; unset: {DEFAULT_TOP}, or all that are probable enough.",
        ),
    ] = None,
    per_relation: Annotated[
        bool, typer.Option("--per-relation", help="So many of each relation, not overall.")
    ] = False,
    relation: Annotated[
        list[str] | None, typer.Option(help="Only this relation; may be given several times.")
    ] = None,
    heads: Annotated[
        Asked,
        typer.Option(
            help="Whom to ask: entities of the right kind that lack an answer, those that head the "
            "relation already, or all."
        ),
    ] = Asked.kind,
    by: Annotated[
        Order | None, typer.Option(help="The order; unset: by probability if the run has them.")
    ] = None,
    min_probability: Annotated[
        float | None,
        typer.Option(metavar="P", help="Leave out what is less probable (of a calibrated run)."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write to a .tsv, .csv, .parquet or .nt file."),
    ] = None,
    format: Annotated[
        Links | None,
        typer.Option(help="For a graph store: N-Triples, or a CSV for Neo4j to import."),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="IRI", help="In N-Triples, what names that are no IRIs are put after."
        ),
    ] = None,
    device: options.OnDevice = options.Device.auto,
    json: options.Json = False,
) -> None:
    """Find the most plausible facts that are missing from the graph.

    The tails of entities of the right kind are sought: at least half of those that play a part which they
    play, such as head of another relation, head this one. Where heads have fewer than 3 tails on average,
    entities that have one are left out. The order is by score, or by probability once the run is calibrated.
    """
    links = _links(format, out, base)
    if links is None:
        check_table(out, more=(".nt",))
    opened = open_run(run, device)
    number = DEFAULT_TOP if top is None and min_probability is None else top
    with bar("searching") as progress:
        found = opened.completion(
            number,
            heads=heads.value,
            relations=relation or None,
            per_relation=per_relation,
            by=None if by is None else by.value,
            min_probability=min_probability,
            progress=progress,
        )
    calibrated = opened.calibration is not None
    explain_probabilities(opened)
    if links is not None and out is not None:
        from golde.inference.links import BASE, write_links

        write_links(out, found.facts, links.value, base or BASE, calibrated=calibrated)
    elif out is not None:
        write_facts(out, found.facts, calibrated)
    if json:
        say_json([asdict(fact) for fact in found.facts])
        if not found.facts:
            note(f"note: none: {_why_none(found, heads)}")
        return
    if out is None and found.facts:
        say_facts(found.facts, calibrated)
    points = []
    if out is not None:
        what = "fact" if links is None else "link"
        points = [("written", f"{out} ({_counted(len(found.facts), what)})")]
    if found.facts:
        points += _outcome(found, run, min_probability)
    else:
        points.append(("none", _why_none(found, heads)))
    say_points(points)


def _outcome(found: Completion, run: Path, min_probability: float | None) -> list[tuple[str, str]]:
    """How many facts there are, and what to do with the first."""
    facts = _counted(len(found.facts), "fact")
    if min_probability is not None:
        facts += f" with a probability of {min_probability:g} or more"
    head, relation, tail = found.facts[0].fact
    fact = ["--head", head, "--relation", relation, "--tail", tail]
    return [
        ("found", f"{facts}, by {_counted(found.queries, 'question')}"),
        ("next", shlex.join(["golde", "explain", str(run), *fact])),
    ]


def _why_none(found: Completion, heads: Asked) -> str:
    if not found.queries and heads is Asked.kind:
        return "every entity of the right kind has an answer; try --heads known or all"
    asked = _counted(found.queries, "question")
    if found.best is None:
        return f"no answer that {asked} could have is missing"
    (chance,) = probability_cell(found.best)
    return f"the largest probability by {asked} is {chance}:\n({', '.join(found.best.fact)})"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _links(format: Links | None, out: Path | None, base: str | None) -> Links | None:
    """How links go to a graph store: as asked for, or as the file is named; None if they are a table."""
    suffix = "" if out is None else out.suffix.lower()
    if format is None and suffix == ENDINGS[Links.nt]:
        format = Links.nt
    if base is not None:
        from golde.inference.links import checked_base, joins_names

        if format is not Links.nt:
            raise GoldeError("--base is for N-Triples: give --out FILE.nt as well, or leave it out")
        if not joins_names(checked_base(base)):
            note(f"note: --base {base} is followed by names at once; end it in / or #")
    if format is None:
        return None
    if out is None:
        raise GoldeError(f"--format {format.value} goes to a file: give --out FILE")
    if suffix in OTHER_ENDINGS - {ENDINGS[format]}:
        raise GoldeError(
            f"{out}: --format {format.value} is no {suffix} file; end the name in {ENDINGS[format]}"
        )
    if not out.parent.is_dir():
        raise GoldeError(f"{out}: there is no folder {out.parent}; make it first")
    from golde.runs.folder import refuse_part_of_a_run

    refuse_part_of_a_run(out)
    return format
