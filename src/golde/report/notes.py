"""What has to be said beside figures, from the records that they come from."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import fmean

from golde.geometry import GEOMETRIES, Signature
from golde.report.results import EMBEDDING, Record, config_of, numbers_an_entity, values
from golde.report.tables import figure, held_out, machines, shared, trained
from golde.words import duration, facts_in_a_row, label

WITHOUT_OURS = "Ours was not run."
PUBLISHED = frozenset("PQ")
"""The geometries of GoldE as published."""

OF_A_STUDY = frozenset({"steps", "negatives", "seed", "validate_every", "validate_limit"})
"""Settings of training that every study may have values of its own for."""


def headline(records: Sequence[Record], published_mrr: float) -> str:
    """How the figures of a configuration came about, those of its embedding beside the published ones."""
    if not records:
        return WITHOUT_OURS
    return (
        f"Ours are means over seeds, on test.{space(records)}{_loops(records)}{_evidence(records)}"
        f"{_behind(records, published_mrr)}"
    )


def small(records: Sequence[Record], published_mrr: float) -> str:
    """The same of one with few numbers an entity."""
    if not records:
        return WITHOUT_OURS
    found = " or ".join(dict.fromkeys(map(_numbers, records)))
    return (
        f"Ours with {found}, means over seeds, on test.{space(records)}{_evidence(records)}"
        f"{_weights(records)}{_behind(records, published_mrr)}"
    )


def by_relation(records: Sequence[Record], has_alone: bool) -> str:
    """The same of figures by relation, those of the embedding alone among them or not."""
    if not records:
        return ""
    seeds = f"{len(records)} seed{'s' * (len(records) != 1)}"
    rest = (
        "*alone* is without it" if has_alone else "of that alone no figures by relation were kept"
    )
    beside = (
        f" In ours {_what_counts(counted)} beside the embedding; {rest}."
        if (counted := weighed(records))
        else ""
    )
    return f"Ours under the standard protocol, means over {seeds}, on test.{beside}"


def space(records: Sequence[Record]) -> str:
    """The space of ours, and that of GoldE as published where it is of other geometries."""
    found = _signatures(records)
    spaces = {frozenset(term.letter for term in Signature.parse(one).terms) for one in found}
    if not spaces:
        return ""
    ours = " or ".join(sorted(map(_product, spaces)))
    signature = f" (`{found[0]}`)" if len(found) == 1 else ""
    theirs = "" if spaces == {PUBLISHED} else f"; the published GoldE is {_product(PUBLISHED)}"
    return f" Ours is {ours}{signature}{theirs}."


def _product(letters: Collection[str]) -> str:
    return " × ".join(kind.word for letter, kind in GEOMETRIES.items() if letter in letters)


def unlike(
    records: Sequence[Record], configured: Iterable[Sequence[Record]], varied: Collection[str] = ()
) -> str:
    """Settings that all ``records`` have and a configuration has not, but for what they ``varied``.

    The configuration is that of ``configured`` with the fewest of these; nothing is said where there is none.
    """
    near = [
        (_differences(records, seeds[0], varied), seeds[0]["config"])
        for seeds in configured
        if records and seeds
    ]
    if not near:
        return ""
    told, name = min(near, key=lambda one: len(one[0]))
    return f" Unlike `configs/{name}.toml` as reproduced: {', '.join(told)}." if told else ""


def _differences(
    records: Sequence[Record], configured: Record, varied: Collection[str]
) -> list[str]:
    configs = [config.model_dump() for one in (configured, *records) if (config := config_of(one))]
    if len(configs) <= len(records):  # one has a setting that is no more
        return []
    there, *every = configs
    return [
        f"`{section}.{key} = {json.dumps(here)}` (there {json.dumps(value)})"
        for section in ("model", "training")
        for key, value in there[section].items()
        if key not in OF_A_STUDY.union(varied)
        and (here := every[0][section][key]) != value
        and all(one[section][key] == here for one in every)
    ]


def _signatures(records: Sequence[Record]) -> list[str]:
    """Those of the records that have one, each once."""
    found = (record["settings"]["model"].get("signature") for record in records)
    return list(dict.fromkeys(filter(None, found)))


def _loops(records: Sequence[Record]) -> str:
    """Why the two protocols may agree."""
    learned = any(record["settings"]["model"].get("loop_bias") for record in records)
    return (
        " Ours has learned for each relation how likely a fact is that leads from an entity to itself "
        "(`model.loop_bias`), and ranks the query's own entity among the others accordingly."
        if learned
        else ""
    )


def weighed(records: Sequence[Record]) -> list[Record]:
    """Those in which something counts beside the embedding."""
    return [record for record in records if EMBEDDING in record["figures"]]


def alone(records: Sequence[Record], name: str = "mrr") -> float | None:
    """A figure of the embedding, on average, if something counts beside it for any seed."""
    return fmean(values(records, name, EMBEDDING)) if weighed(records) else None


def behind(records: Sequence[Record], published: Mapping[str, float]) -> list[str]:
    """The figures in which the embedding alone is behind the published ones, in words."""
    found = []
    for name, theirs in published.items():
        ours = alone(records, name)
        if ours is not None and (ours > theirs if name == "mr" else ours < theirs):
            found.append(f"{label(name)} {figure(name, ours)} against {figure(name, theirs)}")
    return found


def _what_counts(counted: Sequence[Record]) -> str:
    found = [record["training"]["evidence"] for record in counted]
    if any(one["scale"] for one in found):
        return f"evidence of {facts_in_a_row(found[0]['hops'])} counts"
    return "counts whether a training fact joins an answer to the query already"


def _evidence(records: Sequence[Record]) -> str:
    """What counts beside the embedding."""
    if not (counted := weighed(records)):
        return ""
    return (
        f" In ours {_what_counts(counted)} beside the embedding; the last row is the embedding without it."
        f"{''.join(f' {one}' for one in held_out(counted))}"
    )


def _weights(records: Sequence[Record]) -> str:
    """How many numbers evidence learned beside those of the embedding."""
    if not (bodies := learned_bodies(records)):
        return ""
    numbers = fmean(record["parameters"]["all"] for record in records)
    return f" Evidence learned {bodies:,.0f} weights beside the {numbers / 1e6:.2f} M of the embedding."


def learned_bodies(records: Sequence[Record]) -> float | None:
    """How many kinds of walk evidence learned a weight of, on average; None where that is not known."""
    learned = [record["training"]["evidence"] for record in weighed(records)]
    counts = [one["bodies"] for one in learned if "bodies" in one]
    return fmean(counts) if counts else None


def _behind(records: Sequence[Record], published_mrr: float) -> str:
    """What evidence has to make up for."""
    ours = alone(records)
    if ours is None or ours >= published_mrr:
        return ""
    return (
        f" The embedding alone does not reach the published MRR ({figure('mrr', ours)} against "
        f"{figure('mrr', published_mrr)}): what is above that comes from evidence."
    )


def splits(records: Sequence[Record]) -> str:
    words = {"valid": "validation", "test": "test"}
    return " and ".join(dict.fromkeys(words[record["split"]] for record in records))


def sizes(records: Sequence[Record], configured: Sequence[Record]) -> str:
    """With how many numbers an entity the figures of a study came about, and whose settings they have."""
    if not records:
        return ""
    found = " or ".join(dict.fromkeys(map(_numbers, records)))
    chosen = " or ".join(f"`{one}`" for one in _signatures(configured))
    tuned = f", chosen for its space, {chosen}, and tuned for no other" if chosen else ""
    return (
        f" Ours with {found}, the published ones at full size; settings are those of the configuration of "
        f"that size{tuned}."
    )


def _numbers(record: Record) -> str:
    """How many numbers an entity has, in words, its biases apart."""
    numbers = numbers_an_entity(record)
    biases = record["parameters"]["entity"] - numbers
    return f"{numbers} numbers{f' and {biases} biases' if biases else ''} an entity"


def study(records: Sequence[Record]) -> str:
    """How the figures of a study came about."""
    if not records:
        return ""
    drawn = sorted({r["seed"] for r in records})
    by_seeds = f"seed{'s' * (len(drawn) > 1)} {', '.join(map(str, drawn))}"
    seconds = [r["training"]["seconds"] for r in records]
    counted = any(record["settings"].get("evidence", {}).get("hops") for record in records)
    what = "" if counted else ", the embedding alone,"
    took = f"{duration(min(seconds))} to {duration(max(seconds))} a run{shared(records)}"
    return (
        f"Published on test; ours{what} on {splits(records)}, standard protocol, after "
        f"{trained(records)} ({took}), {by_seeds}, "
        f"{machines(records)}."
    )
