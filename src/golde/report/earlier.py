"""What the configurations reached on test before: results that those of now took the place of."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from golde.report.results import Record, is_complete, read_records, seedless
from golde.report.tables import EARLIER, REPRODUCED, machines, markdown, reproduced_row, shared

READING = (
    "Test figures of results that those above took the place of, oldest first; columns as above. Each "
    "revision was chosen on validation, but after these figures were known."
)


def earlier_section(results: Path) -> str:
    """A row for each time that a configuration was trained before; empty where there is none."""
    found = _by_turn(read_records(results, "runs"))
    if not found:
        return ""
    rows = [
        [records[0]["graph"], *reproduced_row(records[0]["config"], records)] for records in found
    ]
    every = [record for records in found for record in records]
    note = f"{READING} {machines(every)}{shared(every)}."
    return f"## {EARLIER}\n\n{markdown(['graph', *REPRODUCED], rows)}\n\n{note}"


def _by_turn(records: Iterable[Record]) -> list[list[Record]]:
    """The seeds that belong together among those replaced and complete, each configuration's oldest first."""
    found: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        for old in filter(is_complete, record["replaced"]):
            alike = old["commit"], old["digest"], json.dumps(seedless(old), sort_keys=True)
            key: tuple[str, ...] = (record["graph"], record["config"], *alike)
            while any(one["seed"] == old["seed"] for one in found.get(key, [])):
                key = (*key, "again")
            found.setdefault(key, []).append(old)
    return sorted(
        found.values(), key=lambda seeds: (seeds[0]["graph"], seeds[0]["config"], _when(seeds))
    )


def _when(records: list[Record]) -> str:
    """When the first of them was ranked first."""
    return min((one["when"] or "" for r in records for one in r["evaluations"]), default="")
