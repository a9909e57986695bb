"""ComplEx (Trouillon et al., 2016): ``s(h, r, t) = Re Σ_i h_i r_i t̄_i`` over complex coordinates."""

from __future__ import annotations

import torch
from torch import Tensor

from golde.config import ModelConfig
from golde.errors import ConfigError
from golde.models.vectors import InnerProduct


class ComplEx(InnerProduct):
    """Rows hold all real parts, then all imaginary ones, so that ``Re ⟨x, t̄⟩`` is their inner product."""

    def __init__(
        self,
        config: ModelConfig,
        entities: int,
        relations: int,
        *,
        seed: int = 0,
        rows: range | None = None,
    ) -> None:
        if config.numbers is not None and config.numbers % 2:
            raise ConfigError(
                f"model.numbers = {config.numbers} is odd, and a complex coordinate is two numbers; "
                f"use {config.numbers + 1}"
            )
        super().__init__(config, entities, relations, seed=seed, rows=rows)

    @staticmethod
    def moved(rows: Tensor, relation: Tensor) -> Tensor:
        """``h ∘ r``."""
        (a, b), (c, d) = rows.chunk(2, -1), relation.chunk(2, -1)
        return torch.cat((a * c - b * d, a * d + b * c), -1)

    @staticmethod
    def inverse(relation: Tensor) -> Tensor:
        """The conjugate: ``Re ⟨h ∘ r, t̄⟩ = Re ⟨t ∘ r̄, h̄⟩``."""
        real, imaginary = relation.chunk(2, -1)
        return torch.cat((real, -imaginary), -1)

    @staticmethod
    def magnitudes(rows: Tensor) -> Tensor:
        """The modulus of each complex coordinate."""
        moduli: Tensor = torch.linalg.vector_norm(torch.stack(rows.chunk(2, -1)), dim=0)
        return moduli
