"""What ``benchmarks/large_tables.py`` found: millions of entities, on the device and in host memory.

The picture needs the extra ``plots``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from golde.report.drawing import BLUE, FAINT, ORANGE, SOFT, bare, save, style
from golde.report.tables import markdown as table
from golde.runs.atomic import read_json

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "large_tables"
WORDS = {"device": "on the device", "host": "in host memory"}
COLOURS = {"device": BLUE, "host": ORANGE}
AXES = {"entities": "entities", "facts": "facts"}


def large_tables(found: dict[str, Any]) -> str:
    """The section of the page."""
    results, settings = found["results"], found["settings"]
    head = ["table", "entities", "facts", "GPU memory", "a step", "triples a second"]
    head += ["start", "settle", f"rank {2 * settings['ranked']}"]
    growth = [_growth(results, axis) for axis in AXES]
    return (
        f"![Triples a second](assets/{NAME}.png)\n\n{table(head, [_row(one) for one in results])}\n\n"
        f"`{settings['signature']}` (16 numbers an entity) with both moments of dense Adam, "
        f"{settings['relations']} relations, random facts, {settings['batch']:,} queries and "
        f"{settings['negatives']:,} shared negatives a step; a triple is a fact asked in one direction. GPU "
        "memory is the most that was allocated, facts and known answers included, and where there is one "
        "the cap. *Start* is to draw and place the table, *settle* to bring all its rows up to date, *rank* "
        f"so many queries among all entities. {''.join(growth)}{_largest(results)}{_agreement(results)}"
        f"Medians of {settings['repeats']} times {settings['steps']} steps, seed {settings['seed']}. "
        f"{_sources(results)}; written by `benchmarks/{NAME}.py`."
    )


def _row(one: dict[str, Any]) -> list[str]:
    cap = "" if one["cap_gib"] is None else f" of {one['cap_gib']:g}"
    size = [WORDS[one["table"]], f"{one['entities']:,}", f"{one['facts']:,}"]
    if "failed" in one:
        return [*size, f"does not fit{cap and f' in{cap[3:]} GiB'}", "", "", "", "", ""]
    return [
        *size,
        f"{one['device_gib']:.1f}{cap} GiB",
        f"**{one['step_ms']['median']:.2f} ms**",
        f"{one['triples_per_second']['median']:,.0f}",
        f"{one['table_s']:.1f} s",
        f"{one['settle_s']:.2f} s",
        f"{one['rank_s']:.2f} s",
    ]


def curve(results: list[dict[str, Any]], where: str, axis: str) -> list[dict[str, Any]]:
    """The results of one kind of table along an axis, the other size being the most frequent one."""
    (other,) = AXES.keys() - {axis}
    usual = where == "host"
    some = [
        one
        for one in results
        if one["table"] == where and "failed" not in one and (one["cap_gib"] is not None) == usual
    ]
    sizes = [one[other] for one in some]
    kept = [one for one in some if one[other] == max(sizes, key=sizes.count)]
    return sorted(kept, key=lambda one: int(one[axis]))


def _growth(results: list[dict[str, Any]], axis: str) -> str:
    """How much longer a step takes at the end of an axis than at its beginning."""
    parts = []
    for where, words in WORDS.items():
        points = curve(results, where, axis)
        if len(points) > 1:
            first, last = points[0], points[-1]
            more = last["step_ms"]["median"] / first["step_ms"]["median"]
            parts.append(f"×{more:.2f} {words} for ×{last[axis] / first[axis]:.0f} the {axis}")
    return f"A step takes {' and '.join(parts)}. " if parts else ""


def _largest(results: list[dict[str, Any]]) -> str:
    """The largest table that was trained, of every kind."""
    most: dict[str, int] = {}
    for one in results:
        if "failed" not in one:
            cap = "" if one["cap_gib"] is None else f" with {one['cap_gib']:g} GiB of GPU memory"
            kind = f"{WORDS[one['table']]}{cap}"
            most[kind] = max(most.get(kind, 0), one["entities"])
    each = ", ".join(f"{entities:,} {kind}" for kind, entities in most.items())
    return f"The most entities that were tried and trained: {each}. " if each else ""


def _agreement(results: list[dict[str, Any]]) -> str:
    """How far apart the losses of the two kinds are after the same steps."""
    by_size: dict[tuple[int, int], dict[str, float]] = {}
    for one in results:
        if "failed" not in one:
            losses = by_size.setdefault((one["entities"], one["facts"]), {})
            losses[one["table"]] = one["loss"]
    apart = [
        abs(pair["host"] - pair["device"]) / pair["device"]
        for pair in by_size.values()
        if len(pair) == len(WORDS)
    ]
    if not apart:
        return ""
    most = f"differ by at most {max(apart):.0e} of their value" if any(apart) else "are the same"
    return f"After the same steps on the same facts the losses of the two kinds of table {most}. "


def _sources(results: list[dict[str, Any]]) -> str:
    return " and ".join(
        dict.fromkeys(
            f"{one['source']['machine'].get('gpu', one['source']['machine']['cpu'])}; torch "
            f"{one['source']['versions']['torch']}; commit `{one['source']['commit'][:10]}`"
            for one in results
        )
    )


def write_large_tables_plot(results: Path, folder: Path) -> list[Path]:
    """Draw the picture if there are results for it."""
    path = results / f"{NAME}.json"
    if not path.is_file():
        return []
    folder.mkdir(parents=True, exist_ok=True)
    with style():
        return [save(speeds(read_json(path)), folder / f"{NAME}.png")]


def speeds(found: dict[str, Any]) -> Figure:
    """Triples a second by entities and by facts, for both kinds of table."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.2))
    left, right = figure.subplots(1, 2, sharey=True)
    _draw(left, found["results"], "entities")
    _draw(right, found["results"], "facts")
    left.set_ylabel("triples a second, millions")
    left.set_ylim(bottom=0)
    left.legend(frameon=False, fontsize=9)
    return figure


def _draw(ax: Axes, results: list[dict[str, Any]], axis: str) -> None:
    for where, words in WORDS.items():
        points = curve(results, where, axis)
        across = [one[axis] for one in points]
        speed = [one["triples_per_second"] for one in points]
        ax.plot(
            across,
            [one["median"] / 1e6 for one in speed],
            "o-",
            color=COLOURS[where],
            label=words,
            linewidth=1.6,
            markersize=5,
        )
    bare(ax)
    ax.grid(color=FAINT, linewidth=0.8)
    ax.set_xscale("log")
    ax.set_xlabel(AXES[axis], color=SOFT)
