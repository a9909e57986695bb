"""Searching settings: spaces, the study that keeps the trials, and the processes that train them."""

from golde.tuning.space import Space, search_space
from golde.tuning.study import Study
from golde.tuning.trial import Trial
from golde.tuning.worker import search, winner

__all__ = ["Space", "Study", "Trial", "search", "search_space", "winner"]
