"""Groups of components as the kernels of a step know them."""

from __future__ import annotations

from typing import NamedTuple

from golde.kernels.triton.blocks import WHOLE

KINDS = {"E": 0, "P": 1, "Q": 2}
"""The geometries that the kernels know, by their letters."""


class Group(NamedTuple):
    """M equal components of K numbers; ``weight`` is what their distances count in the sum."""

    letter: str
    M: int
    K: int
    weight: float

    @property
    def core(self) -> int:
        """Numbers of a core vector."""
        return {"E": self.K + 2, "P": 2 * self.K + 1, "Q": self.K + 1}[self.letter]

    @property
    def known(self) -> bool:
        """Whether the kernels can take it on."""
        return self.letter in KINDS and self.core <= WHOLE
