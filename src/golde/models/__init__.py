"""Models: entity and relation parameters, and scores."""

from golde.models.contract import Model
from golde.models.golde import GoldE
from golde.models.kinds import build

__all__ = ["GoldE", "Model", "build"]
