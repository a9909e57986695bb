"""Models: entity and relation parameters, and scores."""

from golde.models.contract import Model
from golde.models.golde import GoldE
from golde.models.kinds import build
from golde.models.placement import place

__all__ = ["GoldE", "Model", "build", "place"]
