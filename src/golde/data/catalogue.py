"""Benchmarks by name: found in a folder of one's own, in the cache, or on the web.

What is downloaded is checked by content before it is kept, and kept whole or not at all. A folder
of one's own is taken at its word; ``verify`` checks it on request.
"""

from __future__ import annotations

import lzma
import os
import shutil
import sys
import time
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal
from uuid import uuid4

from golde.data.content import SPLITS, Content, Counts, RowError, Rows, content_of, parse_rows
from golde.data.download import Patience, Source, retrieve
from golde.data.files import opened, suffix_of
from golde.errors import DataError, GoldeError
from golde.progress import Progress, silent

Status = Literal["at hand", "cached", "downloadable", "untried", "no source"]

SHIPPED = "world"
"""The name of the graph that comes with the package, and is no entry."""

_STALE = 3600.0  # seconds after which a half-written folder cannot be another process's any more


class ContentError(GoldeError):
    """Facts other than those the catalogue promises under a name."""


@dataclass(frozen=True)
class Entry:
    """One named set."""

    name: str
    counts: Counts
    licence: str
    source: Source | None = None
    digests: Mapping[str, str] | None = None
    """Per split (see ``split_digest``), and ``graph`` of the whole (see ``KnowledgeGraph.digest``); None
    where only the published counts are known."""
    tried: bool = False
    """Whether the source has ever been fetched with success."""
    note: str = ""

    def is_of(self, digest: str, counts: Mapping[str, int] | None) -> bool:
        """Whether a graph of this digest and counts is the set; by the counts where it was never at hand."""
        if self.digests is None:
            return counts == asdict(self.counts)
        return digest == self.digests["graph"]


@dataclass(frozen=True)
class Listing:
    """An entry and where it stands on this machine."""

    entry: Entry
    status: Status
    folder: Path | None


@cache
def entries() -> Mapping[str, Entry]:
    """The catalogue as shipped."""
    here = resources.files("golde.data")
    tables = tomllib.loads((here / "catalogue.toml").read_text(encoding="utf-8"))
    digests = tomllib.loads((here / "digests.toml").read_text(encoding="utf-8"))
    found = {}
    for name, table in tables.items():
        counts = Counts(**{count: table.pop(count) for count in Counts.__dataclass_fields__})
        origin = {key: table.pop(key) for key in ("url", "member", "columns") if key in table}
        source = Source(**origin) if origin else None
        found[name] = Entry(name, counts, source=source, digests=digests.get(name), **table)
    return found


def find(name: str) -> Entry:
    """The entry of a name, however it is capitalised; an unknown name gets the closest ones."""
    plain = {_plain(known): entry for known, entry in entries().items()}
    if _plain(name) in plain:
        return plain[_plain(name)]
    names = {match: entry.name for match, entry in plain.items()} | {SHIPPED: SHIPPED}
    near = get_close_matches(_plain(name), names, n=3)
    hint = f"did you mean {' or '.join(names[match] for match in near)}? " if near else ""
    raise GoldeError(f"no set is called {name!r}; {hint}`golde data list` shows them all")


def catalogue(data_dir: str | Path | None = None) -> list[Listing]:
    """Every named set and where it stands: at hand, cached, or to be downloaded."""
    own = _own_folder(data_dir)
    return [_listing(entry, own) for entry in entries().values()]


def resolve(
    name: str,
    data_dir: str | Path | None = None,
    *,
    progress: Progress = silent,
    patience: Patience | None = None,
) -> Path:
    """The folder of a named set: in ``data_dir`` (or GOLDE_DATA), in the cache, or downloaded."""
    return locate(find(name), data_dir, progress=progress, patience=patience)


def locate(
    entry: Entry,
    data_dir: str | Path | None = None,
    *,
    progress: Progress = silent,
    patience: Patience | None = None,
) -> Path:
    """As ``resolve``, for an entry."""
    own = _own_folder(data_dir)
    if own is not None and (own / entry.name).is_dir() and (lacks := _missing(own / entry.name)):
        raise GoldeError(
            f"{own / entry.name} has no {lacks[0]} file (such as {lacks[0]}.tsv.xz); add it, or "
            "remove the folder to have the set downloaded"
        )
    folder = _listing(entry, own).folder
    if folder is not None:
        return folder
    if entry.source is None:
        raise GoldeError(
            f"{entry.name!r} is not in {own or 'a folder of yours'} and has no address to download "
            f"it from; {_own_files(entry)}"
        )
    return _install(entry, entry.source, progress, patience)


def verify(name: str, folder: str | Path) -> Content:
    """Check the files of a folder against the catalogue; return what they hold."""
    entry = find(name)
    content = content_of(read_folder(folder))
    check(entry, content, str(folder))
    return content


