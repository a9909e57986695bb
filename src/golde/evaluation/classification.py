"""Telling facts from false claims, yes or no."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from golde.evaluation.calibration import Labels


@dataclass(frozen=True)
class Classification:
    """How often a yes or no was right."""

    accuracy: float
    precision: float  # of what was taken for true
    recall: float  # of what is true
    f1: float

    def as_dict(self) -> dict[str, float]:
        """Plain values, ready for JSON."""
        return asdict(self)


def classification(taken: Labels, labels: Labels) -> Classification:
    """Accuracy, precision, recall and F1 of what was taken for true; a ratio of nothing is 0."""
    right, said, true = int((taken & labels).sum()), int(taken.sum()), int(labels.sum())
    return Classification(
        accuracy=float((taken == labels).mean()),
        precision=right / said if said else 0.0,
        recall=right / true if true else 0.0,
        f1=2 * right / (said + true) if said + true else 0.0,
    )
