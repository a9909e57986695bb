"""Facts: reading, numbering, splitting, describing and looking them up."""

from golde.data.graph import SPLITS, KnowledgeGraph
from golde.data.known import KnownFacts
from golde.data.loading import load_graph
from golde.data.vocabulary import Vocabulary

__all__ = ["SPLITS", "KnowledgeGraph", "KnownFacts", "Vocabulary", "load_graph"]
