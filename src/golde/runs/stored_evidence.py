"""The file of a run that holds evidence, checked as it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError, RunError
from golde.evidence import Evidence
from golde.runs.atomic import read_tensors, write_tensors

_GATHERED: dict[str, type] = {
    **dict.fromkeys(("hops", "bodies", "asked"), int),
    **dict.fromkeys(("scale", "lift", "joined", "unmentioned"), float),
    "validation": dict,
}
_JUDGED: dict[str, type] = {"before": float, "after": float, "facts": int}
"""What readers ask about how it was gathered."""


class StoredEvidence(NamedTuple):
    """Weights as tensors, and how they were gathered."""

    path: Path
    tensors: dict[str, Tensor]
    gathered: dict[str, Any]

    @classmethod
    def read(cls, path: Path, *, model: str) -> Self:
        """From a file that was written for the model with this digest."""
        tensors, about = read_tensors(path, fix=_fix(path))
        if about.get("model") != model:
            raise RunError(
                f"{path}: was gathered for other parameters than the run has now; {_fix(path)}"
            )
        gathered: Any = about.get("gathered")
        if isinstance(gathered, dict):
            gathered.setdefault("unmentioned", 0.0)  # stored before such answers counted
        if not _has(gathered, _GATHERED) or not _has(gathered["validation"], _JUDGED):
            raise RunError(f"{path}: its metadata is damaged; {_fix(path)}")
        return cls(path, tensors, gathered)

    def write(self, *, model: str) -> None:
        """For the model with this digest."""
        write_tensors(self.path, self.tensors, {"model": model, "gathered": self.gathered})

    def over(self, graph: KnowledgeGraph, device: torch.device | str) -> Evidence:
        """The evidence on a device, with walks over the training facts of a graph."""
        sizes = len(graph.entities), len(graph.relations)
        try:
            return Evidence.from_tensors(self.tensors, graph.train.to(device), *sizes)
        except GoldeError as error:
            raise RunError(f"{self.path}: {error}; {_fix(self.path)}") from None


def _fix(path: Path) -> str:
    return f"remove it, or gather it again with 'golde evidence {path.parent}'"


def _has(part: Any, wanted: dict[str, type]) -> bool:
    return isinstance(part, dict) and all(type(part.get(k)) is kind for k, kind in wanted.items())
