"""Result files: what a training reached and where that comes from, one JSON file a seed.

results/runs/GRAPH/CONFIGURATION/seed-N.json      ranked on test, once a training
results/studies/STUDY/VARIANT/seed-N.json         ranked on validation, unless the study says otherwise

format         version of this layout
graph, digest  name and content of the graph
counts         its entities, relations and facts of each split; files of before have none
config         name of the configuration or variant; study: of the study, or null
seed, split    of the training; what was ranked
settings       resolved configuration
parameters     numbers in all, of one more entity, of one more relation
training       seconds and what they count, steps, step of the parameters kept, validation curve
figures        standard, self_filter: protocol, its card in words, metrics of both sides and each alone;
               where evidence counts, embedding: the standard ones of the embedding without it, and its
               relations; files of before have none
relations      figures of each relation, under the standard protocol
evaluations    every ranking of the split, in order: when, split, protocol, commit; written before it begins
replaced       files that this one took the place of (--again), their evaluations included
machine, versions, commit
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import fmean, stdev
from sys import float_info
from typing import Any

import torch

from golde.config import Config, ModelConfig
from golde.errors import ConfigError, RetiredSettingError, RunError
from golde.geometry import Signature
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
    **dict.fromkeys(("settings", "settings.model", "parameters", "training"), dict),
    **dict.fromkeys(("figures", "relations", "machine", "versions"), dict),
    **dict.fromkeys(("evaluations", "replaced"), list),
    **dict.fromkeys(("machine.cpu", "versions.python", "versions.torch"), str),
}
"""What every result file has, a dot before what is inside; its study may be null."""

_KINDS_IF_THERE = {
    "settings.training": dict,
    "settings.training.steps": int,
    "settings.training.negatives": int,
    "settings.model.signature": str,
    "settings.model.numbers": int,
    "settings.evidence": dict,
    "figures.embedding.relations": dict,
    "training.evidence": dict,
}
_NUMBERS = (
    *("training.seconds", "training.steps", "training.trainings_at_a_time"),
    *("parameters.all", "parameters.entity"),
)
_SAME = ("graph", "config", "study", "seed")
"""What a result has in common with the one that it took the place of."""

_NUMBERS_OF_EVIDENCE = ("hops", "scale", "joined")
_IF_LEARNED = ("bodies", "unmentioned")
"""Further ones, which not every file has."""
_MISSING = object()

_FIX = (
    "restore it from the history of the repository; if it is removed and reproduced again, the list of what "
    "was ranked before is lost"
)


def read_record(path: Path) -> Record:
    """A result file, after checking that this version reads it and that it has all that readers ask for."""
    record = read_json(path, fix=_FIX)
    if "format" not in record:
        raise RunError(f"{path}: is no result file: it has no 'format'; {_FIX}")
    if record["format"] != FORMAT:
        raise RunError(
            f"{path}: written in result format {record['format']!r}, this version reads {FORMAT}; "
            "use the version of GoldE that wrote it"
        )
    _check_kinds(str(path), record)
    _check_numbers(str(path), record)
    _check_split(str(path), record)
    _check_size(path, record)
    _check_place(path, record)
    for place, old in enumerate(record["replaced"]):
        where = f"{path}: 'replaced'[{place}]"
        if not isinstance(old, dict):
            raise RunError(f"{where}: is no object; {_FIX}")
        _check_kinds(where, {"replaced": [], **old})
        _check_numbers(where, old)
        _check_split(where, old)
        if other := [key for key in _SAME if old[key] != record[key]]:
            raise RunError(
                f"{where}: {other[0]!r} is {old[other[0]]!r}, and {record[other[0]]!r} in what took its "
                f"place; {_FIX}"
            )
    return record


def _check_kinds(where: str, record: Record) -> None:
    for key, kind in (_KINDS | _KINDS_IF_THERE).items():
        found = _at(record, *key.split("."))
        if type(found) is not kind and not (found is _MISSING and key in _KINDS_IF_THERE):
            raise RunError(f"{where}: {key!r} is missing or no {kind.__name__}; {_FIX}")
    if not isinstance(_at(record, "study"), str | None):
        raise RunError(f"{where}: 'study' is missing, or neither a str nor null; {_FIX}")
    if not all(isinstance(_at(one, "when"), str | None) for one in record["evaluations"]):
        raise RunError(f"{where}: 'evaluations' has one that does not say when; {_FIX}")


def _check_numbers(where: str, record: Record) -> None:
    for key in _numbers(record):
        found, name = _at(record, *key), ".".join(key)
        if type(found) not in (int, float):
            raise RunError(f"{where}: {name!r} is missing or no number; {_FIX}")
        least, most, rule = _range(key[-1])
        if not least <= found <= most:  # NaN is not, either
            raise RunError(f"{where}: {name!r} is {found} and must be {rule}; {_FIX}")


def _range(name: str) -> tuple[float, float, str]:
    """The least and the most that a number of this name can be, and the same in words."""
    if name in FIGURES and name != "mr":
        return 0, 1, "from 0 to 1"
    if name == "joined":  # added to scores
        return -float_info.max, float_info.max, "finite"
    least = int(name in ("mr", "trainings_at_a_time"))
    return least, float_info.max, f"finite and {least} or more"


def _numbers(record: Record) -> Iterator[tuple[str, ...]]:
    """Where a record has a number that readers ask for."""
    yield from (tuple(key.split(".")) for key in _NUMBERS)
    for protocol in (*PROTOCOLS, EMBEDDING):
        if protocol in record["figures"]:
            yield from (("figures", protocol, "metrics", "both", figure) for figure in FIGURES)
    yield from (("relations", name, "mrr") for name in record["relations"])
    alone = record["figures"].get(EMBEDDING, {}).get("relations", ())
    yield from (("figures", EMBEDDING, "relations", name, "mrr") for name in alone)
    if EMBEDDING in record["figures"] or "evidence" in record["training"]:
        yield from (("training", "evidence", name) for name in _NUMBERS_OF_EVIDENCE)
    learned = record["training"].get("evidence", {})
    yield from (("training", "evidence", name) for name in _IF_LEARNED if name in learned)


def _check_size(path: Path, record: Record) -> None:
    try:
        numbers_an_entity(record)
    except ConfigError as error:
        raise RunError(f"{path}: 'settings.model': {error}; {_FIX}") from None
    except KeyError:
        raise RunError(
            f"{path}: 'settings.model' has no signature and no numbers; {_FIX}"
        ) from None


def _place(record: Record) -> Path:
    """Where a record belongs in the folder of results."""
    study, file = record["study"], f"seed-{record['seed']}.json"
    return Path("studies" if study else "runs", study or record["graph"], record["config"], file)


def _check_place(path: Path, record: Record) -> None:
    """Refuse a file of another training than its folders and name say."""
    belongs = _place(record)
    if path.parts[-4:] != belongs.parts:
        raise RunError(
            f"{path}: what is inside belongs to {belongs.as_posix()}; move it there, or {_FIX}"
        )


def _check_split(where: str, record: Record) -> None:
    kind, splits = ("studies", ("valid", "test")) if record["study"] else ("runs", ("test",))
    if record["split"] not in splits:
        raise RunError(
            f"{where}: 'split' is {record['split']!r}, and files of {kind}/ are ranked on "
            f"{' or '.join(splits)}; {_FIX}"
        )


def _at(content: Any, *key: str) -> Any:
    """What there is at a key, of an object in an object and so on."""
    for part in key:
        content = content.get(part, _MISSING) if isinstance(content, dict) else _MISSING
    return content


def numbers_an_entity(record: Record) -> int:
    """How many numbers an entity has in the space, or in the baseline, of a record; biases apart."""
    model: dict[str, Any] = record["settings"]["model"]
    if "signature" in model:
        return Signature.parse(model["signature"]).numbers
    return int(model["numbers"])


def relations_alone(record: Record) -> dict[str, Any] | None:
    """The figures of each relation by the embedding alone; None where they were not kept."""
    beside = record["figures"].get(EMBEDDING)
    found: dict[str, Any] | None = (
        record["relations"] if beside is None else beside.get("relations")
    )
    return found


def write_record(path: Path, record: Record) -> None:
    """Replace a result file in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"format": FORMAT, **record})


