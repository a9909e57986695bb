"""GoldE: knowledge-graph completion in products of curved spaces."""

from golde._version import __version__

__all__ = ["__version__"]
