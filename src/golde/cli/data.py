"""``golde data``: named sets, and what a graph is like."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from golde.cli import options
from golde.cli.output import say, say_json, say_points, say_table
from golde.cli.train import read_graph

RELATIONS_SHOWN = 30


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        help="Named sets, and what a graph is like.", no_args_is_help=True, rich_markup_mode=None
    )
    group.command("list", epilog="Example: golde data list --data-dir ~/graphs")(list_sets)
    group.command("describe", epilog="Example: golde data describe facts.tsv")(describe)
    app.add_typer(group, name="data")


def list_sets(data_dir: options.DataDir = None, json: options.Json = False) -> None:
    """List the named sets and where each stands on this machine."""
    from golde.data.catalogue import catalogue

    found: list[dict[str, Any]] = [
        _shipped(),
        *(
            {
                "name": one.entry.name,
                "status": one.status,
                **asdict(one.entry.counts),
                "folder": None if one.folder is None else str(one.folder),
                "licence": one.entry.licence,
                "note": one.entry.note,
            }
            for one in catalogue(data_dir)
        ),
    ]
    if json:
        say_json(found)
        return
    counts = ("entities", "relations", "train", "valid", "test")
    say_table(
        ["name", "status", *counts],
        ([one["name"], one["status"], *(f"{one[c]:,}" for c in counts)] for one in found),
        "<<>>>>>",
    )
    say("Sets not at hand are looked for in --data-dir or GOLDE_DATA, then downloaded;")
    say("no one has tried the addresses of those called untried.")


def _shipped() -> dict[str, Any]:
    from golde.data.catalogue import SHIPPED
    from golde.data.world_facts import LICENCE, world_counts

    return {
        "name": SHIPPED,
        "status": "shipped",
        **asdict(world_counts()),
        "folder": None,
        "licence": LICENCE,
        "note": "",
    }


def describe(
    source: Annotated[
        str, typer.Argument(metavar="NAME|PATH", help="A named set, a folder, or one file.")
    ],
    data_dir: options.DataDir = None,
    columns: options.Columns = None,
    valid: options.ValidSize = options.HELD_OUT,
    test: options.TestSize = options.HELD_OUT,
    json: options.Json = False,
) -> None:
    """Describe a graph: sizes, flaws, and how its relations behave."""
    graph = read_graph(source, data_dir, columns, valid, test)
    from golde.data.describe import describe as describe_graph

    found = describe_graph(graph)
    if json:
        say_json(found)
    else:
        _print(found)


def _print(found: dict[str, Any]) -> None:
    overlap = {pair: count for pair, count in found["overlap"].items() if count}
    unseen = [
        f"{split}: {about['entities']:,} entities in {about['facts']:,} facts"
        for split, about in found["unseen_in_train"].items()
        if about["entities"]
    ]
    say_points(
        [
            ("graph", found["name"]),
            ("entities", f"{found['entities']:,}"),
            ("relations", f"{found['relations']:,}"),
            ("facts", ", ".join(f"{count:,} {split}" for split, count in found["facts"].items())),
            ("duplicates", f"{found['duplicates_dropped']:,} dropped"),
            (
                "overlap",
                ", ".join(f"{pair}: {count:,}" for pair, count in overlap.items()) or "none",
            ),
            ("not in train", "; ".join(unseen) or "none"),
            (
                "categories",
                ", ".join(f"{name}: {count}" for name, count in found["categories"].items()),
            ),
            (
                "symmetric",
                _lines(f"{one['relation']} ({one['share']:.0%})" for one in found["symmetric"]),
            ),
            (
                "inverse",
                _lines(
                    f"{one['relation']} / {one['inverse']} ({one['share']:.0%})"
                    for one in found["inverse"]
                ),
            ),
            ("digest", found["digest"]),
        ]
    )
    say()
    ordered = sorted(found["per_relation"], key=lambda one: -one["train"])
    say_table(
        ["relation", "kind", "tails a head", "heads a tail", "train", "valid", "test"],
        (
            [
                one["relation"],
                one["category"],
                f"{one['tails_per_head']:.2f}",
                f"{one['heads_per_tail']:.2f}",
                *(f"{one[split]:,}" for split in ("train", "valid", "test")),
            ]
            for one in ordered[:RELATIONS_SHOWN]
        ),
        "<<>>>>>",
    )
    if len(ordered) > RELATIONS_SHOWN:
        say(f"… and {len(ordered) - RELATIONS_SHOWN} more; --json has them all.")


def _lines(parts: Any, most: int = 10) -> str:
    lines = list(parts)
    more = [f"… and {len(lines) - most} more"] if len(lines) > most else []
    return "\n".join(lines[:most] + more) or "none"
