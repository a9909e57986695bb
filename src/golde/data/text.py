"""Facts from tab- or comma-separated text.

Tabs separate names as they are, without quoting; commas may be quoted as spreadsheets do. Text is
read a block of lines at a time, so that memory holds the names of one block and the distinct names
of the graph, never every name of every line.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from golde.data.columns import Columns, Layout, header_order, wrong_width
from golde.data.files import READ_ERRORS, Report, opened, read_error
from golde.data.notes import note
from golde.data.numbering import FileFacts, Ids, NameIndex, no_facts
from golde.errors import DataError

_BLOCK = 1 << 22  # bytes
_ROWS = 1 << 16

Rows = tuple[Ids, list[list[str]]]
"""Line numbers, and the cells of each row."""


def read_tsv(path: Path, columns: Columns | None, index: NameIndex, report: Report) -> FileFacts:
    """Facts from a file with a tab between names."""
    text = _Text(path, report)
    return _read(text, _tab_rows(text), columns, index)


def read_csv(path: Path, columns: Columns | None, index: NameIndex, report: Report) -> FileFacts:
    """Facts from a file with a comma between names."""
    text = _Text(path, report)
    return _read(text, _comma_rows(text), columns, index)


def _read(
    text: _Text, batches: Iterator[Rows], columns: Columns | None, index: NameIndex
) -> FileFacts:
    path, layout, notes = text.path, None, []
    triples, lines = [no_facts()], [np.empty(0, dtype=np.int64)]
    for numbers, rows in batches:
        if layout is None:
            layout = Layout.of(path, int(numbers[0]), rows[0], columns)
            if layout.header:
                numbers, rows = numbers[1:], rows[1:]
            elif header_order(rows[0]) is not None:
                notes.append(f"{path.name}: line 1 looks like a header row and is read as a fact")
        for number, row in zip(numbers, rows, strict=True):
            if len(row) != layout.width:
                raise wrong_width(path, int(number), row, layout.width)
        if rows:
            cells = list(zip(*rows, strict=True))
            triples.append(index.number(*(cells[i] for i in layout.order)))
            lines.append(numbers)
    return FileFacts(path, np.concatenate(triples), np.concatenate(lines), notes + text.notes())


def _tab_rows(text: _Text) -> Iterator[Rows]:
    for start, block in text.blocks():
        rows = [line.split("\t") for line in block.split("\n")]
        yield np.arange(start, start + len(rows)), rows


def _comma_rows(text: _Text) -> Iterator[Rows]:
    lines = (line + "\n" for _, block in text.blocks() for line in block.split("\n"))
    reader = csv.reader(lines, strict=True)
    start = 1
    while True:
        numbers, rows = [], []
        try:
            for row in islice(reader, _ROWS):
                numbers.append(start)
                rows.append(row)
                start = reader.line_num + 1
        except csv.Error as error:
            raise DataError(
                text.path,
                f"the quoting cannot be understood ({error})",
                line=start,
                fix='close every quoted name, and write a quotation mark inside one as ""',
            ) from error
        if not rows:
            return
        yield np.array(numbers), rows


class _Text:
    """The lines of a text file; what can be overlooked in them is counted."""

    def __init__(self, path: Path, report: Report) -> None:
        self.path = path
        self._report = report
        self._marks = self._returns = self._blank = 0

    def notes(self) -> list[str]:
        name = self.path.name
        return [
            *note(name, self._marks, "byte-order mark", "skipped"),
            *note(name, self._returns, "line", "ended in CR LF"),
            *note(name, self._blank, "blank line", "at the end skipped"),
        ]

    def blocks(self) -> Iterator[tuple[int, str]]:
        """Pieces of whole lines, without the last line's end, and the number of the first line."""
        line = 1
        for block in self._pieces():
            if line == 1 and block.startswith(b"\xef\xbb\xbf"):
                self._marks, block = 1, block[3:]
            self._returns += (returns := block.count(b"\r\n"))
            if returns:
                block = block.replace(b"\r\n", b"\n")
            count = block.count(b"\n")
            kept = block.rstrip(b"\n")
            if kept and self._blank:
                raise wrong_width(self.path, line - self._blank, [], 3)
            # One line end belongs to the last line kept; the others, or all, are blank lines.
            self._blank += len(block) - len(kept) - (1 if kept else 0)
            if kept:
                yield line, self._decoded(kept, line)
            line += count

    def _pieces(self) -> Iterator[bytes]:
        """The file cut after line ends into blocks; the last one always ends in one."""
        gathered = bytearray()
        for part in self._parts():
            gathered += part
            if len(gathered) >= _BLOCK and (end := gathered.rfind(b"\n") + 1):
                yield bytes(gathered[:end])
                del gathered[:end]
        if gathered:
            yield bytes(gathered) if gathered.endswith(b"\n") else bytes(gathered) + b"\n"

    def _parts(self) -> Iterator[bytes]:
        """The file in small parts, so that a damaged archive is reported where it breaks off."""
        line = 1
        with opened(self.path, self._report) as stream:
            while True:
                try:
                    part = stream.read1(_BLOCK)
                except READ_ERRORS as error:
                    raise read_error(self.path, error, line) from error
                if not part:
                    return
                line += part.count(b"\n")
                yield part

    def _decoded(self, block: bytes, line: int) -> str:
        try:
            return block.decode()
        except UnicodeDecodeError as error:
            before = block.count(b"\n", 0, error.start)
            raise DataError(
                self.path,
                f"byte 0x{block[error.start]:02x} is not UTF-8",
                line=line + before,
                text=block.split(b"\n")[before].decode(errors="backslashreplace"),
                fix="save the file as UTF-8",
            ) from error
