"""What a geometry is: this much and no more."""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor

from golde.geometry.grouping import Grouping
from golde.kernels import Core, Finish


class Geometry(Protocol):
    """One group of ``count`` equal components of dimension ``dimension``.

    ``maps`` returns a named tuple of tensors whose first axis is the relation; ``groups`` tells
    ``query`` which of them each head goes through.
    """

    letter: str
    word: str
    unstored: int
    dimension: int
    count: int
    numbers: int
    finish: Finish

    def maps(self, relation: Tensor | None) -> Any:
        """Constrained parameters and matrices of each relation, ``None`` for all."""

    def inverse(self, maps: Any) -> Any:
        """The inverse maps, in the same form."""

    def query(self, head: Tensor, maps: Any, groups: Grouping) -> Core:
        """The transformed heads (B, M, K) as the query side of the distance."""

    def transport(self, head: Tensor, maps: Any, groups: Grouping) -> Tensor:
        """The transformed heads (B, M, K) in the coordinates that entities are stored in."""

    def candidate(self, entity: Tensor) -> Core:
        """Entities (N, M, K) as the candidate side; free of the relation."""
