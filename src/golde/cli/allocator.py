"""What the C library does with memory that is freed."""

from __future__ import annotations

import ctypes
import os

MAPPED = 32 << 20
"""Bytes from which a block is mapped by itself; the most that every glibc takes."""

KEPT = 1 << 30
"""Bytes free at the end of the heap that stay with the process."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as glibc's malloc.h numbers them


def keep_freed_memory() -> None:
    """Have glibc keep memory that was freed, where it is the C library and nobody told it otherwise.

    A step on a CPU asks for tables of megabytes, frees them, and the next step asks again. By itself glibc
    hands them back to the system in between, which then has to clear every page anew: a fifth to a
    quarter of a step of a small model.
    """
    if any(name.startswith("MALLOC_") for name in os.environ) or "GLIBC_TUNABLES" in os.environ:
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library, or another system
        return
    # Either one alone would turn off that glibc adapts the other.
    mallopt(_MMAP_THRESHOLD, MAPPED)
    mallopt(_TRIM_THRESHOLD, KEPT)
