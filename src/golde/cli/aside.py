"""What is said beside the results, and to whom nobody may listen any more."""

from __future__ import annotations

import os
import sys

from rich.console import Console


class Aside(Console):
    """A console on stderr: where its reader has gone (``golde … 2>&1 | head``), work goes on unheard."""

    def on_broken_pipe(self) -> None:
        """Rich would end the process."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
