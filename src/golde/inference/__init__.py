"""Asking a trained run: predict, score, complete, export."""

from golde.inference.complete import Completion
from golde.inference.paths import PathAnswer
from golde.inference.queries import Prediction, Query
from golde.inference.run import Run

__all__ = ["Completion", "PathAnswer", "Prediction", "Query", "Run"]
