"""Where a figure comes from: machine, versions and commit."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from golde._version import __version__


def provenance(packages: Iterable[str]) -> dict[str, Any]:
    """Machine, versions and commit."""
    return {
        "machine": {
            "cpu": cpu_name(),
            "cores": os.cpu_count(),
            "architecture": platform.machine(),
            "system": f"{platform.system()} {platform.release()}",
        },
        "versions": versions(packages),
        "commit": commit(),
    }


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Python's, ours, and that of every package that is installed."""
    found = {"python": platform.python_version(), "golde": __version__}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


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


def cpu_name() -> str:
    """The processor as the system calls it."""
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text().splitlines() if listing.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _git(*arguments: str) -> str:
    here = Path(__file__).parent
    try:
        done = subprocess.run(["git", *arguments], cwd=here, capture_output=True, text=True)
    except OSError:  # no git at all
        return ""
    return done.stdout.strip()
