"""Training: from a graph and a configuration to a run folder."""

from golde.training.loop import DivergedError, Report, StoppedError, train

__all__ = ["DivergedError", "Report", "StoppedError", "train"]
