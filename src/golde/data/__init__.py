"""Facts: reading, numbering, splitting, describing and looking them up."""

from golde.data.describe import CATEGORIES, describe, relation_categories
from golde.data.graph import SPLITS, KnowledgeGraph
from golde.data.known import KnownFacts
from golde.data.loading import load_graph
from golde.data.splitting import split_facts
from golde.data.vocabulary import Vocabulary

__all__ = [
    "CATEGORIES",
    "SPLITS",
    "KnowledgeGraph",
    "KnownFacts",
    "Vocabulary",
    "describe",
    "load_graph",
    "relation_categories",
    "split_facts",
]
