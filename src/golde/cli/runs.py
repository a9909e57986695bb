"""``golde show`` and ``export``: what a run folder holds."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from golde.cli import options
from golde.cli.evaluate import figure
from golde.cli.extend import described
from golde.cli.output import say, say_json, say_points, say_table
from golde.cli.train import outcome
from golde.errors import GoldeError, RunError
from golde.words import label

if TYPE_CHECKING:
    from golde.runs import RunFolder


EXPORTS = """\b
Example: golde export runs/facts --out embeddings.npz
  golde export runs/facts --out embeddings.csv
"""


class Format(StrEnum):
    safetensors = "safetensors"
    npz = "npz"
    parquet = "parquet"
    csv = "csv"
    tsv = "tsv"


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: golde show runs/facts")(show)
    app.command(epilog=EXPORTS)(export)


def show(run: options.Run, json: options.Json = False) -> None:
    """Show a run: its graph, settings, figures, time and machine."""
    from golde.runs import RunFolder

    folder = RunFolder(run)
    about, config, metrics = folder.about(), folder.config(), folder.metrics()
    calibration, calibrated = _calibration(folder)
    if json:
        shown = {"run": about, "config": config.model_dump(), "metrics": metrics}
        say_json(shown | {"calibration": calibration})
        return
    machine = about["environment"]
    say_points(
        [
            *(outcome(folder) if about["finished"] else [("run", f"{run} (not finished)")]),
            *(point for one in about.get("extensions", []) for point in described(one)[:1]),
            ("graph", _graph(about)),
            ("space", config.model.space),
            *([("calibrated", calibrated)] if about["finished"] else []),
            ("machine", _machine(machine)),
            ("versions", ", ".join(f"{n} {machine[n]}" for n in ("golde", "torch", "python"))),
        ]
    )
    for section, values in config.settings().items():
        say(f"\n{section}", style="bold")
        say_points((f"  {key}", _plain(value)) for key, value in values.items())
    if metrics:
        say()
        _print_metrics(metrics)
    elif about["finished"] and about["test"]:
        say(f"\nNot evaluated yet: golde evaluate {run}")


def export(
    run: options.Run,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file to write.")],
    format: Annotated[
        Format | None, typer.Option(help="Of which kind; unset: as the name of the file ends.")
    ] = None,
) -> None:
    """Write embeddings and relation maps for other programs.

    .safetensors and .npz hold both. .parquet, .csv (name,x1,x2,… under a header row) and .tsv (no header)
    hold the entities alone, a name and its numbers in each row.
    """
    kind = format.value if format is not None else out.suffix.lower().removeprefix(".")
    if kind not in list(Format):
        raise GoldeError(f"{out}: say which --format it should have: {', '.join(Format)}")
    if not out.parent.is_dir():
        raise GoldeError(f"{out}: there is no folder {out.parent}; make it first")
    import golde

    golde.load_run(run, device="cpu").export(out, kind)
    say_points([("written", str(out))])


def _graph(about: dict[str, Any]) -> str:
    facts = " + ".join(f"{about[split]:,} {split}" for split in ("train", "valid", "test"))
    sizes = f"{about['entities']:,} entities, {about['relations']:,} relations"
    return f"{about['graph']}: {sizes}\n{facts} facts"


def _calibration(folder: RunFolder) -> tuple[dict[str, Any] | None, str]:
    """How probabilities were fitted, if they were and can be used, and in words."""
    from golde.runs.card import calibration_words

    try:
        found = folder.calibration()
        words = "no" if found is None else calibration_words(found)
    except RunError:
        return None, "no: what calibration.json holds cannot be used; calibrate again"
    if found is None:
        return None, words
    kept = {key: found.get(key) for key in ("method", "prior", "facts", "negatives")}
    return kept, words


def _machine(found: dict[str, Any]) -> str:
    threads = f"{found['threads']} thread{'s' * (found['threads'] != 1)}"
    where = found.get("gpu") or f"{found['device']}, {threads}"
    return f"{where}; {found['platform']}"


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _print_metrics(metrics: dict[str, Any]) -> None:
    names = [
        name for name in _both(next(iter(metrics.values()))) if name not in ("count", "intervals")
    ]
    say_table(
        ["evaluated", "facts", *map(label, names)],
        (
            [
                key,
                _ranked(found["protocol"]),
                *(figure(n, _both(found)[n]) if n in _both(found) else "" for n in names),
            ]
            for key, found in metrics.items()
        ),
        "<>" + ">" * len(names),
    )


def _ranked(protocol: dict[str, Any]) -> str:
    ranked, there = protocol["triples"], protocol.get("split_triples", protocol["triples"])
    return f"{ranked:,}" if ranked == there else f"{ranked:,} of {there:,}"


def _both(found: dict[str, Any]) -> dict[str, Any]:
    block: dict[str, Any] = found["metrics"]["both"]
    return block
