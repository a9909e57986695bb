"""What moves accuracy: a configuration with one setting changed at a time, as a section of a page."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

from golde.report.results import Record, read_records, values, variants
from golde.report.tables import Table, figure, machine, short_commit

STUDY, UNCHANGED = "levers", "as-configured"


def levers_section(results: Path) -> str:
    """A table a graph, the best change first; empty where no such study has its configuration ranked."""
    found = variants(read_records(results, "studies"), STUDY)
    graphs = [graph for graph, variant in found if variant == UNCHANGED]
    tables = [
        _table(graph, {v: r for (g, v), r in found.items() if g == graph}) for graph in graphs
    ]
    if not tables:
        return ""
    parts = ["## What moves accuracy", *(table.markdown() for table in tables)]
    return "\n\n".join(parts)


def _table(graph: str, changes: dict[str, list[Record]]) -> Table:
    base = fmean(values(changes[UNCHANGED], "mrr"))
    by_mrr = sorted(changes.items(), key=lambda item: -fmean(values(item[1], "mrr")))
    head = ["change", "seeds", "MRR", "difference", "H@10", "MR"]
    return Table(graph, head, [_row(name, base, found) for name, found in by_mrr], _note(changes))


def _row(name: str, base: float, records: list[Record]) -> list[str]:
    mrr = fmean(values(records, "mrr"))
    difference = "" if name == UNCHANGED else f"{mrr - base:+.4f}".replace("0.", ".")
    others = [figure(one, fmean(values(records, one))) for one in ("hits@10", "mr")]
    words = name.replace("-", " ")
    return [words, str(len(records)), f"{mrr:.4f}".removeprefix("0"), difference, *others]


def _note(changes: dict[str, list[Record]]) -> str:
    records = [record for found in changes.values() for record in found]
    steps = ", ".join(f"{n:,}" for n in sorted({record["training"]["steps"] for record in records}))
    commits = ", ".join(dict.fromkeys(record["commit"] for record in records))
    machines = "; ".join(dict.fromkeys(map(machine, records)))
    return (
        f"Validation, standard protocol, {steps} steps, mean over seeds; one setting is changed at a time. "
        f"{machines}, commit {short_commit(commits)}."
    )
