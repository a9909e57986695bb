"""What all tests share: examples that are the same everywhere, and signals that reach their processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

# A failure on one machine is a failure on all.
settings.register_profile("golde", derandomize=True, deadline=None, database=None, max_examples=40)
settings.load_profile("golde")


@pytest.fixture
def hangups_are_heard() -> Iterator[None]:
    """By processes that a test starts, also where the suite itself is started with ``nohup``."""
    if os.name == "nt":
        yield
        return
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)
