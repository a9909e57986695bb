"""DistMult (Yang et al., 2015): ``s(h, r, t) = Σ_i h_i r_i t_i``."""

from __future__ import annotations

from torch import Tensor

from golde.models.vectors import InnerProduct


class DistMult(InnerProduct):
    """A diagonal matrix for each direction; with one for both, heads and tails can change places."""

    @staticmethod
    def moved(rows: Tensor, relation: Tensor) -> Tensor:
        """``h ∘ r``."""
        return rows * relation

    @staticmethod
    def inverse(relation: Tensor) -> Tensor:
        """The same diagonal: ``⟨h ∘ r, t⟩ = ⟨t ∘ r, h⟩``."""
        return relation
