"""Which part of the files of a graph each of several processes reads.

The files stand one after the other, and each process has an equal share of their bytes. Tables with a tab
between names are cut after a line, Parquet between row groups. All else is read whole by the process in whose
share it begins: quotes, statements and compression do not tell where one may begin to read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from golde.data.files import read_error, suffix_of
from golde.data.tables import row_groups


class Part(NamedTuple):
    """A part of a file; of text the lines that begin at these bytes, of Parquet these row groups."""

    file: int  # number among the files of the graph
    path: Path
    rows: range | None  # None: the whole file

    @property
    def is_first(self) -> bool:
        """Whether the file begins with it."""
        return self.rows is None or self.rows.start == 0


def parts_of(files: Sequence[Path], rank: int, size: int) -> list[Part]:
    """What process ``rank`` of ``size`` reads, in order; together they read every file once."""
    bytes_of = [max(1, _bytes(path)) for path in files]  # so that an empty one has a reader too
    begin, end = (share * sum(bytes_of) // size for share in (rank, rank + 1))
    return list(_between(files, bytes_of, begin, end))


def _between(files: Sequence[Path], bytes_of: list[int], begin: int, end: int) -> Iterator[Part]:
    start = 0
    for number, (path, length) in enumerate(zip(files, bytes_of, strict=True)):
        low, high = max(begin - start, 0), min(end - start, length)  # of this file
        begins_here = begin <= start < end
        if path.suffix.lower() in (".tsv", ".txt") and path.is_file():
            if low < high:
                yield Part(number, path, range(low, high))
        elif suffix_of(path) == ".parquet" and path.is_file():
            if low < high:
                groups = row_groups(path)
                mine = [i for i in range(groups) if low <= i * length // groups < high]
                if mine or begins_here:
                    yield Part(number, path, range(mine[0], mine[-1] + 1) if mine else range(0))
        elif begins_here:
            yield Part(number, path, None)
        start += length


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise read_error(path, error) from error
