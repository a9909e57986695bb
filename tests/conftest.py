"""Hypothesis runs the same examples everywhere: a failure on one machine is a failure on all."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("golde", derandomize=True, deadline=None, database=None, max_examples=40)
settings.load_profile("golde")
