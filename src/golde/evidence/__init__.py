"""What facts in a row say for or against an answer, beside what the embedding says."""

from golde.evidence.evidence import Evidence
from golde.evidence.walks import Walks
from golde.evidence.weights import learn

__all__ = ["Evidence", "Walks", "learn"]
