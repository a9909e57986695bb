"""Baselines whose relations are vectors as long as an entity's row."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from golde.config import ModelConfig
from golde.errors import ConfigError
from golde.geometry import gather
from golde.models.contract import Model


class VectorModel(Model):
    """A query is its entity moved by the vector of its direction; a candidate is its row."""

    def __init__(
        self,
        config: ModelConfig,
        entities: int,
        relations: int,
        *,
        seed: int = 0,
        rows: range | None = None,
    ) -> None:
        if config.numbers is None:
            raise ConfigError(
                f"model.numbers is not set, and model.kind = {config.kind!r} needs it; give one, such as 128"
            )
        generator = torch.Generator().manual_seed(seed)
        scale = config.init_scale or self.initial_scale(config, config.numbers)
        super().__init__(
            config,
            entities,
            relations,
            numbers=config.numbers,
            scale=scale,
            generator=generator,
            rows=rows,
        )
        vectors = 2 * relations if config.reciprocal else relations
        self.relation = nn.Parameter(
            torch.empty(vectors, config.numbers).uniform_(-scale, scale, generator=generator)
        )

    @classmethod
    @abstractmethod
    def initial_scale(cls, config: ModelConfig, numbers: int) -> float:
        """Half-width of the uniform start."""

    @staticmethod
    @abstractmethod
    def moved(rows: Tensor, relation: Tensor) -> Tensor:
        """What a relation makes of its head, (B, numbers) all three."""

    @staticmethod
    @abstractmethod
    def inverse(relation: Tensor) -> Tensor:
        """The relation that asks for heads with the same score, (B, numbers)."""

    def queries(self, rows: Tensor, direction: Tensor) -> Tensor:
        """The moved entities, (B, numbers)."""
        return self.moved(rows, self.relation_rows(direction))

    def transport(self, rows: Tensor, direction: Tensor) -> Tensor:
        """The moved entities: at distance 0, or of the highest inner product for their length."""
        return self.queries(rows, direction)

    def candidates(self, rows: Tensor) -> Tensor:
        """The rows themselves."""
        return rows

    def relation_rows(self, direction: Tensor) -> Tensor:
        """The vector of each direction (B,), inverted where it asks for heads by the forward one."""
        if self.config.reciprocal:
            return gather(self.relation, direction)
        forward = gather(self.relation, direction % self.relations)
        asks_heads = (direction >= self.relations).unsqueeze(1)
        return torch.where(asks_heads, self.inverse(forward), forward)


class InnerProduct(VectorModel):
    """``s = ⟨moved head, tail⟩``: all pairs are one matrix product."""

    default_margin: ClassVar[float] = 0.0  # scores have either sign already

    @classmethod
    def initial_scale(cls, config: ModelConfig, numbers: int) -> float:
        return 0.1

    @staticmethod
    def magnitudes(rows: Tensor) -> Tensor:
        """The absolute value of each coordinate."""
        return rows.abs()

    def penalised(self, rows: Tensor, direction: Tensor) -> Tensor:
        """The magnitudes of all three factors: what entities may not grow by, relations should not."""
        return self.magnitudes(torch.cat((rows, self.relation_rows(direction))))

    def _score_all(self, queries: Tensor, candidates: Tensor) -> Tensor:
        with torch.autocast(queries.device.type, enabled=False):  # products keep their precision
            return queries @ candidates.T

    def _score_own(self, queries: Tensor, candidates: Tensor) -> Tensor:
        return (queries * candidates).sum(-1)
