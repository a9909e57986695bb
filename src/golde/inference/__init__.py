"""Asking a trained run: predict, score, complete, export."""

from golde.inference.paths import PathAnswer
from golde.inference.queries import Prediction, Query
from golde.inference.run import Run

__all__ = ["PathAnswer", "Prediction", "Query", "Run"]
