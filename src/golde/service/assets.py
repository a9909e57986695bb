"""The files of the page at ``/``. What is read here is what the repository holds: nothing is built."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "page"
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}

START = "/page/index.html"
"""What is shown at ``/``."""


@cache
def assets() -> Mapping[str, tuple[bytes, str]]:
    """Content and media type of each file, by its path in the service."""
    return {
        f"/page/{file.name}": (file.read_bytes(), _KINDS[file.suffix])
        for file in sorted(_FOLDER.iterdir())
        if file.suffix in _KINDS
    }
