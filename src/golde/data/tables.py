"""Facts from Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from golde.data.columns import Columns, Layout, header_order
from golde.data.files import Report, read_error
from golde.data.numbering import FileFacts, NameIndex, no_facts
from golde.errors import DataError, MissingExtraError

_ROWS = 1 << 16


def read_parquet(
    path: Path,
    columns: Columns | None,
    index: NameIndex,
    report: Report,
    groups: range | None = None,
) -> FileFacts:
    """Facts from a Parquet file; without ``columns``, by well-known column names or in order.

    Of ``groups`` of rows, if they are given, and else of all.
    """
    triples, before = [no_facts()], 0
    with _opened(path) as file:
        schema = file.schema_arrow
        wanted = chosen_columns(path, schema, _order(path, schema.names, columns))
        chosen = range(file.num_row_groups) if groups is None else groups
        before = sum(file.metadata.row_group(i).num_rows for i in range(chosen.start))
        for batch in file.iter_batches(_ROWS, row_groups=list(chosen), columns=wanted):
            row = before + sum(map(len, triples)) + 1
            cells = [_names(path, row, batch.column(name)) for name in wanted]
            triples.append(index.number(*cells))
    report(path.stat().st_size)
    facts = np.concatenate(triples)
    return FileFacts(path, facts, before + np.arange(1, len(facts) + 1), [])


def row_groups(path: Path) -> int:
    """How many groups of rows a Parquet file has."""
    with _opened(path) as file:
        return int(file.num_row_groups)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A Parquet file; whatever goes wrong inside is told as a ``DataError``."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError(f"reading {path.name}", "tables") from None
    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except OSError as error:
        raise read_error(path, error) from error
    except pyarrow.ArrowException as error:
        fix = "copy or write it again"
        raise DataError(path, f"is not readable as Parquet ({error})", fix=fix) from error


def _order(path: Path, names: list[str], columns: Columns | None) -> tuple[int, ...]:
    if columns is not None:
        return Layout.of(path, 0, names, columns).order
    if (order := header_order(names)) is not None:
        return order
    if len(names) != 3:
        raise not_three_columns(path, names)
    return 0, 1, 2


def not_three_columns(path: Path, names: Sequence[str]) -> DataError:
    fix = "write head, relation and tail as three columns"
    if len(names) > 3:
        fix = f"pick three with --columns, such as {','.join(names[:3])}"
    problem = f"{len(names)} column{'s' * (len(names) != 1)} where 3 are expected"
    return DataError(path, problem, text=", ".join(names), fix=fix)


def chosen_columns(path: Path, schema: Any, order: Sequence[int]) -> list[str]:
    """The names of columns in places of a schema; each must be the only one of its name, and no list."""
    names = [schema.names[i] for i in order]
    for i, name in zip(order, names, strict=True):
        if schema.names.count(name) != 1:
            problem, fix = f"there are several columns {name!r}", "rename all but one"
            raise DataError(path, problem, text=", ".join(schema.names), fix=fix)
        if schema.types[i].num_fields:
            problem = f"column {name!r} holds no names but {schema.types[i]}"
            raise DataError(path, problem, fix="pick columns of text or ids with --columns")
    return names


def _names(path: Path, row: int, column: Any) -> list[str]:
    """A column as strings; ids kept as numbers become their digits."""
    names: list[str | None] = column.cast("string").to_pylist()
    if None in names:
        raise DataError(
            path, "no name (null) in row", line=row + names.index(None), fix="remove such rows"
        )
    return names  # type: ignore[return-value]
