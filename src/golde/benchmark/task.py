"""What every form of a step is given: the same graph, the same draws, the same first parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import torch

from golde.benchmark.size import Size
from golde.config import Config
from golde.data.graph import KnowledgeGraph
from golde.data.synthetic import random_graph
from golde.kernels.triton import has_triton
from golde.models import GoldE
from golde.training.memory import refuse_oversize
from golde.training.sampling import Sampler
from golde.training.update import Update

SEED = 0
MARGIN = 6.0
RATE = 1e-3
"""Of learning, in every step."""


@dataclass(frozen=True)
class Task:
    """A step of training at one size, on a random graph."""

    size: Size
    device: torch.device
    settings: tuple[str, ...] = ()  # further ``section.key=value``

    @cached_property
    def config(self) -> Config:
        usual = (f"model.signature={self.size.signature}", f"model.margin={MARGIN}")
        return Config.load(overrides=[*usual, *self.settings])

    @property
    def graph(self) -> KnowledgeGraph:
        return _graph(self.size.entities, self.size.relations, self.size.facts)

    @cached_property
    def _samplers(self) -> dict[bool, Sampler]:
        """By whether they draw by kernels, which is settled when they are made."""
        return {}

    def sampler(self) -> Sampler:
        """Shared by forms: what it draws depends on the step alone."""
        size, kept, fused = self.size, self._samplers, has_triton()
        if fused not in kept:
            kept[fused] = Sampler(
                self.graph.train,
                size.entities,
                size.relations,
                batch_size=size.batch,
                negatives=size.negatives,
                answers=self.config.training.answers_as_negatives,
                subsampling=True,
                seed=SEED,
                device=self.device,
            )
            kept[fused].fixed_size = True  # on a CPU, too: a step is so many pairs
        return kept[fused]

    def model(self) -> GoldE:
        """A new model, always with the same parameters."""
        size = self.size
        refuse_oversize(self.config, size.entities, size.relations, self.device)
        return GoldE(self.config.model, size.entities, size.relations, seed=SEED).to(self.device)

    def update(self, model: GoldE, *, capture: bool) -> Update:
        update = Update(model, self.sampler(), self.config.training, capture=capture)
        update.rehearse()
        return update

    def at(self, size: Size) -> Task:
        """The same at another size."""
        return replace(self, size=size)


@lru_cache(maxsize=1)  # most tasks that follow one another differ in something else
def _graph(entities: int, relations: int, facts: int) -> KnowledgeGraph:
    return random_graph(entities, relations, facts, held_out=0.0, seed=SEED)
