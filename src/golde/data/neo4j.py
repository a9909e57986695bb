"""Tables that Neo4j writes, known by their header row.

neo4j-admin       ``:START_ID,:END_ID,:TYPE`` in any order, and properties such as ``since:int``.
apoc.export.csv   ``_id,_labels,…,_start,_end,_type``, nodes and relationships in one file: rows of nodes
                  leave the last three empty.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from golde.errors import DataError

# Ends and type in any case; of ids the capitals alone, since a relation may well be called schema:id.
_FIELD = re.compile(r"\w*:(ID|(?i:START_ID|END_ID|TYPE))(?:\(([^)]*)\))?(?:\{.*\})?")
_ENDS = ("START_ID", "TYPE", "END_ID")
_APOC = ("_start", "_type", "_end")


def relationship_columns(
    path: Path, line: int, header: Sequence[str]
) -> tuple[tuple[int, ...], bool] | None:
    """Where start, type and end are, and whether rows may be of nodes; None if it is no such header."""
    if set(_APOC) <= set(header):
        return tuple(list(header).index(name) for name in _APOC), True
    places = [
        (m[1].upper(), i, m[2]) for i, cell in enumerate(header) if (m := _FIELD.fullmatch(cell))
    ]
    fields = {name: (i, space) for name, i, space in places}
    if not fields.keys() & {"ID", "START_ID", "END_ID"}:
        return None
    shown = ", ".join(header)
    if twice := [f":{name}" for name in _ENDS if [place[0] for place in places].count(name) > 1]:
        raise DataError(
            path,
            f"relationships of Neo4j with more than one {' and '.join(twice)}",
            line=line,
            text=shown,
            fix="leave one column of each; or pick three with --columns, such as 1,2,3",
        )
    if "ID" in fields:
        raise DataError(
            path,
            "these are nodes of Neo4j; facts are its relationships",
            line=line,
            text=shown,
            fix="give the file with :START_ID, :END_ID and :TYPE; if these are facts, --columns 1,2,3",
        )
    if missing := [f":{name}" for name in _ENDS if name not in fields]:
        raise DataError(
            path,
            f"relationships of Neo4j without {' and '.join(missing)}",
            line=line,
            text=shown,
            fix="export :START_ID, :END_ID and :TYPE",
        )
    start, _, end = (fields[name][1] for name in _ENDS)
    if start != end:
        names = ",".join(header[fields[name][0]] for name in _ENDS)
        raise DataError(
            path,
            f"starts are ids of {start or 'no space'} and ends of {end or 'no space'}: the same id may be "
            "two nodes",
            line=line,
            text=shown,
            fix=f"export ids that differ over all nodes; if they do, say so with --columns '{names}'",
        )
    return tuple(fields[name][0] for name in _ENDS), False
