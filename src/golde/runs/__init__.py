"""The run folder: written by training, read by everything after it."""

from golde.runs.contents import FORMAT_VERSION
from golde.runs.folder import RunFolder

__all__ = ["FORMAT_VERSION", "RunFolder"]
