"""Which commit of this code is running."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path


def commit() -> str:
    """The commit of this checkout, marked where tracked files differ from it.

    ``GOLDE_COMMIT`` names it where the files travel without their history; a package that was installed
    from elsewhere has none.
    """
    if named := os.environ.get("GOLDE_COMMIT"):
        return named
    if not _git("ls-files", Path(__file__).name):  # it may lie in a checkout of something else
        return "unknown"
    return _git("rev-parse", "HEAD") + ("+changes" if _git("status", "-s", "-uno") else "")


@cache
def loaded_commit() -> str:
    """``commit`` as it was when this process first asked: the code in memory is that of then."""
    return commit()


def _git(*arguments: str) -> str:
    here = Path(__file__).parent
    try:
        done = subprocess.run(["git", *arguments], cwd=here, capture_output=True, text=True)
    except OSError:  # no git at all
        return ""
    return done.stdout.strip()
