"""Result files: what a training reached and where that comes from, one JSON file a seed.

results/runs/GRAPH/CONFIGURATION/seed-N.json      ranked on test, once a training
results/studies/STUDY/VARIANT/seed-N.json         ranked on validation, unless the study says otherwise

format         version of this layout
graph, digest  name and content of the graph
config         name of the configuration or variant; study: of the study, or null
seed, split    of the training; what was ranked
settings       resolved configuration
parameters     numbers in all, of one more entity, of one more relation
training       seconds and what they count, steps, step of the parameters kept, validation curve
figures        standard, self_filter: protocol, its card in words, metrics of both sides and each alone;
               where evidence counts, embedding: the standard ones of the embedding without it
relations      figures of each relation, under the standard protocol
evaluations    every ranking of the split, in order: when, split, protocol; written before it begins
replaced       files that this one took the place of (--again), their evaluations included
machine, versions, commit
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch

from golde.config import ModelConfig
from golde.errors import RunError
from golde.models import build
from golde.runs.atomic import read_json, write_json

FORMAT = 1
STANDARD = "standard"
PROTOCOLS = {STANDARD: False, "self_filter": True}
"""Names of the protocols that figures are stored under, and whether the self-filter is on."""

EMBEDDING = "embedding"
"""Under which the standard figures of the embedding alone stand, where evidence counts beside it."""

FIGURES = ("mrr", "hits@1", "hits@3", "hits@10", "mr")

Record = dict[str, Any]
"""The contents of a result file."""

_KINDS = {
    **dict.fromkeys(("graph", "digest", "config", "split", "commit"), str),
    "seed": int,
    **dict.fromkeys(("settings", "parameters", "training", "figures", "relations"), dict),
    **dict.fromkeys(("evaluations", "replaced"), list),
    **dict.fromkeys(("machine", "versions"), dict),
}
"""What every result file has; its study may be null."""

_FIX = "restore it from the history of the repository, or remove it and reproduce it again"


def read_record(path: Path) -> Record:
    """A result file, after checking that this version reads it."""
    record = read_json(path, fix=_FIX)
    if record.get("format") != FORMAT:
        raise RunError(
            f"{path}: written in result format {record.get('format')!r}, this version reads {FORMAT}; "
            "use the version of GoldE that wrote it"
        )
    for key, kind in _KINDS.items():
        if type(record.get(key)) is not kind:
            raise RunError(f"{path}: {key!r} is missing or no {kind.__name__}; {_FIX}")
    if type(record["training"].get("seconds")) not in (int, float):
        raise RunError(f"{path}: 'training.seconds' is missing or no number; {_FIX}")
    for protocol in (*PROTOCOLS, EMBEDDING):
        if protocol in record["figures"] and not _has_figures(record["figures"][protocol]):
            raise RunError(f"{path}: 'figures.{protocol}' has no {' or no '.join(FIGURES)}; {_FIX}")
    return record


def _has_figures(one: Any) -> bool:
    """Whether what is stored under a protocol has every figure over both sides."""
    for key in ("metrics", "both"):
        one = one.get(key) if isinstance(one, dict) else None
    return isinstance(one, dict) and all(type(one.get(key)) in (int, float) for key in FIGURES)


def write_record(path: Path, record: Record) -> None:
    """Replace a result file in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"format": FORMAT, **record})


def is_complete(record: Record) -> bool:
    """Whether everything was ranked; a file is written before, so that no ranking goes unlogged."""
    return all(protocol in record["figures"] for protocol in PROTOCOLS)


def read_records(results: Path, kind: str) -> list[Record]:
    """Every complete record of a kind, ``runs`` or ``studies``, in the order of folders and seeds."""
    paths = sorted(
        (results / kind).glob("*/*/seed-*.json"), key=lambda path: (path.parent, _seed(path))
    )
    return [record for path in paths if is_complete(record := read_record(path))]


def _seed(path: Path) -> int:
    digits = path.stem.removeprefix("seed-")
    return int(digits) if digits.isdecimal() else -1


def by_configuration(records: Iterable[Record]) -> dict[str, dict[str, list[Record]]]:
    """The seeds of each configuration of each graph."""
    found: dict[str, dict[str, list[Record]]] = {}
    for record in records:
        found.setdefault(record["graph"], {}).setdefault(record["config"], []).append(record)
    return found


def variants(records: Iterable[Record], study: str) -> dict[tuple[str, str], list[Record]]:
    """The seeds of each variant of a study and of its siblings ``STUDY-…``, by graph and variant.

    A variant is called after its graph first; that part is left out here.
    """
    found: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if f"{record['study']}-".startswith(study + "-"):
            variant = record["config"].removeprefix(record["graph"] + "-")
            found.setdefault((record["graph"], variant), []).append(record)
    return found


def values(records: Iterable[Record], figure: str, protocol: str = "standard") -> list[float]:
    """One figure over both sides, of each seed."""
    return [record["figures"][protocol]["metrics"]["both"][figure] for record in records]


def summary(records: list[Record]) -> dict[str, Any]:
    """Means over the seeds of one configuration.

    ``spread`` is the standard deviation over seeds of each figure under the standard protocol, null
    where there is one seed. ``embedding`` stands beside the protocols where evidence counts.
    """
    spread = None
    if len(records) > 1:
        spread = {figure: stdev(values(records, figure)) for figure in FIGURES}
    alone = all(EMBEDDING in record["figures"] for record in records)
    return {
        **{
            protocol: {figure: fmean(values(records, figure, protocol)) for figure in FIGURES}
            for protocol in (*PROTOCOLS, *([EMBEDDING] if alone else []))
        },
        "seeds": len(records),
        "seconds": fmean(record["training"]["seconds"] for record in records),
        "commit": ", ".join(dict.fromkeys(record["commit"] for record in records)),
        "spread": spread,
    }


def summaries(results: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """The summary of every configuration that was reproduced, by graph and name."""
    found = by_configuration(read_records(results, "runs"))
    return {
        graph: {name: summary(records) for name, records in configurations.items()}
        for graph, configurations in found.items()
    }


def parameters(config: ModelConfig, entities: int, relations: int) -> dict[str, int]:
    """Numbers that are learned: in all, and by how many one more entity or relation adds to them."""

    def count(entities: int, relations: int) -> int:
        with torch.device("meta"):  # shapes alone
            model = build(config, entities, relations)
        return sum(parameter.numel() for parameter in model.parameters())

    total = count(entities, relations)
    return {
        "all": total,
        "entity": count(entities + 1, relations) - total,
        "relation": count(entities, relations + 1) - total,
    }
