"""One small model that has learned symmetry, implication, inversion and composition."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from golde.api import train
from golde.config import Config
from golde.data import synthetic
from golde.inference import Run


@cache
def planted() -> Run:
    """Trained once, in seconds."""
    config = Config().with_values(
        model={"signature": "P4x2 Q5x2"},
        training={
            "steps": 300,
            "batch_size": 256,
            "negatives": 64,
            "learning_rate": 0.05,
            "validate_every": 300,
        },
    )
    with TemporaryDirectory() as folder:
        return train(synthetic.mixture(copies=12), Path(folder, "run"), config, device="cpu")
