"""Opening data files: plain or compressed, with errors that say what to do."""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from golde.errors import DataError, MissingExtraError

COMPRESSIONS = (".gz", ".xz", ".zst")


def suffix_of(path: Path) -> str:
    """What kind of data a file holds by its name, compression aside: ``a.tsv.gz`` is ``.tsv``."""
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix in COMPRESSIONS else suffix


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, decompressed."""
    try:
        with path.open("rb") as raw, _decompressed(raw, path) as stream:
            yield stream
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise DataError(
            path,
            f"the archive is truncated or damaged ({error})",
            fix="copy or download the file again",
        ) from error
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> DataError:
    return DataError(path, f"cannot be read: {error.strerror or error}")


def _decompressed(raw: IO[bytes], path: Path) -> IO[bytes]:
    match path.suffix.lower():
        case ".gz":
            return gzip.GzipFile(fileobj=raw)  # type: ignore[return-value]
        case ".xz":
            return lzma.LZMAFile(raw)
        case ".zst":
            raise MissingExtraError(f"reading {path}", "tables")
    return raw
