"""Searching settings: spaces, the study that keeps the trials, and the processes that train them."""

from golde.tuning.search import search, winner
from golde.tuning.space import Space, search_space
from golde.tuning.study import Study, Trial

__all__ = ["Space", "Study", "Trial", "search", "search_space", "winner"]
