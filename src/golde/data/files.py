"""Opening data files: plain or compressed, with errors that say what to do."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from golde.errors import DataError, MissingExtraError

Report = Callable[[int], None]
"""Called with the number of bytes of a file read so far."""

READ_ERRORS = (EOFError, OSError, zlib.error, lzma.LZMAError)
_BUFFER = 1 << 18


def suffix_of(path: Path) -> str:
    """What kind of data a file holds by its name, compression aside: ``a.tsv.gz`` is ``.tsv``."""
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix in (".gz", ".xz", ".zst") else suffix


@contextmanager
def opened(path: Path, report: Report = lambda done: None) -> Iterator[io.BufferedIOBase]:
    """The bytes of a file, decompressed; whatever goes wrong inside is told as a ``DataError``."""
    try:
        with (
            _Watched(path, report) as file,
            io.BufferedReader(file, _BUFFER) as raw,
            _decompressed(raw, path) as stream,
        ):
            yield stream
    except READ_ERRORS as error:
        raise read_error(path, error) from error


def read_error(path: Path, error: Exception, line: int | None = None) -> DataError:
    """Why a file could not be read, or not to its end."""
    if isinstance(error, OSError) and error.errno is not None:
        fix = "check the path and its rights"
        return DataError(path, f"cannot be read: {error.strerror}", line=line, fix=fix)
    # What is wrong with the bytes, and not with reaching them, bears no number of the system's.
    fix = "copy, download or compress it again"
    return DataError(path, f"truncated or damaged ({error})", line=line, fix=fix)


def line_text(path: Path, wanted: int) -> str:
    """One line of a file, for an error message."""
    with opened(path) as stream:
        for number, line in enumerate(stream, 1):
            if number == wanted:
                return line.decode(errors="backslashreplace").rstrip("\r\n")
    return ""


class _Watched(io.FileIO):
    """A file that tells how far it has been read."""

    def __init__(self, path: Path, report: Report) -> None:
        super().__init__(path)
        self._report = report

    def readinto(self, buffer: Any) -> int | None:
        count = super().readinto(buffer)
        self._report(self.tell())
        return count


def _decompressed(raw: io.BufferedReader[_Watched], path: Path) -> io.BufferedIOBase:
    match path.suffix.lower():
        case ".gz":
            return gzip.open(raw)
        case ".xz":
            return lzma.open(raw)
        case ".zst":
            try:
                import pyarrow
            except ImportError:
                raise MissingExtraError(f"reading {path.name}", "tables") from None
            stream: io.BufferedIOBase = pyarrow.CompressedInputStream(
                pyarrow.PythonFile(raw), "zstd"
            )
            return stream
    return raw
