"""GoldE as a ``KGEModel`` of PyTorch Geometric. Needs the extra ``pyg``.

It trains with PyTorch Geometric's loader and an optimiser of one's own, and has its ``test``. The class is
made when first asked for, so that this module imports without PyTorch Geometric.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor

from golde.errors import MissingExtraError
from golde.interop.space import build_golde, start_again
from golde.models import GoldE
from golde.training.losses import Negatives, adversarial_loss

DOC = """GoldE with a signature such as ``P4x4 Q5x4``; ``settings`` are others of ``[model]``.

``negatives`` entities are drawn for a batch. ``golde`` holds the parameters."""


def __getattr__(name: str) -> Any:
    if name == "GoldEModel":
        return _model_class()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Scores:
    """What PyTorch Geometric asks of a model, answered by ``golde``."""

    golde: GoldE
    num_nodes: int
    num_relations: int
    negatives: int
    temperature: float

    def reset_parameters(self) -> None:
        """Start anew, from torch's own random numbers."""
        start_again(self.golde)

    def forward(self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor) -> Tensor:
        """The score of each fact, (B,)."""
        return self.golde.score_pairs(head_index, rel_type, tail_index)

    def loss(self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor) -> Tensor:
        """Eq. 16 (self-adversarial) of both ends of each fact, against entities drawn for the batch."""
        entity, answer = torch.cat([head_index, tail_index]), torch.cat([tail_index, head_index])
        direction = torch.cat([rel_type, rel_type + self.num_relations])
        drawn = torch.randint(self.num_nodes, (self.negatives,), device=entity.device)
        masked = drawn == answer.unsqueeze(1)  # (2B, N)
        negative = self.golde.score(entity, direction, drawn)
        positive = self.golde.score_pairs(entity, direction, answer)
        return adversarial_loss(
            positive,
            Negatives(negative, masked, None, torch.zeros_like(masked[:, 0])),
            torch.full_like(positive, 1 / len(positive)),
            margin=self.golde.margin,
            temperature=self.temperature,
        )


@cache
def _model_class() -> Any:
    try:
        from torch_geometric.nn.kge import KGEModel
    except ImportError:
        raise MissingExtraError("GoldE in PyTorch Geometric", "pyg") from None

    def __init__(
        self: Any,
        num_nodes: int,
        num_relations: int,
        signature: str,
        *,
        negatives: int = 256,
        temperature: float = 1.0,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        golde = build_golde(signature, settings, num_nodes, num_relations)
        KGEModel.__init__(self, num_nodes, num_relations, golde.signature.numbers)
        self.golde, self.negatives, self.temperature = golde, negatives, temperature
        self.node_emb.weight = golde.entity  # one table under both names
        del self.rel_emb  # a relation is a map, not a vector

    return type(
        "GoldEModel",
        (_Scores, KGEModel),
        {
            "__doc__": DOC,
            "__module__": __name__,
            "__init__": __init__,
        },
    )