def is_complete(record: Record) -> bool:
    """Whether everything was ranked; a file is written before, so that no ranking goes unlogged."""
    return all(protocol in record["figures"] for protocol in PROTOCOLS)


def read_records(results: Path, kind: str, study: str | None = None) -> list[Record]:
    """Every complete record of a kind, ``runs`` or ``studies``, or one study's, by folders and seeds."""
    paths = files(results, kind, study)
    found = {path: record for path in paths if is_complete(record := read_record(path))}
    first: dict[Path, Path] = {}
    for path, record in found.items():
        beside = first.setdefault(path.parent, path)
        _check_alike(path, record, beside, found[beside])
    return list(found.values())


def unfinished(results: Path, study: str | None = None) -> list[Path]:
    """The files of configurations, or of a study, whose training was not ranked to the end."""
    paths = files(results, "runs" if study is None else "studies", study)
    return [path for path in paths if not is_complete(read_record(path))]


def files(results: Path, kind: str, study: str | None = None) -> list[Path]:
    """Every result file of a kind, or of one study, by folders and seeds."""
    top, depth = (results / kind, 3) if study is None else (results / kind / study, 2)
    found = [path for path in _below(top, depth) if path.match("seed-*.json")]
    return sorted(found, key=lambda path: (path.parent, _seed(path)))


