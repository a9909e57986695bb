"""Models: entity and relation parameters, and scores."""

from golde.models.golde import GoldE

__all__ = ["GoldE"]
