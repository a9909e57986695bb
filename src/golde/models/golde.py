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
    ScaledHyperbolic,
    Signature,
    gather,
    present,
)
from golde.kernels import Core, Finish, paired, pairwise
from golde.kernels.triton.groups import Group
from golde.kernels.triton.support import supports

if TYPE_CHECKING:
    from golde.kernels.triton.ranks import Biases

DEFAULT_MARGIN = 6.0
"""The margin of a model that was built without one."""

Distance = Callable[[Core, Core, Finish, int], Tensor]


class GoldE(nn.Module):
    """Scores facts by ``s(h, r, t) = −Σ_i w_i · d_i(G_r e_h, e_t)^l`` over the components (Eq. 15).

    A query is an entity and a *direction* ``d`` in [0, 2R): below R it asks for the tails of relation
    d, from R on for the heads of relation d − R. With ``reciprocal`` every direction has parameters of
    its own; without, head queries go through the inverse map with the same parameters, and both
    directions give one score (the paper's model).
    """

    def __init__(
        self, config: ModelConfig, entities: int, relations: int, *, seed: int = 0
    ) -> None:
        super().__init__()
        self.config, self.relations = config, relations
        self.margin = DEFAULT_MARGIN if config.margin is None else config.margin
        self.compiled = False  # the pointwise work of scoring; set by who knows that it pays
        self.signature = Signature.parse(config.signature or "")
        _refuse_idle_settings(config, self.signature)
        generator = torch.Generator().manual_seed(seed)
        rows = 2 * relations if config.reciprocal else relations
        scale = config.init_scale or initial_scale(self.signature, self.margin)
        self.entity = nn.Parameter(
            torch.empty(entities, self.signature.numbers).uniform_(
                -scale, scale, generator=generator
            )
        )
        self.groups = nn.ModuleList()
        for term in self.signature:
            options: dict[str, Any] = {"reflections": config.reflections, "block": config.block}
            kind = GEOMETRIES[term.letter]
            if kind is Hyperbolic:
                options["boost_left"] = config.boost_left
                kind = ScaledHyperbolic if config.curvature == "scale" else Hyperbolic
            self.groups.append(
                kind(term.dimension, term.count, rows, scale=scale, generator=generator, **options)
            )
        self.weights = [config.weights.get(term.letter, 1.0) for term in self.signature]
        if config.bias:
            self.query_bias = nn.Parameter(torch.zeros(entities))
            self.answer_bias = nn.Parameter(torch.zeros(entities))

    @property
    def geometries(self) -> list[Geometry]:
        """The component groups, in the order of the signature."""
        return cast(list[Geometry], list(self.groups))

    @property
    def entities(self) -> int:
        return self.entity.shape[0]

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

    def candidates(self, rows: Tensor) -> list[Core]:
        """The candidate side of every group, rows (N, numbers); it does not depend on the relation."""
        return [
            group.candidate(part)
            for group, part in zip(self.geometries, self._split(rows), strict=True)
        ]

    def score(self, entity: Tensor, direction: Tensor, candidates: Tensor | None = None) -> Tensor:
        """Scores of every candidate (all entities when none are given) for every query, (B, N)."""
        rows = self.entity if candidates is None else gather(self.entity, candidates)
        return self._score_against(entity, direction, candidates, self.candidates(rows))

    def scorer(self) -> Callable[[Tensor, Tensor, int, int], Tensor]:
        """Scores against candidates ``start..stop``, as ranking asks for them.

        What does not depend on the query is kept from call to call while the range stays the same,
        so the parameters must not change in between. On a GPU the scorer can also ``count`` and find the
        ``top`` by itself (``golde.kernels.triton.ranks``), but for many groups.
        """
        kept: dict[tuple[int, int], list[Core]] = {}

        def score(entity: Tensor, direction: Tensor, start: int, stop: int) -> Tensor:
            if (start, stop) not in kept:
                kept.clear()
                kept[start, stop] = self.candidates(self.entity[start:stop])
            candidates = torch.arange(start, stop, device=entity.device)
            return self._score_against(entity, direction, candidates, kept[start, stop])

        table, finishes = self.entity, [group.finish for group in self.geometries]
        if not all(supports(f, table.dtype, table.device) for f in finishes):
            return score
        from golde.kernels.triton.ranks import MOST_GROUPS, FusedScorer

        if len(finishes) > MOST_GROUPS:
            return score
        biases = self._biases if self.config.bias else None
        return FusedScorer(
            score, table, self.queries, self.candidates, self.weights, self.config.norm, biases
        )

    def score_pairs(self, entity: Tensor, direction: Tensor, answer: Tensor) -> Tensor:
        """The score of one answer per query, (B,)."""
        queries = self.queries(gather(self.entity, entity), direction)
        scores = self._score_own(queries, self.candidates(gather(self.entity, answer)))
        if self.config.bias:
            scores = scores + self._bias(entity, direction, answer)
        return scores

    def score_batch(
        self,
        rows: Tensor,
        entity: Tensor,
        direction: Tensor,
        answer: Tensor,
        candidates: Tensor,
        *,
        own: bool,
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """Scores of answers (B,), if asked for of the queries' own entities (B,), of candidates (B, N).

        ``rows`` (2B + N, numbers) are those of the entities, the answers and the candidates, gathered
        by the caller at once: every gather from the table has a gradient as large as the table.
        """
        if all(
            fused.known and supports(group.finish, rows.dtype, rows.device)
            for fused, group in zip(self._fused_groups, self.geometries, strict=True)
        ):
            positive, loops, shared = self._fused_scores(rows, direction, own)
        else:
            heads, others, shared_rows = rows.split([len(entity), len(answer), len(candidates)])
            queries = self.queries(heads, direction)
            positive = self._score_own(queries, self.candidates(others))
            loops = self._score_own(queries, self.candidates(heads)) if own else None
            shared = self._score_all(queries, self.candidates(shared_rows))
        if self.config.bias:
            positive = positive + self._bias(entity, direction, answer)
            loops = None if loops is None else loops + self._bias(entity, direction, entity)
            shared = shared + self._bias(entity.unsqueeze(1), direction.unsqueeze(1), candidates)
        return positive, loops, shared

    def score_triples(self, triples: Tensor) -> Tensor:
        """The score of each (head, relation, tail), in the forward direction, (n,)."""
        head, relation, tail = triples.unbind(1)
        return self.score_pairs(head, relation, tail)

    @property
    def _fused_groups(self) -> list[Group]:
        """The component groups as the kernels of a step see them."""
        return [
            Group(term.letter, term.count, term.numbers, weight)
            for term, weight in zip(self.signature, self.weights, strict=True)
        ]

    def _fused_scores(
        self, rows: Tensor, direction: Tensor, own: bool
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """``score_batch`` by kernels, without biases."""
        from golde.kernels.triton.batch import fused_batch

        directions, which = present(direction, 2 * self.relations)
        with torch.autocast(rows.device.type, enabled=False):
            maps = [self._directed_maps(group, directions) for group in self.geometries]
            return fused_batch(
                rows, which, self._fused_groups, maps, norm=self.config.norm, own=own
            )

    def _total(self, distance: Distance, queries: list[Core], candidates: list[Core]) -> Tensor:
        """``−Σ w d^l`` over the groups, without biases."""
        total = torch.zeros((), dtype=self.entity.dtype, device=self.entity.device)
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

    def _score_against(
        self, entity: Tensor, direction: Tensor, candidates: Tensor | None, cores: list[Core]
    ) -> Tensor:
        scores = self._score_all(self.queries(gather(self.entity, entity), direction), cores)
        if self.config.bias:
            if candidates is None:
                candidates = torch.arange(self.entities, device=entity.device)
            scores = scores + self._bias(entity.unsqueeze(1), direction.unsqueeze(1), candidates)
        return scores

    def _bias(self, entity: Tensor, direction: Tensor, answer: Tensor) -> Tensor:
        """``b_query + b_answer``; one score for both directions needs ``b_head + b_tail`` instead."""

        def of(bias: Tensor, index: Tensor) -> Tensor:
            return gather(bias.unsqueeze(1), index.flatten()).view(index.shape)

        forward = of(self.query_bias, entity) + of(self.answer_bias, answer)
        if self.config.reciprocal:
            return forward
        backward = of(self.answer_bias, entity) + of(self.query_bias, answer)
        return torch.where(direction < self.relations, forward, backward)

    def _biases(self, entity: Tensor, direction: Tensor) -> Biases:
        """The same of queries and all entities apart, as kernels that rank take them."""
        from golde.kernels.triton.ranks import Biases

        turned = direction >= self.relations
        if self.config.reciprocal:
            turned = torch.zeros_like(turned)
        both = torch.stack((self.query_bias, self.answer_bias))
        return Biases(both[turned.long(), entity], turned, both.flip(0))

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
    hyperbolic = {
        "curvature = 'scale'": config.curvature == "scale",
        "boost_left": config.boost_left,
    }
    for setting, given in hyperbolic.items():
        if given and Hyperbolic.letter not in letters:
            raise ConfigError(
                f"model.{setting} does nothing without a hyperbolic component, and the signature "
                f"{str(signature)!r} has none; leave it out, or add components such as Q9x8"
            )


def initial_scale(signature: Signature, margin: float) -> float:
    """Half-width of the uniform start: the first distances add up to about the margin.

    With few components that would start far out, where distances are flat, so it is 0.1 at most there.
    """
    spread = sum(term.count * math.sqrt(term.numbers) for term in signature)
    scale = (margin + 2.0) / spread
    return min(scale, 0.1) if signature.components < 8 else scale