def _below(folder: Path, depth: int) -> Iterator[Path]:
    """What is so many levels below a folder; one that cannot be read is an error."""
    try:
        inside = list(folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        raise RunError(f"{folder}: cannot be read: {error.strerror}; check its rights") from None
    for path in inside:
        if depth == 1:
            yield path
        else:
            yield from _below(path, depth - 1)


def _check_alike(path: Path, record: Record, beside: Path, other: Record) -> None:
    """Refuse a seed on other facts or with other settings than another: no mean is of both."""
    what = "other facts" if record["digest"] != other["digest"] else _other_settings(record, other)
    if what:
        raise RunError(
            f"{path}: was made differently than {beside.name} beside it ({what}), so there is no mean of "
            "both; reproduce the older one with --again, or move one of them to another folder of results"
        )


def config_of(record: Record) -> Config | None:
    """The settings of a record; None where it has one that is no more."""
    try:
        return Config.from_dict(record["settings"], source=_place(record).as_posix())
    except RetiredSettingError:
        return None


def _other_settings(record: Record, other: Record) -> str:
    """How settings differ but for the seed, in words."""
    here, there = config_of(record), config_of(other)
    if here is None or there is None:
        return "" if seedless(record) == seedless(other) else "other settings"
    return there.with_values(training={"seed": here.training.seed}).difference(here)


def seedless(record: Record) -> dict[str, Any]:
    """The settings of a record but for the seed."""
    settings: dict[str, Any] = record["settings"]
    return settings | {"training": settings.get("training", {}) | {"seed": None}}


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


def values(records: Iterable[Record], figure: str, protocol: str = STANDARD) -> list[float]:
    """One figure over both sides, of each seed."""
    return [figures_under(record, protocol)["metrics"]["both"][figure] for record in records]


def figures_under(record: Record, protocol: str) -> dict[str, Any]:
    """Those under a protocol; those of the embedding are the standard ones where nothing counts beside it."""
    figures: dict[str, dict[str, Any]] = record["figures"]
    return figures[STANDARD if protocol == EMBEDDING and EMBEDDING not in figures else protocol]


def summary(records: list[Record]) -> dict[str, Any]:
    """Means over the seeds of one configuration.

    ``spread`` is the standard deviation over seeds of each figure under the standard protocol, null
    where there is one seed. ``embedding`` stands beside the protocols where evidence counts.
    """
    spread = None
    if len(records) > 1:
        spread = {figure: stdev(values(records, figure)) for figure in FIGURES}
    alone = any(EMBEDDING in record["figures"] for record in records)
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
