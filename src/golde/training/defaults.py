"""Settings a person did not choose, chosen from the size of the graph."""

from __future__ import annotations

import math

from golde.config import Config
from golde.data.graph import KnowledgeGraph


def resolve(config: Config, graph: KnowledgeGraph) -> Config:
    """The configuration with every open setting filled in."""
    facts, entities = 2 * len(graph.train), len(graph.entities)
    training = config.training
    batch = training.batch_size or min(1024 if facts < 200_000 else 2048, facts)
    steps = training.steps or _steps(facts, batch)
    negatives = training.negatives
    if negatives is None:
        negatives = 0 if entities <= 512 else 512
    validate = training.validate_every
    if validate is None:
        validate = max(1, steps // 10)
    return config.with_values(
        model={"signature": config.model.signature or "P8x8 Q9x8"},
        training={
            "batch_size": batch,
            "steps": steps,
            "negatives": negatives,
            "validate_every": validate,
            "learning_rate": training.learning_rate or _learning_rate(steps),
        },
    )


def _steps(facts: int, batch: int) -> int:
    """About 100 passes over a small graph, fewer over a large one."""
    passes = min(100.0, max(10.0, 6e6 / max(1, facts)))
    return max(300, round(passes * facts / batch))


def _learning_rate(steps: int) -> float:
    """0.01 for the few hundred steps of a small graph, less the longer training goes on."""
    return round(0.01 * min(1.0, math.pow(400 / steps, 2 / 3)), 5)
