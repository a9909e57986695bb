"""Tables as they are shown in a terminal and on a page, and the one of all that was reproduced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from golde.report.results import (
    EMBEDDING,
    Record,
    by_configuration,
    is_complete,
    read_records,
    summary,
)
from golde.report.seeds import bare

NOT_RUN = "not run"


@dataclass(frozen=True)
class Table:
    """A heading, a table whose first column is words, and what has to be known to read it."""

    title: str
    head: list[str]
    rows: list[list[str]]
    note: str = ""

    def markdown(self) -> str:
        note = f"\n\n{self.note}" if self.note else ""
        return f"### {self.title}\n\n{markdown(self.head, self.rows)}{note}"


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of words in the first column and figures in the others."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def figure(name: str, value: float) -> str:
    """A figure with as many digits as mean something."""
    return f"{value:,.0f}" if name == "mr" else f"{value:.3f}".removeprefix("0")


def short_commit(commit: str) -> str:
    """The first digits of each commit, with a ``+`` where files differed from it."""
    return ", ".join(
        one[:7] + ("+" if one.endswith("+changes") else "") for one in commit.split(", ")
    )


REPRODUCED = ["configuration", "seeds", "MRR", "H@10", "MR", "self-f.", "alone", "time", "commit"]


def reproduced(results: Path) -> list[Table]:
    """Every configuration that was reproduced, one table a graph."""
    found = by_configuration(read_records(results, "runs"))
    return [
        Table(
            graph,
            REPRODUCED,
            [reproduced_row(name, records) for name, records in configurations.items()],
        )
        for graph, configurations in found.items()
    ]


def reproduced_row(name: str, records: list[Record]) -> list[str]:
    """The means over the seeds of a configuration, under ``REPRODUCED``."""
    found = summary(records)
    standard, spread = found["standard"], found["spread"]
    return [
        name,
        str(found["seeds"]),
        _with_spread(standard, spread),
        *(figure(one, standard[one]) for one in ("hits@10", "mr")),
        figure("mrr", found["self_filter"]["mrr"]),
        figure("mrr", found[EMBEDDING]["mrr"]) if EMBEDDING in found else "",
        f"{found['seconds']:,.0f} s",
        short_commit(found["commit"]),
    ]


def _with_spread(standard: dict[str, float], spread: dict[str, float] | None) -> str:
    of_seeds = "" if spread is None else f"±{spread['mrr']:.4f}"
    return bare(f"{standard['mrr']:.4f}{of_seeds}")


EARLIER = "What the configurations reached before"
"""The heading of the section with results that were replaced."""

READING = (
    "**Figures** are on test: filtered, both sides, realistic rank on ties. MRR with its standard deviation "
    "over seeds; *self-f.* is the MRR without the query's own entity among the candidates, the other figures "
    "are under the standard protocol; *alone* is the MRR of the embedding without [evidence](evidence.md), "
    "where that counts.",
    "**Chosen on validation**: settings and parameters.",
    "**Time** is that of training, validation, evidence and compiling kernels, as far as they are not "
    "cached.",
)
"""How the columns are read, one point each."""


def reproduced_section(results: Path, beside: Iterable[str] = ()) -> str:
    """The same as a section of a page, with what else has to be said; empty where nothing was reproduced."""
    tables = reproduced(results)
    if not tables:
        return ""
    head = ["graph", *tables[0].head]
    rows = [[table.title, *row] for table in tables for row in table.rows]
    records = read_records(results, "runs")
    told = [
        *READING,
        *held_out(records),
        *beside,
        _rankings(records),
        f"**Run on** {machines(records)}{shared(records)}.",
        "**To make a row again**: `golde reproduce configs/CONFIGURATION.toml --results my-results`; see "
        "[Reproduce](reproduce.md).",
    ]
    points = "\n".join(f"- {one}" for one in told if one)
    return f"## Reproduced configurations\n\n{markdown(head, rows)}\n\n{points}"


def _rankings(records: Sequence[Record]) -> str:
    """How often trainings were ranked on test, those of before, with other settings or code, included."""
    again = ranked_again(records)
    but = f", but for {'; '.join(again)}" if again else ""
    return (
        "Each training was ranked on test once under each protocol, and where evidence counts once more "
        f"without it{but}.{_earlier(records)}"
    )


def _earlier(records: Sequence[Record]) -> str:
    before, begun = Counter[str](), 0
    for record in records:
        times = sum(map(is_complete, record["replaced"]))
        before[record["config"]] = max(before[record["config"]], times)
        begun += sum(bool(one["evaluations"]) for one in record["replaced"] if not is_complete(one))
    found = [f"{name} {times} time{'s' * (times != 1)}" for name, times in before.items() if times]
    left = (
        f" Rankings of {begun} more were begun and not ended; result files list them."
        if begun
        else ""
    )
    if not found:
        return left
    return (
        " Configurations were revised on validation, or timed again as they were, and trained anew "
        f"({', '.join(found)}): [what they reached before](results.md#{anchor(EARLIER)}) is kept.{left}"
    )


def ranked_again(records: Iterable[Record]) -> list[str]:
    """Trainings that were ranked more than once under a protocol, as after a kill, in words."""
    told = []
    for record in records:
        for one in (record, *record["replaced"]):
            rankings = Counter(ranking.get("protocol") for ranking in one["evaluations"])
            times = [f"{protocol} {many} times" for protocol, many in rankings.items() if many > 1]
            if times:
                told.append(f"{one['config']}, seed {one['seed']} ({', '.join(times)})")
    return told


def anchor(heading: str) -> str:
    """What a link to the heading of a page ends with."""
    return heading.lower().replace(" ", "-")


def held_out(records: Iterable[Record]) -> list[str]:
    """What evidence has learned of how facts were held out, in words; empty where it has not."""
    weighed = [r for r in records if "evidence" in r["training"]]
    return [one for one in (_unmentioned(weighed), _joined_pairs(weighed)) if one]


def _unmentioned(weighed: list[Record]) -> str:
    raised = [r for r in weighed if r["training"]["evidence"].get("unmentioned", 0) > 0]
    if not raised:
        return ""
    among, of = (Counter(record["config"] for record in one) for one in (raised, weighed))
    shares = [
        name + (f" ({many} of {of[name]} trainings)" if many < of[name] else "")
        for name, many in among.items()
    ]
    return (
        "Entities that occur in no training fact get a constant added to their score as answers, chosen by "
        f"mean rank on validation, in {', '.join(shares)}."
    )


def _joined_pairs(weighed: list[Record]) -> str:
    found = [r for r in weighed if r["training"]["evidence"]["joined"] < 0]
    if not found:
        return ""
    alone = all(not record["training"]["evidence"]["scale"] for record in found)
    share = "nearly all" if alone else "much"
    graphs = " and ".join(dict.fromkeys(record["graph"] for record in found))
    return (
        f"On {graphs} {share} of what evidence adds is one number: answers that a training fact joins to the "
        "query already are ranked low, nearly as if they were left out, because the set was made without "
        "held-out facts between such pairs. The number was chosen on validation."
    )


def trained(records: Sequence[Record]) -> str:
    """For how many steps and with how many negatives, in words."""
    settings = [record["settings"].get("training", {}) for record in records]
    took = [record["training"]["steps"] for record in records]
    asked = [one.get("steps", steps) for one, steps in zip(settings, took, strict=True)]
    negatives = [one["negatives"] for one in settings if "negatives" in one]
    ended = ", or fewer where validation no longer improved" if took != asked else ""
    drawn = f"{',' * bool(ended)} with {_mostly(negatives, 'negatives')}" if negatives else ""
    return f"{_mostly(asked, 'steps')}{ended}{drawn}"


def _mostly(numbers: Iterable[int], unit: str) -> str:
    """The most frequent number, and the others: 1,000 negatives (some with 500 or 3,000)."""
    counts = Counter(numbers)
    usual = max(counts, key=lambda number: (counts[number], number))
    others = [_or_all(number) for number in sorted(counts.keys() - {usual})]
    rest = f" (some with {' or '.join(others)})" if others else ""
    return f"{_or_all(usual)}{'' if usual else ' as'} {unit}{rest}"


def _or_all(number: int) -> str:
    """How many are drawn, in words: 0 are all entities."""
    return f"{number:,}" if number else "all entities"


def machine(record: Record) -> str:
    """What a training ran on, in words."""
    hardware, versions = record["machine"], record["versions"]
    packages = [f"Python {versions['python']}", f"torch {versions['torch']}"]
    if "gpu" in hardware:
        packages += [f"Triton {versions['triton']}"] if "triton" in versions else []
        return f"{hardware['gpu']}, {', '.join(packages)}"
    return f"{hardware['cpu']}, {', '.join(packages)}"


def machines(records: Iterable[Record]) -> str:
    """All that some trainings ran on, in words."""
    return "; ".join(dict.fromkeys(map(machine, records)))


def shared(records: Iterable[Record]) -> str:
    """Which trainings of a command did not have the machine to themselves, in words; many are not named."""
    every = list(records)
    crowded = [one for one in every if one["training"]["trainings_at_a_time"] > 1]
    if not crowded:
        return ""
    many = max(one["training"]["trainings_at_a_time"] for one in crowded)
    names = list(dict.fromkeys(one["config"] for one in crowded))
    some = f" of {' and '.join(names)}" if len(crowded) < len(every) and len(names) < 4 else ""
    return f", up to {many} trainings{some} at a time by one command, other commands not counted"


def mean_or_not_run(values: Sequence[float], name: str) -> str:
    """The mean of a figure over seeds, if there are any."""
    return figure(name, fmean(values)) if values else NOT_RUN


def published(block: dict[str, Any], name: str) -> str:
    """A published figure, or a dash where the paper has none."""
    return figure(name, block[name]) if name in block else "–"


def provenance(found: dict[str, Any]) -> str:
    """The CPU, versions and commit of a benchmark, in words."""
    machine, versions = found["machine"], found["versions"]
    return (
        f"{machine['cpu']}, {machine['cores']} cores; Python {versions['python']}, "
        f"torch {versions['torch']}; commit `{found['commit'][:10]}`"
    )


def sources(results: list[dict[str, Any]]) -> str:
    """Where results that were found apart come from."""
    return " and ".join(dict.fromkeys(map(provenance, results)))
