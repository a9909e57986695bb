"""The command line keeps the memory that a step frees for the next one."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

STEPS = """
import ctypes, resource
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
def step():
    tables = [libc.malloc(BYTES) for _ in range(TABLES)]
    for table in tables:
        libc.memset(table, 1, BYTES)
    for table in reversed(tables):
        libc.free(table)
for _ in range(3):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""

TABLES, BYTES = 16, 12_000_000  # as the scores of a batch

KEEPING = "from golde.cli.allocator import keep_freed_memory; keep_freed_memory()"


def pages_asked_for(prelude: str, **settings: str) -> int:
    """Pages that a step has the system clear, in a process of its own."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_"))}
    done = subprocess.run(
        [sys.executable, "-c", f"{prelude}\n{TABLES=}\n{BYTES=}\n{STEPS}"],
        env=clean | settings,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


HUGE = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@pytest.mark.skipif(
    HUGE.exists() and "[always]" in HUGE.read_text(), reason="pages of another size are counted"
)
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_memory_that_is_freed_is_used_again() -> None:
    pages = TABLES * BYTES // os.sysconf("SC_PAGE_SIZE")
    assert pages_asked_for("") > pages / 2, "glibc would keep it by itself"
    assert pages_asked_for(KEEPING) < pages / 50
    assert pages_asked_for(KEEPING, MALLOC_TRIM_THRESHOLD_="131072") > pages / 2, "the user's word"


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from golde.cli import allocator

    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    for name in [name for name in os.environ if name.startswith("MALLOC_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda name: object())
    allocator.keep_freed_memory()
