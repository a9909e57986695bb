"""What a process that a test starts is told: where this source lies, ahead of any other."""

from __future__ import annotations

import os
from pathlib import Path

import golde

_SOURCE = str(Path(golde.__file__).parents[1])


def environment(**more: str) -> dict[str, str]:
    """This process's environment, with this source first on the path."""
    path = [_SOURCE, *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(path)} | more
