"""The run folder: written by training, read by everything after it."""

from golde.runs.folder import FORMAT_VERSION, RunFolder

__all__ = ["FORMAT_VERSION", "RunFolder"]
