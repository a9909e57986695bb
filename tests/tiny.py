"""A graph and settings so small that a run takes a fraction of a second."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from golde.config import Config
from golde.data.graph import KnowledgeGraph


@cache
def ring() -> KnowledgeGraph:
    """Twenty places in a ring with a next and a back; some facts of each are held out."""
    steps = [(f"e{i}", "next", f"e{(i + 1) % 20}") for i in range(20)]
    backs = [(tail, "back", head) for head, _, tail in steps]
    return KnowledgeGraph.from_triples(
        [*steps[4:], *backs[:16]],
        valid=[*steps[:2], *backs[16:18]],
        test=[*steps[2:4], *backs[18:]],
        name="ring",
    )


def quick(model: dict[str, Any] | None = None, **training: Any) -> Config:
    """Settings for ``ring``: twelve steps, validated after 4, 8 and 12, logged after 5 and 10 too."""
    values: dict[str, Any] = {
        "steps": 12,
        "batch_size": 10,
        "negatives": 6,
        "validate_every": 4,
        "log_every": 5,
        "learning_rate": 0.02,
    }
    return Config().with_values(
        model={"signature": "P3x2 Q4x2"} | (model or {}), training=values | training
    )


def left_by_a_kill(path: Path) -> Path:
    """What is beside a file if the process that wrote its next content was killed."""
    room = path.with_name(f"{path.name}.k1ll3d_0.partial")
    room.mkdir()
    for name in (path.name, ".tmpUKhjfr", "lock"):  # the second as safetensors names it
        (room / name).write_bytes(b"half")
    return room
