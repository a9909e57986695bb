"""A lock that the system keeps: a process that ends, killed or not, has let go of it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PATIENCE = 60.0
"""Seconds to wait for a lock that others hold for moments only."""

if sys.platform == "win32":
    import msvcrt

    def _lock(path: Path, file: int) -> bool:
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

    def _release(path: Path, file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)
        os.close(file)
        with suppress(OSError):  # somebody has opened it since
            path.unlink()

else:
    import fcntl

    def _lock(path: Path, file: int) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
        except OSError:  # a file system without locks is no reason not to work there
            return True
        try:  # who had it may have removed it since we opened it, and another may be there
            return os.path.samestat(os.fstat(file), path.stat())
        except FileNotFoundError:
            return False

    def _release(path: Path, file: int) -> None:
        with suppress(OSError):
            path.unlink()  # while it is ours: afterwards it may be another's
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)  # also in a process forked meanwhile
        os.close(file)


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Whether the lock file at ``path`` could be locked; if so it is until the end, then removed.

    A file that is there but not locked, as a kill leaves it, is no hindrance.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    if not _lock(path, file):
        os.close(file)
        yield False
        return
    try:
        yield True
    finally:
        _release(path, file)


@contextmanager
def locked_in_folder(path: Path) -> Iterator[bool]:
    """The same in a folder that is made if it is not there yet.

    Folders that were made and are empty at the end are removed again.
    """
    made = [folder for folder in path.parents if not folder.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path) as mine:
            yield mine
    finally:
        for folder in made:
            with suppress(OSError):  # it holds something, or is not there
                folder.rmdir()


@contextmanager
def waited_for(path: Path) -> Iterator[bool]:
    """``locked``, tried again for a while where another has it."""
    end = time.monotonic() + PATIENCE
    while True:
        with locked(path) as mine:
            if mine or time.monotonic() > end:
                yield mine
                return
        time.sleep(0.01)