def read_folder(folder: str | Path) -> dict[str, Rows]:
    """The rows of a folder with one tab-separated file a split, compressed or not."""
    return {split: _read_split(Path(folder), split) for split in SPLITS}


def check(entry: Entry, content: Content, where: str) -> None:
    """Refuse content that is not the entry's: by digest or, for want of one, by counts."""
    found, published = asdict(content.counts), asdict(entry.counts)
    if entry.digests is None:
        wrong = [
            f"{what}: {found[what]:,} instead of {published[what]:,}"
            for what in published
            if found[what] != published[what]
        ]
    else:
        wrong = [
            f"{split}: {found[split]:,} facts with digest {content.digests[split][:12]}… instead "
            f"of {published[split]:,} with {entry.digests[split][:12]}…"
            for split in SPLITS
            if content.digests[split] != entry.digests[split]
        ]
    if wrong:
        raise ContentError(
            f"{where} does not hold {entry.name!r} ({'; '.join(wrong)}); use an unaltered copy, "
            f"or {_own_files(entry)}"
        )


def cache_dir() -> Path:
    """Where downloads are kept: GOLDE_CACHE, or the place this system keeps caches."""
    if given := os.environ.get("GOLDE_CACHE"):
        return Path(given).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "golde"


def _plain(name: str) -> str:
    return name.casefold().replace("_", "-")


def _own_files(entry: Entry) -> str:
    files = ", ".join(f"{split}.tsv.xz" for split in SPLITS)
    return f"put {files} into DIR/{entry.name} and name DIR with --data-dir or GOLDE_DATA"


def _own_folder(data_dir: str | Path | None) -> Path | None:
    """The folder of sets the person keeps, if any."""
    given = data_dir or os.environ.get("GOLDE_DATA")
    if not given:
        return None
    folder = Path(given).expanduser()
    if not folder.is_dir():
        named = "--data-dir" if data_dir else "GOLDE_DATA"
        raise GoldeError(f"{folder} is not a folder; {named} must name one that holds sets by name")
    return folder


def _listing(entry: Entry, own: Path | None) -> Listing:
    if own is not None and not _missing(own / entry.name):
        return Listing(entry, "at hand", own / entry.name)
    cached = _cached(entry)
    if not _missing(cached):
        return Listing(entry, "cached", cached)
    if entry.source is None:
        return Listing(entry, "no source", None)
    return Listing(entry, "downloadable" if entry.tried else "untried", None)


def _cached(entry: Entry) -> Path:
    return cache_dir() / "data" / entry.name


def _missing(folder: Path) -> list[str]:
    """The splits without a file, of whatever format."""
    return [split for split in SPLITS if not any(folder.glob(f"{split}.*"))]


def _read_split(folder: Path, split: str) -> Rows:
    found = [path for path in folder.glob(f"{split}.*") if suffix_of(path) in (".tsv", ".txt")]
    if len(found) != 1:
        raise DataError(
            folder,
            f"{len(found) or 'no'} tab-separated {split} files",
            fix=f"there must be one, such as {split}.tsv.xz",
        )
    try:
        with opened(found[0]) as file:
            return parse_rows(file.read())
    except RowError as error:
        raise DataError(found[0], error.problem, line=error.line, text=error.text) from None


def _install(entry: Entry, source: Source, progress: Progress, patience: Patience | None) -> Path:
    """Download, check, and only then write: under another name first, then moved in one step."""
    target = _cached(entry)
    half = target.with_name(f".{entry.name}.{uuid4().hex}.partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        splits = retrieve(source, patience=patience, progress=progress)
        check(entry, content_of(splits), source.url)
        _sweep(target.parent)
        half.mkdir()
        for split, rows in splits.items():
            # The lowest preset: a million facts in seconds instead of a minute.
            with lzma.open(half / f"{split}.tsv.xz", "wb", preset=1) as file:
                file.writelines(row + b"\n" for row in rows)
        _move(half, target)
    except OSError as error:
        raise GoldeError(
            f"cannot write to the cache {target.parent}: {error.strerror or error}; make it "
            "writable, or name another folder with GOLDE_CACHE"
        ) from None
    finally:
        shutil.rmtree(half, ignore_errors=True)
    return target


def _move(half: Path, target: Path) -> None:
    try:
        os.replace(half, target)
    except OSError:
        if not _missing(target):
            return  # another process was faster; what it put there passed the same check
        shutil.rmtree(target)
        os.replace(half, target)


def _sweep(folder: Path) -> None:
    """Remove what killed processes left half written. They were never looked at anyway."""
    for half in folder.glob(".*.partial"):
        try:
            stale = time.time() - half.stat().st_mtime > _STALE
        except FileNotFoundError:
            continue  # its process has just finished
        if stale:
            shutil.rmtree(half, ignore_errors=True)
