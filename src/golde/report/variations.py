"""Studies around a configuration as sections of a page: single settings changed, and other models."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

from golde.report.results import Record, read_records, values, variants
from golde.report.tables import Table, figure, machine, short_commit

UNCHANGED = "as-configured"
"""The variant that all others are set beside."""

STUDIES = {
    "levers": ("What moves accuracy", "One setting of the configuration is changed at a time."),
    "baselines": (
        "Other models in the same trainer",
        "Models of as many numbers an entity, with the batches, steps and ranking of the configuration.",
    ),
}


def variation_sections(results: Path) -> list[str]:
    """A section a study with a table a graph, the best first; no table without its configuration."""
    records = read_records(results, "studies")
    return [
        "\n\n".join([f"## {title}", what, *(table.markdown() for table in tables)])
        for study, (title, what) in STUDIES.items()
        if (tables := _tables(variants(records, study)))
    ]


def _tables(found: dict[tuple[str, str], list[Record]]) -> list[Table]:
    graphs = [graph for graph, variant in found if variant == UNCHANGED]
    return [
        _table(graph, {variant: r for (of, variant), r in found.items() if of == graph})
        for graph in graphs
    ]


def _table(graph: str, found: dict[str, list[Record]]) -> Table:
    base = fmean(values(found[UNCHANGED], "mrr"))
    by_mrr = sorted(found.items(), key=lambda item: -fmean(values(item[1], "mrr")))
    head = ["variant", "seeds", "MRR", "difference", "H@10", "MR"]
    return Table(graph, head, [_row(name, base, records) for name, records in by_mrr], _note(found))


def _row(name: str, base: float, records: list[Record]) -> list[str]:
    mrr = fmean(values(records, "mrr"))
    difference = "" if name == UNCHANGED else f"{mrr - base:+.4f}".replace("0.", ".")
    others = [figure(one, fmean(values(records, one))) for one in ("hits@10", "mr")]
    words = name.replace("-", " ")
    return [words, str(len(records)), f"{mrr:.4f}".removeprefix("0"), difference, *others]


def _note(found: dict[str, list[Record]]) -> str:
    records = [record for one in found.values() for record in one]
    steps = ", ".join(f"{n:,}" for n in sorted({record["training"]["steps"] for record in records}))
    commits = ", ".join(dict.fromkeys(record["commit"] for record in records))
    machines = "; ".join(dict.fromkeys(map(machine, records)))
    return (
        f"Validation, standard protocol, {steps} steps, mean over seeds. {machines}, commit "
        f"{short_commit(commits)}."
    )
