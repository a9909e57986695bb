"""``golde geometry``: the maps a run has learned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from golde.cli import options
from golde.cli.output import bar, say, say_json, say_points, say_table

if TYPE_CHECKING:
    from golde.analysis.relation_geometry import RelationGeometry

RELATIONS_SHOWN = 30
OVERVIEW = ("curvature", "boost", "stretch")
"""Columns of medians, as far as the space has them."""


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: golde geometry runs/world --plot pictures")(geometry)


def geometry(
    run: options.Run,
    relation: Annotated[str | None, typer.Option(help="One relation, in detail.")] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder to draw three pictures into.")
    ] = None,
    device: options.OnDevice = options.Device.auto,
    json: options.Json = False,
) -> None:
    """Show the learned maps: curvature, scaling, boost, angles, involution error.

    Of each relation, in its forward direction, which asks for tails.
    """
    import golde
    from golde.analysis.relation_geometry import checked, relation_geometry

    opened = golde.load_run(run, device=device.value)
    model, graph = checked(opened.model), opened.graph
    wanted = None if relation is None else [graph.relations.id(relation)]
    with bar("describing") as progress:
        found = relation_geometry(model, graph, wanted, progress=progress)
    found.sort(key=lambda one: -one.facts)
    drawn = []
    if plot is not None:
        from golde.report.geometry_plots import draw_geometry

        drawn = draw_geometry(plot, model, graph, found)
    if json:
        say_json([one.as_dict(components=relation is not None) for one in found])
        return
    if relation is None:
        _print_overview(found)
    else:
        _print_relation(found[0])
    if drawn:
        say_points(("written" if not i else "", str(path)) for i, path in enumerate(drawn))


def _print_overview(found: Sequence[RelationGeometry]) -> None:
    columns = [name for name in OVERVIEW if len(found[0].pooled(name))]
    say_table(
        ["relation", "facts", *columns, "angles", "involution"],
        (
            [
                one.relation,
                f"{one.facts:,}",
                *(f"{one.pooled(name).quantile(0.5):.2f}" for name in columns),
                _quartiles(one),
                f"{one.involution_error:.2f}",
            ]
            for one in found[:RELATIONS_SHOWN]
        ),
        "<>" + ">" * len(columns) + ">>",
    )
    if len(found) > RELATIONS_SHOWN:
        say(f"… and {len(found) - RELATIONS_SHOWN} more; --json has them all.\n")
    say("Medians over the components of a relation, of angles the middle half:", style="dim")
    _print_key(found[0], [*columns, "angles", "involution"])


def _print_relation(one: RelationGeometry) -> None:
    say(one.relation, style="bold")
    involution = f"{one.involution_error:.3f}"
    say_points([("training facts", f"{one.facts:,}"), ("involution error", involution)])
    say()
    say_table(
        ["space", "figure", "lowest", "median", "highest"],
        (
            [
                str(group.term),
                name,
                *(f"{value:.3f}" for value in (values.min(), values.quantile(0.5), values.max())),
            ]
            for group in one.groups
            for name, values in ((n, v.flatten()) for n, v in group.figures().items())
            if name != "determinant"
        ),
        "<<>>>",
    )
    _print_key(one, [*(name for group in one.groups for name in group.figures()), "involution"])


KEY = {
    "curvature": "−1/β of the hyperbolic components; 0 would be flat",
    "boost": "‖b‖: it moves the origin by √β·asinh ‖b‖",
    "stretch": "longest over shortest semi-axis of an ellipsoid; 1 is a sphere",
    "weights": "p of the ellipsoid Σ p x² = c",
    "angles": "of the rotations, in degrees; 0 and 180 alone undo themselves",
    "involution": "error of applying the map twice: 0 leads back, 1 is as far as random",
}


def _print_key(one: RelationGeometry, shown: Sequence[str]) -> None:
    for name, text in KEY.items():
        if name in shown:
            say(f"{name:<11} {text}", style="dim")
    signs = ", ".join(f"{group.term} {_signs(group.determinant.tolist())}" for group in one.groups)
    say(f"{'determinant':<11} {signs}, by the number of reflections", style="dim")


def _quartiles(one: RelationGeometry) -> str:
    low, high = (one.pooled("angles").quantile(share) for share in (0.25, 0.75))
    return f"{low:.0f}–{high:.0f}"


def _signs(determinants: Sequence[float]) -> str:
    both = len(set(determinants)) > 1
    return "±1" if both else f"{int(determinants[0]):+d}"
