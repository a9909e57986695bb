"""Getting a benchmark's rows from the web: patient, and never satisfied with half a file.

Plain GETs of a few public files need no more than the standard library. Nothing here touches the
disk: rows go to the caller, who checks them before keeping any.
"""

from __future__ import annotations

import io
import socket
import ssl
import tarfile
import time
import zlib
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import PurePosixPath
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from golde._version import __version__
from golde.data.content import SPLITS, RowError, Rows, parse_rows
from golde.errors import GoldeError
from golde.progress import Progress, silent


@dataclass(frozen=True)
class Source:
    """Where a set can be had: three plain files, or one tar archive that holds them."""

    url: str
    """``{split}`` in it stands for train, valid and test."""
    member: str | None = None
    """For an archive: the file name of a split in it, in whatever folder, ``{split}`` as above."""
    columns: str = "hrt"
    """The order of head, relation and tail in a row."""


@dataclass(frozen=True)
class Patience:
    """How long a server may take. Times in seconds."""

    timeout: float = 30.0
    """The longest silence, when connecting and between pieces."""
    window: float = 60.0
    """A server that sends a little now and then is given up after this long ..."""
    rate: float = 1024.0
    """... if it sent fewer bytes a second than this."""
    attempts: int = 4
    backoff: float = 1.0
    """The pause before the second attempt; doubled before each further one."""


class DownloadError(GoldeError):
    """A file could not be had; the message names the address, the trouble and the way around."""

    def __init__(self, url: str, problem: str, *, passing: bool = False) -> None:
        self.url, self.passing = url, passing
        hint = "try again later, or " if passing else ""
        super().__init__(
            f"cannot download {url}: {problem} ({hint}put the files into a folder of your own and "
            "name it with --data-dir or GOLDE_DATA)"
        )


def retrieve(
    source: Source, *, patience: Patience | None = None, progress: Progress = silent
) -> dict[str, Rows]:
    """Download the rows of every split. Progress counts bytes over all files opened so far."""
    patience = patience or Patience()
    if source.member is not None:
        archive = fetch(source.url, patience=patience, progress=progress)
        texts = _members(source, archive)
        urls = dict.fromkeys(SPLITS, source.url)
    else:
        texts, urls = {}, {split: source.url.format(split=split) for split in SPLITS}
        before = 0
        for split, url in urls.items():

            def onward(done: int, total: int, before: int = before) -> None:
                progress(before + done, before + total)

            texts[split] = fetch(url, patience=patience, progress=onward)
            before += len(texts[split])
    splits: dict[str, Rows] = {}
    for split in SPLITS:
        try:
            splits[split] = parse_rows(texts.pop(split), source.columns)
        except RowError as error:
            raise DownloadError(urls[split], f"{split}: {error}") from None
    return splits


def fetch(url: str, *, patience: Patience | None = None, progress: Progress = silent) -> bytes:
    """The whole of one file, after as many attempts as it is worth."""
    patience = patience or Patience()
    attempt = 1
    while True:
        try:
            return _get(url, patience, progress)
        except DownloadError as error:
            if not error.passing or attempt == patience.attempts:
                raise
        time.sleep(patience.backoff * 2 ** (attempt - 1))
        attempt += 1


def _get(url: str, patience: Patience, progress: Progress) -> bytes:
    # Asking for the file as it is makes Content-Length the length of what is read.
    headers = {"User-Agent": f"golde/{__version__}", "Accept-Encoding": "identity"}
    try:
        with urlopen(Request(url, headers=headers), timeout=patience.timeout) as response:
            return _read(response, url, patience, progress)
    except HTTPError as error:
        error.close()
        passing = error.code >= 500 or error.code in (408, 429)
        what = "there is no such file" if error.code in (404, 410) else "the server refused"
        raise DownloadError(
            url, f"{what} (HTTP {error.code} {error.reason})", passing=passing
        ) from None
    except (HTTPException, OSError) as error:
        # urllib wraps what happens before the answer in a URLError, and nothing after it.
        reason = error.reason if isinstance(error, URLError) else error
        if isinstance(reason, TimeoutError):
            problem = f"the server was silent for {patience.timeout:g} s"
            raise DownloadError(url, problem, passing=True) from None
        if isinstance(reason, socket.gaierror):
            problem = f"no network, or no such server ({reason})"
            raise DownloadError(url, problem) from None
        passing = not isinstance(reason, ssl.SSLCertVerificationError)
        detail = str(reason) or type(reason).__name__
        raise DownloadError(url, f"the connection failed ({detail})", passing=passing) from None


def _read(response: HTTPResponse, url: str, patience: Patience, progress: Progress) -> bytes:
    """The body, refused if it is shorter than announced or comes too slowly to wait for."""
    length = response.headers.get("Content-Length")
    expected = int(length) if length is not None else None
    body = bytearray()
    since, had = time.monotonic(), 0
    while piece := response.read1(1 << 16):
        body += piece
        progress(len(body), expected or 0)
        now = time.monotonic()
        if now - since >= patience.window:
            if len(body) - had < patience.rate * (now - since):
                problem = f"too slow, {len(body) - had} bytes in {now - since:.0f} s"
                raise DownloadError(url, problem, passing=True)
            since, had = now, len(body)
    if expected is not None and len(body) != expected:
        problem = f"cut short, {len(body):,} of {expected:,} bytes came"
        raise DownloadError(url, problem, passing=True)
    return bytes(body)


def _members(source: Source, archive: bytes) -> dict[str, bytes]:
    """The split files of a tar archive, read in place: nothing of it is ever unpacked to disk."""
    wanted = {(source.member or "").format(split=split): split for split in SPLITS}
    texts: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            for member in tar:
                split = wanted.get(PurePosixPath(member.name).name)
                if split is not None and member.isfile():
                    file = tar.extractfile(member)
                    assert file is not None  # a regular file always opens
                    texts[split] = file.read()
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise DownloadError(source.url, f"not a sound tar archive ({error})") from None
    missing = [name for name, split in wanted.items() if split not in texts]
    if missing:
        raise DownloadError(source.url, f"the archive does not hold {', '.join(missing)}")
    return texts
