"""How long work reports where it is. The library calls; only the command line draws."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Called as ``progress(done, total)``."""


def silent(done: int, total: int) -> None:
    """Report nothing."""
