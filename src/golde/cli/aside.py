"""What is said beside the results, and to whom nobody may listen any more."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any


class Aside:
    """The stream that is stderr now; work goes on unheard where its reader or its terminal has gone."""

    def __init__(self) -> None:
        # A bar that is shown takes the place of the stream, and has the stream itself under this name.
        self._stream: Any = getattr(sys.stderr, "rich_proxied_file", sys.stderr)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> None:
        """Write, as far as anyone listens."""
        try:
            self._stream.write(text)
        except OSError:
            self._give_up()

    def flush(self) -> None:
        """Flush likewise."""
        try:
            self._stream.flush()
        except OSError:
            self._give_up()

    def _give_up(self) -> None:
        """What is still buffered must not be tried again at the end."""
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
