"""Tables a person takes away: text between tabs or commas, or Parquet, never half-written."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from golde.errors import GoldeError, MissingExtraError
from golde.runs.atomic import replacing

Rows = Sequence[Sequence[object]]

TABLES = (".tsv", ".csv", ".parquet")
"""What the name of a table may end in."""

_BREAKS = frozenset("\t\n\r")


@contextmanager
def open_table(path: Path, columns: dict[str, type]) -> Iterator[Callable[[Rows], None]]:
    """A function that adds rows to a new table, under columns of type str, int or float.

    The suffix of the path says whether it is TSV, CSV or Parquet. The file appears when it is complete.
    """
    suffix = path.suffix.lower()
    if suffix not in TABLES:
        raise GoldeError(f"{path}: cannot tell the kind of table; name it {one_of(TABLES)}")
    with replacing(path) as partial:
        if suffix == ".tsv":
            with partial.open("w", encoding="utf-8", newline="\n") as file:
                file.write(tsv_line(columns))
                yield lambda rows: file.writelines(map(tsv_line, rows))
        elif suffix == ".csv":
            with partial.open("w", encoding="utf-8", newline="") as file:
                table = csv.writer(file, lineterminator="\n")
                table.writerow(columns)
                yield table.writerows
        else:
            arrow = pyarrow(f"writing {path.name}")
            types = {str: arrow.string(), int: arrow.int64(), float: arrow.float64()}
            schema = arrow.schema([(name, types[kind]) for name, kind in columns.items()])
            with arrow.parquet.ParquetWriter(partial, schema) as writer:
                yield lambda rows: writer.write_batch(
                    arrow.record_batch(
                        [
                            arrow.array([row[i] for row in rows], kind)
                            for i, kind in enumerate(schema.types)
                        ],
                        schema,
                    )
                )


def one_of(words: Sequence[str]) -> str:
    """Words as a choice: ``.tsv, .csv or .parquet``."""
    *others, last = words
    return f"{', '.join(others)} or {last}"


def tsv_line(cells: Iterable[object]) -> str:
    """Cells on one line, None as nothing; a name that would break the line is an error."""
    texts = ["" if cell is None else str(cell) for cell in cells]
    for text in texts:
        if not _BREAKS.isdisjoint(text):
            raise GoldeError(f"{text!r} holds a tab or line break, which TSV cannot; use Parquet")
    return "\t".join(texts) + "\n"


def pyarrow(wish: str) -> Any:
    """The pyarrow package with its Parquet part, or an error that names the extra."""
    try:
        import pyarrow as arrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError(wish, "tables") from None
    return arrow
