"""What one request may ask for, and what the service takes on at a time."""

from __future__ import annotations

from dataclasses import dataclass

MOST_ANSWERS = 1000
MOST_FACTS = 1000
"""Of an entity, or to be scored, in one request."""
MOST_POINTS = 100_000
MOST_NAMES = 100
"""Found by one search."""
MOST_REASONS = 50
MOST_NEIGHBOURS = 200
LONGEST_NAME = 2000
"""Letters; in an address each takes up to twelve bytes, and so a few fit into the head of a request."""


@dataclass(frozen=True)
class Limits:
    """What the service takes on; beyond it answers 413 or 503 at once."""

    body_bytes: int = 1 << 20
    body_seconds: float = 10.0
    """For a request to arrive in full."""
    seconds: float = 30.0
    """For an answer."""
    queue: int = 256
    """Questions waiting to be scored."""
    batch: int = 64
    """Questions scored together, at most."""
    gather_seconds: float = 0.002
    """How long the first of them waits for others."""
    quick_jobs: int = 256
    """Searches, facts, neighbours and points under way or waiting."""
    jobs: int = 128
    """Explanations, rules, geometry and comparisons under way or waiting."""
    threads: int = 2
    """For either, of each kind."""
    connections: int = 1000
    poll_seconds: float = 1.0
    """How often run folders are looked at for a new model."""
