"""Where a figure comes from: machine, versions and commit."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from golde._version import __version__
from golde.runs.commit import loaded_commit


def provenance(packages: Iterable[str]) -> dict[str, Any]:
    """Machine, versions, and the commit that this process began with, whatever it has written since."""
    return {
        "machine": {
            "cpu": cpu_name(),
            "cores": os.cpu_count(),
            "architecture": platform.machine(),
            "system": f"{platform.system()} {platform.release()}",
        },
        "versions": versions(packages),
        "commit": loaded_commit(),
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


def cpu_name() -> str:
    """The processor as the system calls it."""
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text().splitlines() if listing.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
