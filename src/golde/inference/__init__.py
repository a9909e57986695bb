"""Asking a trained run: predict, score, complete, export."""

from golde.inference.queries import Prediction, Query
from golde.inference.run import Run

__all__ = ["Prediction", "Query", "Run"]
