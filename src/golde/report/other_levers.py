"""Changes that are no settings beside the configuration as it is, one table a configuration."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from typing import Any

from golde.config import Config
from golde.report.seeds import BySeed, apart, bare, difference, mean
from golde.report.tables import Table, figure, machines, short_commit
from golde.report.variations import UNCHANGED

Trainings = dict[str, BySeed]
"""By lever."""

LEVERS = {
    "component-dropout": "scores a batch by some of the components",
    "relation-prediction": "adds a cross-entropy of the relation given head and tail",
    "distance-penalty": "adds the squared distances of a batch's facts",
    "published-beta": "makes of β a scale of the distance at curvature −1",
    "weight-averaging": "ends with a moving average of the parameters",
    "then-cross-entropy": "changes the loss for the last steps",
    "ellipsoid-geodesic": "takes the other distance that the paper names for elliptic components, and on a "
    "sphere for Euclidean ones",
    "lorentzian": "takes the one that it names for hyperbolic components, also squared",
}
"""What each does, by how its name begins."""

SOURCE = "Written by `benchmarks/other_levers.py`."


def other_levers(found: dict[str, Any]) -> str:
    """A table a configuration, the best first; another if its settings changed between trainings."""
    groups: dict[str, dict[str, Trainings]] = {}
    failed = []
    for one in found["trainings"]:
        if "failed" in one:
            what = f"{one['lever']} on {one['configuration']} with seed {one['seed']}"
            failed.append(f"{what} failed: {one['failed']}")
        else:
            by_settings = groups.setdefault(one["configuration"], {})
            trainings = by_settings.setdefault(_settings(one), {})
            trainings.setdefault(one["lever"], {})[one["seed"]] = one
    tables = [
        _table(configuration, trainings, _distinct(settings, by_settings))
        for configuration, by_settings in groups.items()
        for settings, trainings in by_settings.items()
    ]
    what = _what({one["lever"] for one in found["trainings"] if "failed" not in one})
    return "\n\n".join([what, *(table.markdown() for table in tables), *failed, SOURCE])


def _settings(one: dict[str, Any]) -> str:
    """What trainings have in common that are set beside each other."""
    return Config.from_dict(one["settings"]).with_values(training={"seed": 0}).to_toml()


def _distinct(settings: str, among: Iterable[str]) -> str:
    """What tells a table from others of the same configuration, in words; empty where there are none."""
    here, *others = (
        Config.from_dict(tomllib.loads(text)).model_dump(exclude={"graph"})
        for text in (settings, *among)
    )
    found = [
        f"`{section}.{key} = {json.dumps(value)}`"
        for section, values in here.items()
        for key, value in values.items()
        if any(other[section][key] != value for other in others)
    ]
    return f", when it had {' and '.join(found)}" if found else ""


def _what(tried: set[str]) -> str:
    """What the levers are that the tables have."""
    known = [
        f"*{name.replace('-', ' ')}* {does}"
        for name, does in LEVERS.items()
        if any(lever.startswith(name) for lever in tried)
    ]
    return (
        f"One thing is changed at a time that is no setting of the package: {'; '.join(known)}. A figure is "
        "the share dropped, the weight of the term, the decay with each step, or the share of steps. "
        "Where steps are a fraction of full length and negatives few, what hardly helps need not help at "
        "full length. None of these is part of the package."
    )


def _table(configuration: str, trainings: Trainings, when: str) -> Table:
    head = ["lever", "seeds", "MRR", "difference", "H@10", "MR"]
    best_first = sorted(trainings, key=lambda lever: -mean(trainings[lever]))
    rows = [_row(lever, trainings[lever], trainings.get(UNCHANGED, {})) for lever in best_first]
    every = [one for by_seed in trainings.values() for one in by_seed.values()]
    rows_apart = [
        [one["validation"]["mrr"] for one in by_seed.values()] for by_seed in trainings.values()
    ]
    commits = ", ".join(dict.fromkeys(one["commit"] for one in every))
    seeds = sorted({one["seed"] for one in every})
    by_seed = (
        f"mean over seeds {', '.join(map(str, seeds))}{apart(rows_apart)}; differences are at the same "
        "seeds, those of each in brackets"
        if len(seeds) > 1
        else f"seed {seeds[0]}"
    )
    at_a_time = max(one["trainings_at_a_time"] for one in every)
    shared = f", up to {at_a_time} trainings at a time" if at_a_time > 1 else ""
    return Table(
        f"{configuration}{when}",
        head,
        rows,
        f"`configs/{configuration}.toml` as of these commits, with {every[0]['steps']:,} steps and "
        f"{every[0]['negatives']:,} negatives, last parameters. Validation, standard protocol, {by_seed}. "
        f"{machines(every)}{shared}, commit "
        f"{short_commit(commits)}.",
    )


def _row(lever: str, by_seed: BySeed, beside: BySeed) -> list[str]:
    return [
        lever.replace("-", " "),
        str(len(by_seed)),
        bare(f"{mean(by_seed):.4f}"),
        bare(difference(by_seed, beside)),
        *(figure(name, mean(by_seed, name)) for name in ("hits@10", "mr")),
    ]
