"""What a geometry is: this much and no more."""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor

from golde.kernels import Core, Finish


class Geometry(Protocol):
    """One group of ``count`` equal components of dimension ``dimension``.

    ``maps`` returns a named tuple of tensors whose first axis is the relation; the model gathers it
    per query before it calls ``query``.
    """

    letter: str
    unstored: int
    dimension: int
    count: int
    numbers: int
    finish: Finish

    def maps(self, relation: Tensor) -> Any:
        """Constrained parameters and matrices of each relation."""

    def inverse(self, maps: Any) -> Any:
        """The inverse maps, in the same form."""

    def query(self, head: Tensor, maps: Any) -> Core:
        """The transformed heads (B, M, K) as the query side of the distance."""

    def candidate(self, entity: Tensor) -> Core:
        """Entities (N, M, K) as the candidate side; free of the relation."""
