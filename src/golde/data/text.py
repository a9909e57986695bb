"""Facts from tab- or comma-separated text.

Tabs separate names as they are, without quoting; commas may be quoted as spreadsheets do. Text is
read a block of lines at a time, so that memory holds the names of one block and the distinct names
of the graph, never every name of every line.
"""

from __future__ import annotations

import csv
import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from golde.data.columns import Columns, Layout, announced, header_order, wrong_width
from golde.data.files import READ_ERRORS, Report, line_text, opened, read_error
from golde.data.notes import note
from golde.data.numbering import FileFacts, Ids, NameIndex, no_facts
from golde.errors import DataError

_BLOCK = 1 << 22  # bytes
_ROWS = 1 << 11  # at a time: the more lists are alive, the longer the garbage collector looks

Batch = tuple[Ids, list[str], Callable[[int], list[Sequence[str]]]]
"""Line numbers, the first row, and a function that gives the columns if there are so many."""


def read_tsv(path: Path, columns: Columns | None, index: NameIndex, report: Report) -> FileFacts:
    """Facts from a file with a tab between names."""
    text = _Text(path, report)
    return _read(text, _tab_batches(text), columns, index)


def read_csv(path: Path, columns: Columns | None, index: NameIndex, report: Report) -> FileFacts:
    """Facts from a file with a comma between names."""
    text = _Text(path, report, notes_returns=False)  # RFC 4180 wants them
    return _read(text, _comma_batches(text), columns, index)


def _read(
    text: _Text, batches: Iterator[Batch], columns: Columns | None, index: NameIndex
) -> FileFacts:
    path, layout, notes, nodes, names_of_first = text.path, None, [], 0, list[str]()
    triples, lines = [no_facts()], [np.empty(0, dtype=np.int64)]
    known = len(index.entities), len(index.relations)
    for numbers, first, cells in batches:
        skipped = 0
        if layout is None:
            layout = Layout.of(path, int(numbers[0]), first, columns)
            skipped = int(layout.header)
            if not layout.header:
                names_of_first = [first[i] for i in layout.order]
            if names_of_first and header_order(first) is not None:
                notes.append(f"{path.name}: line 1 looks like a header row and is read as a fact")
                names_of_first = []
        held = cells(layout.width)
        names, numbers = [held[i][skipped:] for i in layout.order], numbers[skipped:]
        if layout.sparse:
            filled = [i for i, row in enumerate(zip(*names, strict=True)) if any(row)]
            nodes += len(numbers) - len(filled)
            names, numbers = [[column[i] for i in filled] for column in names], numbers[filled]
        triples.append(index.number(*names))
        lines.append(numbers)
    notes += note(path.name, nodes, "row", "of nodes skipped")
    facts = FileFacts(path, np.concatenate(triples), np.concatenate(lines), notes + text.notes())
    if names_of_first and _stands_alone(facts.triples, *known):
        words = f"line 1 holds names that occur nowhere else ({', '.join(names_of_first)})"
        facts.notes.append(f"{path.name}: {words}; {header_hint(names_of_first)}")
    return facts


def _stands_alone(triples: Ids, entities: int, relations: int) -> bool:
    """Whether the first of several facts (n, 3) has three new names, and no other has one of them.

    So many ``entities`` and ``relations`` were known before the file was read.
    """
    (head, relation, tail), others = triples[0], triples[1:]
    ends = others[:, [0, 2]]
    return bool(
        len(others)
        and min(head, tail) >= entities
        and relation >= relations
        and not (others[:, 1] == relation).any()
        and not ((ends == head) | (ends == tail)).any()
    )


def header_hint(names: Sequence[str]) -> str:
    """What to do about a first row that names the columns."""
    given = announced(names)
    fix = "remove it" if given is None else f"give --columns {shlex.quote(given)}"
    return f"if it is a header row, {fix}"


def _tab_batches(text: _Text) -> Iterator[Batch]:
    for start, block in text.blocks():
        numbers = np.arange(start, start + block.count(b"\n") + 1)
        first = text.decoded(block.partition(b"\n")[0], start).split("\t")
        yield numbers, first, partial(_split_tabs, text, start, block)


def _split_tabs(text: _Text, start: int, block: bytes, width: int) -> list[Sequence[str]]:
    # Every line must hold the same number of tabs. Looking only at tabs and line ends settles
    # that for the whole block, and one split then cuts all of its names.
    signs = np.frombuffer(block + b"\n", dtype=np.uint8)
    signs = signs[(signs == ord("\t")) | (signs == ord("\n"))]
    line = np.frombuffer(b"\t" * (width - 1) + b"\n", dtype=np.uint8)
    if len(signs) % width or (signs.reshape(-1, width) != line).any():
        for number, row in enumerate(block.split(b"\n"), start):
            if row.count(b"\t") != width - 1:
                raise wrong_width(text.path, number, text.decoded(row, number).split("\t"), width)
    cells = text.decoded(block, start).replace("\n", "\t").split("\t")
    return [cells[i::width] for i in range(width)]


def _comma_batches(text: _Text) -> Iterator[Batch]:
    blocks = (text.decoded(block, start) for start, block in text.blocks())
    reader = csv.reader(
        (f"{line}\n" for block in blocks for line in block.split("\n")), strict=True
    )
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
                text=line_text(text.path, start),
                fix='close every quoted name, and write a quotation mark inside one as ""',
            ) from error
        if not rows:
            return
        yield np.array(numbers), rows[0], partial(_columns, text.path, numbers, rows)


def _columns(
    path: Path, numbers: list[int], rows: list[list[str]], width: int
) -> list[Sequence[str]]:
    for number, row in zip(numbers, rows, strict=True):
        if len(row) != width:
            raise wrong_width(path, number, row, width)
    return list(zip(*rows, strict=True))


class _Text:
    """The lines of a text file; what can be overlooked in them is counted.

    Unless ``notes_returns``, CR LF at the end of a line is as usual as LF.
    """

    def __init__(self, path: Path, report: Report, *, notes_returns: bool = True) -> None:
        self.path = path
        self._notes_returns = notes_returns
        self._report = report
        self._marks = self._returns = self._blank = 0

    def notes(self) -> list[str]:
        name = self.path.name
        return [
            *note(name, self._marks, "byte-order mark", "skipped"),
            *note(name, self._returns * self._notes_returns, "line", "ended in CR LF"),
            *note(name, self._blank, "blank line", "at the end skipped"),
        ]

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """The number of a line, and that line with many that follow, less the last line end."""
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
                yield line, kept
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

    def decoded(self, block: bytes, line: int) -> str:
        """Lines as text, the first of them having the given number."""
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
