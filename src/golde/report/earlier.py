"""What the configurations reached on test before: results that those of now took the place of."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from golde.report.results import Record, is_complete, read_records
from golde.report.tables import REPLACED, REPRODUCED, machine, markdown, reproduced_row, shared

TITLE = REPLACED.replace("-", " ").capitalize()

READING = (
    "Test figures of results that those above took the place of, oldest first; columns as above. How to "
    "revise a configuration, or how evidence counts, was chosen on validation each time. That a revision "
    "was due was seen in these figures, too: they were known when the next one was made."
)


def earlier_section(results: Path) -> str:
    """A row for each commit that a configuration was trained at before; empty where there is none."""
    found = _by_commit(read_records(results, "runs"))
    if not found:
        return ""
    rows = [
        [records[0]["graph"], *reproduced_row(config, records)]
        for (config, _), records in found.items()
    ]
    every = [record for records in found.values() for record in records]
    note = f"{READING} {'; '.join(dict.fromkeys(map(machine, every)))}{shared(every)}."
    return f"## {TITLE}\n\n{markdown(['graph', *REPRODUCED], rows)}\n\n{note}"


def _by_commit(records: Iterable[Record]) -> dict[tuple[str, str], list[Record]]:
    """The complete ones among those replaced, by configuration and commit."""
    found: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        for old in filter(is_complete, record["replaced"]):
            found.setdefault((record["config"], old["commit"]), []).append(old)
    return found
