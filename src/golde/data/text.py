"""Facts from tab- or comma-separated text.

Tabs separate names as they are, without quoting; commas may be quoted as spreadsheets do. Text is
read a block of lines at a time, so that memory holds the names of one block and the distinct names
of the graph, never every name of every line.
"""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path

import numpy as np

from golde.data.columns import Columns, Layout, announced, header_order, wrong_width
from golde.data.files import READ_ERRORS, Report, line_text, opened, read_error
from golde.data.numbering import FileFacts, Ids, NameIndex, Tally, no_facts
from golde.errors import DataError

_BLOCK = 1 << 22  # bytes
_MARK = b"\xef\xbb\xbf"  # of the byte order
_ROWS = 1 << 11  # at a time: the more lists are alive, the longer the garbage collector looks

Batch = tuple[Ids, list[str], Callable[[int], list[Sequence[str]]]]
"""Line numbers, the first row, and a function that gives the columns if there are so many."""


def read_tsv(path: Path, columns: Columns | None, index: NameIndex, report: Report) -> FileFacts:
    """Facts from a file with a tab between names."""
    text = _Text(path, report)
    return _read(text, _tab_batches(text), columns, index)


def read_tsv_part(
    path: Path, columns: Columns | None, index: NameIndex, report: Report, part: range
) -> FileFacts:
    """The same from the lines of a plain file that begin at some of its bytes, counted from there."""
    text = _Text(path, report, part=part)
    batches = _tab_batches(text)
    with _further_down(path, part.start):
        first = list(islice(batches, 1))
    layout = _layout_of_file(text, columns) if part.start and first else None
    with _further_down(path, part.start):
        facts = _read(text, chain(first, batches), columns, index, layout)
    facts.begin = part.start
    return facts


@contextmanager
def _further_down(path: Path, begin: int) -> Iterator[None]:
    """Errors about lines that are counted from a byte on tell where they are in the file."""
    try:
        yield
    except DataError as error:
        if error.line is None or not begin:
            raise
        line = error.line + lines_before(path, begin)
        told = DataError(path, error.problem, line=line, text=error.text, fix=error.fix)
        raise told from error.__cause__


def _layout_of_file(text: _Text, columns: Columns | None) -> Layout:
    """As the first line of the file announces it."""
    with opened(text.path) as stream:
        line = stream.readline().removeprefix(_MARK).rstrip(b"\r\n")
    return Layout.of(text.path, 1, text.decoded(line, 1).split("\t"), columns)


def lines_before(path: Path, begin: int) -> int:
    """How many lines of a plain file begin before a byte."""
    with opened(path) as stream:
        left, lines, last = begin, 0, b"\n"
        while left and (block := stream.read(min(left, _BLOCK))):
            left -= len(block)
            lines += block.count(b"\n")
            last = block[-1:]
    return lines + (last != b"\n")


def read_csv(path: Path, columns: Columns | None, index: NameIndex, report: Report) -> FileFacts:
    """Facts from a file with a comma between names."""
    text = _Text(path, report, notes_returns=False)  # RFC 4180 wants them
    return _read(text, _comma_batches(text), columns, index)


def _read(
    text: _Text,
    batches: Iterator[Batch],
    columns: Columns | None,
    index: NameIndex,
    layout: Layout | None = None,
) -> FileFacts:
    """All facts of a text; without a ``layout`` its first row says where they are."""
    path, notes, nodes, names_of_first = text.path, list[str](), 0, list[str]()
    triples, lines = [no_facts()], [np.empty(0, dtype=np.int64)]
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
    tally = text.tally(nodes)
    facts = np.concatenate(triples), np.concatenate(lines)
    return FileFacts(path, *facts, notes, tally, names_of_first)


def lone_first_row(facts: FileFacts, entities: int, relations: int) -> list[str]:
    """A note if the first of several facts has three new names, and no other has one of them.

    So many ``entities`` and ``relations`` were known before the file was read.
    """
    if not facts.first_names:
        return []
    (head, relation, tail), others = facts.triples[0], facts.triples[1:]
    ends = others[:, [0, 2]]
    alone = (
        len(others)
        and min(head, tail) >= entities
        and relation >= relations
        and not (others[:, 1] == relation).any()
        and not ((ends == head) | (ends == tail)).any()
    )
    return [lone_row_note(facts.path, facts.first_names)] if alone else []


def lone_row_note(path: Path, names: Sequence[str]) -> str:
    """What is said of a first row whose names occur nowhere else."""
    words = f"line 1 holds names that occur nowhere else ({', '.join(names)})"
    return f"{path.name}: {words}; {header_hint(names)}"


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

    Unless ``notes_returns``, CR LF at the end of a line is as usual as LF. Of a ``part`` they are the lines
    that begin at these bytes, and the first of them counts as line 1.
    """

    def __init__(
        self,
        path: Path,
        report: Report,
        *,
        notes_returns: bool = True,
        part: range | None = None,
    ) -> None:
        self.path = path
        self._notes_returns = notes_returns
        self._report = report
        self._part = part
        self._marks = self._returns = self._blank = 0

    def tally(self, nodes: int) -> Tally:
        """What was overlooked, rows of nodes among it."""
        return Tally(nodes, self._marks, self._returns * self._notes_returns, self._blank)

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """The number of a line, and that line with many that follow, less the last line end."""
        line = 1
        for block in self._pieces():
            begins = line == 1 and (self._part is None or self._part.start == 0)
            if begins and block.startswith(_MARK):
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
            left = self._seek(stream)
            part = b"\n"
            while left is None or left > 0:
                try:
                    part = stream.read1(_BLOCK if left is None else min(_BLOCK, left))
                except READ_ERRORS as error:
                    raise read_error(self.path, error, line) from error
                if not part:
                    return
                line += part.count(b"\n")
                yield part
                if left is not None:
                    left -= len(part)
            if not part.endswith(b"\n"):  # the last line begins in the part, and ends outside
                yield stream.readline()

    def _seek(self, stream: io.BufferedIOBase) -> int | None:
        """Go to where the first line of the part begins; how many bytes of the part are left from there."""
        if self._part is None:
            return None
        if self._part.start:
            stream.seek(self._part.start - 1)
            stream.readline()  # up to the end of the line that began before
        return max(0, self._part.stop - stream.tell())

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
