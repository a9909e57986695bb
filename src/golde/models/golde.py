"""The GoldE model: an entity table, relation maps, and a product of curved components."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from golde.config import ModelConfig
from golde.errors import ConfigError
from golde.geometry import (
    GEOMETRIES,
    Geometry,
    Grouping,
    Hyperbolic,
    Signature,
    present,
)
from golde.kernels import Core, Finish, paired, pairwise
from golde.kernels.triton.groups import Group
from golde.kernels.triton.support import supports
from golde.models.contract import Model

if TYPE_CHECKING:
    from golde.kernels.triton.ranks import Biases

Distance = Callable[[Core, Core, Finish, int], Tensor]


class GoldE(Model):
    """Scores facts by ``s(h, r, t) = −Σ_i w_i · d_i(G_r e_h, e_t)^l`` over the components (Eq. 15).

    Queries and directions are those of ``Model``; without ``reciprocal`` it is the paper's model.
    """

    def __init__(
        self,
        config: ModelConfig,
        entities: int,
        relations: int,
        *,
        seed: int = 0,
        rows: range | None = None,
    ) -> None:
        signature = Signature.parse(config.signature or "")
        _refuse_idle_settings(config, signature)
        generator = torch.Generator().manual_seed(seed)
        maps = 2 * relations if config.reciprocal else relations
        scale = config.init_scale or initial_scale(signature, self.margin_of(config))
        super().__init__(
            config,
            entities,
            relations,
            numbers=signature.numbers,
            scale=scale,
            generator=generator,
            rows=rows,
        )
        self.signature = signature
        self.groups = nn.ModuleList()
        for term in self.signature:
            options: dict[str, Any] = {"reflections": config.reflections, "block": config.block}
            kind = GEOMETRIES[term.letter]
            if kind is Hyperbolic:
                options["boost_left"] = config.boost_left
            self.groups.append(
                kind(term.dimension, term.count, maps, scale=scale, generator=generator, **options)
            )
        self.weights = [config.weights.get(term.letter, 1.0) for term in self.signature]

    @property
    def geometries(self) -> list[Geometry]:
        """The component groups, in the order of the signature."""
        return cast(list[Geometry], list(self.groups))

    def queries(self, rows: Tensor, direction: Tensor) -> list[Core]:
        """The transformed query in every group; rows (B, numbers) of the entities asked about.

        One map is built per direction and applied to all its queries.
        """
        directions, which = present(direction, 2 * self.relations)
        count = 2 * self.relations if directions is None else len(directions)
        sizes = {group.numbers for group in self.geometries}
        tiles = {size: Grouping(which, count, size) for size in sizes}
        cores = []
        with torch.autocast(rows.device.type, enabled=False):  # maps keep their precision
            for group, head in zip(self.geometries, self._split(rows), strict=True):
                maps = self._directed_maps(group, directions)
                cores.append(group.query(head, maps, tiles[group.numbers]))
        return cores

    def transport(self, rows: Tensor, direction: Tensor) -> Tensor:
        """``log ∘ G_d ∘ exp`` of rows in every component: the entity at distance 0 from each query."""
        directions, which = torch.unique(direction, return_inverse=True)
        moved = []
        with torch.autocast(rows.device.type, enabled=False):
            for group, head in zip(self.geometries, self._split(rows), strict=True):
                tiles = Grouping(which, len(directions), group.numbers)
                maps = self._directed_maps(group, directions)
                moved.append(group.transport(head, maps, tiles).flatten(1))
        return torch.cat(moved, 1)

    def candidates(self, rows: Tensor) -> list[Core]:
        """The candidate side of every group, rows (N, numbers); it does not depend on the relation."""
        return [
            group.candidate(part)
            for group, part in zip(self.geometries, self._split(rows), strict=True)
        ]

    def scorer(self) -> Callable[[Tensor, Tensor, int, int], Tensor]:
        """On a GPU the scorer can also ``count`` and find the ``top`` by itself, in fused kernels.

        See ``golde.kernels.triton.ranks``; not with many groups, nor beside evidence.
        """
        score = super().scorer()
        if self.evidence is not None:
            return score
        table, finishes = self.entity, [group.finish for group in self.geometries]
        if not all(supports(f, table.dtype, self.device) for f in finishes):
            return score
        from golde.kernels.triton.ranks import MOST_GROUPS, FusedScorer

        if len(finishes) > MOST_GROUPS:
            return score
        biases = self._biases if self.config.bias or self.config.loop_bias else None
        return FusedScorer(
            score, table, self.queries, self.candidates, self.weights, self.config.norm, biases
        )

    def tensors(self) -> dict[str, Tensor]:
        """The entity table, biases, and the maps of all relations with their constraints applied."""
        found = {name: p.detach() for name, p in self.named_parameters(recurse=False)}
        directions = torch.arange(
            self.relations * (2 if self.config.reciprocal else 1), device=self.device
        )
        for i, group in enumerate(self.geometries):
            maps = group.maps(directions)
            found |= {f"relation.{i}.{name}": value for name, value in maps._asdict().items()}
        return found

    @property
    def _fused_groups(self) -> list[Group]:
        """The component groups as the kernels of a step see them."""
        return [
            Group(term.letter, term.count, term.numbers, weight)
            for term, weight in zip(self.signature, self.weights, strict=True)
        ]

    def _score_rows(
        self, rows: Tensor, direction: Tensor, own: bool
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        if all(
            fused.known and supports(group.finish, rows.dtype, rows.device)
            for fused, group in zip(self._fused_groups, self.geometries, strict=True)
        ):
            return self._fused_scores(rows, direction, own)
        return super()._score_rows(rows, direction, own)

    def _fused_scores(
        self, rows: Tensor, direction: Tensor, own: bool
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """The same by kernels."""
        from golde.kernels.triton.batch import fused_batch

        directions, which = present(direction, 2 * self.relations)
        with torch.autocast(rows.device.type, enabled=False):
            maps = [self._directed_maps(group, directions) for group in self.geometries]
            return fused_batch(
                rows, which, self._fused_groups, maps, norm=self.config.norm, own=own
            )

    def _total(self, distance: Distance, queries: list[Core], candidates: list[Core]) -> Tensor:
        """``−Σ w d^l`` over the groups, without biases."""
        total = torch.zeros((), dtype=self.entity.dtype, device=self.device)
        for group, weight, q, c in zip(
            self.geometries, self.weights, queries, candidates, strict=True
        ):
            total = total - weight * distance(q, c, group.finish, self.config.norm)
        return total

    def _score_all(self, queries: list[Core], candidates: list[Core]) -> Tensor:
        """Every query with every candidate, (B, N)."""
        return self._total(partial(pairwise, compiled=self.compiled), queries, candidates)

    def _score_own(self, queries: list[Core], candidates: list[Core]) -> Tensor:
        """Query b with candidate b alone, (B,)."""
        return self._total(paired, queries, candidates)

    def _biases(self, entity: Tensor, direction: Tensor) -> Biases:
        """``_bias`` of queries and all entities apart, and of loops, as kernels that rank take them."""
        from golde.kernels.triton.ranks import Biases

        turned = direction >= self.relations
        if self.config.reciprocal:
            turned = torch.zeros_like(turned)
        push = loop = torch.zeros(len(entity), device=self.device)
        pull = None
        if self.config.bias:
            both = torch.stack((self.query_bias, self.answer_bias))
            push, pull = both[turned.long(), entity], both.flip(0)
        if self.config.loop_bias:
            loop = self._looping(direction)
        return Biases(push, turned, entity, loop, pull)

    def _directed_maps(self, group: Geometry, directions: Tensor | None) -> Any:
        """The maps of some directions, or of all."""
        if self.config.reciprocal:
            return group.maps(directions)
        if directions is None:
            forward = group.maps(None)
            both = zip(forward, group.inverse(forward), strict=True)
            return type(forward)(*(torch.cat(pair) for pair in both))
        forward = group.maps(directions % self.relations)
        backward = group.inverse(forward)
        asks_heads = directions >= self.relations
        return type(forward)(
            *(
                torch.where(asks_heads.view(-1, *[1] * (f.dim() - 1)), b, f)
                for f, b in zip(forward, backward, strict=True)
            )
        )

    def _split(self, rows: Tensor) -> list[Tensor]:
        """An entity's row as one (…, M, K) view per group."""
        sizes = [term.count * term.numbers for term in self.signature]
        return [
            part.unflatten(-1, (term.count, term.numbers))
            for part, term in zip(rows.split(sizes, -1), self.signature, strict=True)
        ]


def _refuse_idle_settings(config: ModelConfig, signature: Signature) -> None:
    """Settings of geometries that the signature lacks would change nothing."""
    letters = {term.letter for term in signature}
    if unused := sorted(set(config.weights) - letters):
        raise ConfigError(
            f"model.weights: {', '.join(unused)} is not in the signature {str(signature)!r}; "
            "weigh the letters that are"
        )
    if config.boost_left and Hyperbolic.letter not in letters:
        raise ConfigError(
            "model.boost_left does nothing without a hyperbolic component, and the signature "
            f"{str(signature)!r} has none; leave it out, or add components such as Q9x8"
        )


def initial_scale(signature: Signature, margin: float) -> float:
    """Half-width of the uniform start: the first distances add up to about the margin.

    With few components that would start far out, where distances are flat, so it is 0.1 at most there.
    """
    spread = sum(term.count * math.sqrt(term.numbers) for term in signature)
    scale = (margin + 2.0) / spread
    return min(scale, 0.1) if signature.components < 8 else scale
