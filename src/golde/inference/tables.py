"""Tables a person takes away: tab-separated text or Parquet, never half-written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from golde.errors import GoldeError, MissingExtraError

_BREAKS = frozenset("\t\n\r")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to; it takes the place of ``path`` if all goes well, and else goes away."""
    partial = path.with_name(path.name + ".partial")
    try:
        yield partial
        os.replace(partial, path)
    except OSError as error:
        why = error.strerror or error
        raise GoldeError(
            f"{path}: cannot be written: {why}; check the folder and its rights"
        ) from None
    finally:
        partial.unlink(missing_ok=True)


def pyarrow_for(what: str) -> Any:
    """The pyarrow package with its Parquet part, or an error that names the extra."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError(what, "tables") from None
    return pyarrow


def tsv_line(cells: Iterable[object]) -> str:
    """Cells on one line; a name that would break it is an error."""
    texts = ["" if cell is None else str(cell) for cell in cells]
    for text in texts:
        if not _BREAKS.isdisjoint(text):
            raise GoldeError(f"{text!r} holds a tab or line break, which TSV cannot; write Parquet")
    return "\t".join(texts) + "\n"


class Table:
    """Rows written as they come, under named columns of one type each: str, int or float."""

    def __init__(self, columns: dict[str, type], file: TextIO | Path) -> None:
        self._columns = columns
        if isinstance(file, Path):
            self._text = None
            pyarrow = pyarrow_for("writing Parquet")
            types = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64()}
            self._schema = pyarrow.schema([(name, types[kind]) for name, kind in columns.items()])
            self._parquet = pyarrow.parquet.ParquetWriter(file, self._schema)
        else:
            self._text = file
            file.write(tsv_line(columns))

    def write(self, rows: Sequence[Sequence[object]]) -> None:
        """Add a block of rows."""
        if self._text is not None:
            self._text.writelines(map(tsv_line, rows))
        elif rows:
            columns = dict(zip(self._columns, map(list, zip(*rows, strict=True)), strict=True))
            pyarrow = pyarrow_for("writing Parquet")
            self._parquet.write_batch(pyarrow.RecordBatch.from_pydict(columns, self._schema))

    def close(self) -> None:
        """Finish a Parquet file."""
        if self._text is None:
            self._parquet.close()


@contextmanager
def open_table(path: Path, columns: dict[str, type]) -> Iterator[Table]:
    """A new table at ``path``, its kind given by the suffix; it appears when it is complete."""
    suffix = path.suffix.lower()
    if suffix not in (".tsv", ".parquet"):
        raise GoldeError(f"{path}: cannot tell the kind of table; name it .tsv or .parquet")
    with replacing(path) as partial:
        if suffix == ".parquet":
            table = Table(columns, partial)
            try:
                yield table
            finally:
                table.close()
        else:
            with partial.open("w", encoding="utf-8", newline="\n") as file:
                yield Table(columns, file)
