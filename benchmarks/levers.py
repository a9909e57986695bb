"""Changes of the model, the loss or the training that are no settings of the package, to be tried beside it.

Each is built around golde's own parts and holds inside ``in_force`` alone. What the kernels of a GPU do not
know takes plain operations, all of which can be captured with their step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, cast
from unittest.mock import patch

import torch
from torch import Tensor
from torch.nn import functional

from golde.config import TrainingConfig
from golde.errors import ConfigError
from golde.geometry import Grouping, Hyperbolic
from golde.geometry.hyperbolic import HyperbolicMap
from golde.kernels import Core, Finish, Geodesic, paired, pairwise
from golde.kernels.finish import DISTANCE_FLOOR
from golde.models import GoldE, Model
from golde.models.kinds import KINDS
from golde.report.variations import UNCHANGED
from golde.training.loop import Training
from golde.training.sampling import Batch, Draw
from golde.training.step import step_loss
from golde.training.update import Update

Loss = Callable[[Any, Tensor, Draw, TrainingConfig], Tensor]

RELATION_PAIRS = 1 << 15
"""Facts × relations of a step that predicts relations: each is a row of numbers that is moved by a map."""

AVERAGED_EVERY = 10
"""Steps between those that an average sees: before each the whole table is brought up to date."""

BLOCK_ELEMENTS = 1 << 24
"""Pairs × components of another distance at a time."""


# Dropout of whole components.


class ComponentDropout(GoldE):
    """A step scores by some components of each geometry, the same for its whole batch; ranking by all.

    Of m components ``m' = (1 − share) m`` are kept, drawn uniformly, so that ``(m / m') Σ_kept d`` is ``Σ d``
    in the mean.
    """

    def __init__(self, *given: Any, share: float, **named: Any) -> None:
        super().__init__(*given, **named)
        self.share = share
        self.kept: list[Tensor] | None = None

    def score_batch(
        self, rows: Tensor, *given: Any, **named: Any
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        counts = [
            (M, max(1, round((1 - self.share) * M))) for M in (t.count for t in self.signature)
        ]
        whole = self.weights
        self.kept = [torch.rand(M, device=rows.device).argsort()[:few] for M, few in counts]
        self.weights = [w * M / few for w, (M, few) in zip(whole, counts, strict=True)]
        try:
            return super().score_batch(rows, *given, **named)
        finally:
            self.kept, self.weights = None, whole

    def queries(self, rows: Tensor, direction: Tensor) -> list[Core]:
        return self._kept_of(super().queries(rows, direction))

    def candidates(self, rows: Tensor) -> list[Core]:
        return self._kept_of(super().candidates(rows))

    def _kept_of(self, cores: list[Core]) -> list[Core]:
        if self.kept is None:
            return cores
        return [
            Core(vector.index_select(0, kept), tuple(s.index_select(0, kept) for s in scalars))
            for (vector, scalars), kept in zip(cores, self.kept, strict=True)
        ]

    def _score_rows(
        self, rows: Tensor, direction: Tensor, own: bool
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        return Model._score_rows(self, rows, direction, own)  # kernels would take all components


# Terms beside the loss.

Term = Callable[[GoldE, Tensor, Batch], Tensor]


def with_term(term: Term, weight: float) -> Loss:
    """The loss of a step, and a term of its batch with this weight."""

    def loss(model: GoldE, rows: Tensor, draw: Draw, config: TrainingConfig) -> Tensor:
        return step_loss(model, rows, draw, config) + weight * term(model, rows, draw.batch)

    return loss


def relation_loss(model: GoldE, rows: Tensor, batch: Batch) -> Tensor:
    """``Σ_b w_b (log Σ_r' exp s(h, r', t) − s(h, r, t))`` over all relations r' of the side that b asks.

    Of the first facts of a batch, which are in random order; their weights add up to one. Biases of
    entities are the same for every r' and left out.
    """
    B, R = len(batch.entity), model.relations
    few = min(B, max(1, RELATION_PAIRS // R))
    direction, weight = batch.direction[:few], batch.weight[:few]
    right = direction % R
    asked = ((direction - right).unsqueeze(1) + torch.arange(R, device=rows.device)).flatten()

    def with_each(part: Tensor) -> Tensor:
        return part[:few].unsqueeze(1).expand(-1, R, -1).flatten(0, 1)  # (few·R, numbers)

    queries = model.queries(with_each(rows[:B]), asked)
    scores = model._score_own(queries, model.candidates(with_each(rows[B : 2 * B]))).view(few, R)
    if model.config.loop_bias:
        loops = (batch.entity == batch.answer)[:few].unsqueeze(1)
        scores = scores + model._at_loops(loops, model._looping(asked).view(few, R))
    each = functional.cross_entropy(scores, right, reduction="none")
    return (weight * each).sum() / weight.sum()


def distance_penalty(model: GoldE, rows: Tensor, batch: Batch) -> Tensor:
    """``Σ_b w_b Σ_m d_m(G h_b, t_b)²`` of the facts of a batch, whose weights add up to one."""
    B = len(batch.entity)
    queries = model.queries(rows[:B], batch.direction)
    candidates = model.candidates(rows[B : 2 * B])
    sides = zip(model.geometries, queries, candidates, strict=True)
    each = torch.stack([paired(q, c, group.finish, 2) for group, q, c in sides]).sum(0)
    return (batch.weight * each).sum() / batch.weight.sum()


# Weight averaging.


class Averaged(Training):
    """Ends with ``Σ_t δ^(T−t) e_t / Σ_t δ^(T−t)`` in the place of every parameter e, over steps t up to T."""

    def __init__(self, *given: Any, decay: float) -> None:
        super().__init__(*given)
        self.keep = decay**AVERAGED_EVERY
        self.total = {k: torch.zeros_like(p) for k, p in self.model.named_parameters()}
        self.weight = 0.0

    def _step(self, step: int, *, check: bool) -> Tensor:
        loss = super()._step(step, check=check)
        if (self.steps - 1 - step) % AVERAGED_EVERY == 0:  # the last step is one of them
            self._take_in()
        return loss

    @torch.no_grad()
    def _take_in(self) -> None:
        self.update.settle()
        for name, parameter in self.model.named_parameters():
            self.total[name].mul_(self.keep).add_(parameter)
        self.weight = self.keep * self.weight + 1

    def _finish(self) -> None:
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(self.total[name] / self.weight)
        super()._finish()


# One loss after another.


class ThenCrossEntropy(Training):
    """The configured loss, and cross-entropy for the last ``share`` of the steps."""

    def __init__(self, *given: Any, share: float) -> None:
        super().__init__(*given)
        self.turn = round((1 - share) * self.steps)

    def _step(self, step: int, *, check: bool) -> Tensor:
        if step == self.turn:
            self._change_loss()
        return super()._step(step, check=check)

    def _change_loss(self) -> None:
        """Go on from here with other steps, as from a checkpoint: what was captured is the other loss."""
        before = self.update
        assert isinstance(before, Update)
        self.config = self.config.model_copy(update={"loss": "cross-entropy"})
        self.update = self._make_update(before.capture)
        self.update.load(before.state())


# Other distances.

Product = Callable[[Tensor, Tensor], Tensor]


class Arc(NamedTuple):
    """``d = arccos(⟨x,y⟩_p / ‖x‖_p ‖y‖_p)``: the geodesic distance once both are scaled onto ``⟨x,x⟩_p = 1``.

    From the cores of components of ``numbers`` numbers, elliptic ones, [−2p∘x, p, ‖x‖²_p] and [y, y∘y, 1], or
    Euclidean ones, [−2x, 1, ‖x‖²] and [y, ‖y‖², 1].
    """

    numbers: int

    def __call__(self, product: Product, query: Core, candidate: Core) -> Tensor:
        q, c, K = query.vector, candidate.vector, self.numbers
        along = -0.5 * product(q[..., :K], c[..., :K])
        squares = (q[..., -1:] + DISTANCE_FLOOR) * (
            product(q[..., K:-1], c[..., K:-1]) + DISTANCE_FLOOR
        )
        half = 0.5 - 0.5 * along * squares.rsqrt()  # sin²(d/2), whose arcs are exact near 0 and π
        sine, cosine = ((s.clamp_min(0) + DISTANCE_FLOOR).sqrt() for s in (half, 1 - half))
        return 2 * torch.atan2(sine, cosine)


class Lorentzian(NamedTuple):
    """``d² = ⟨x−y, x−y⟩_q = −2β − 2⟨x,y⟩_q = 4βs``, s as in ``golde.kernels.finish.Geodesic``.

    The extrinsic distance of two points of a hyperboloid, or ``squared`` as Law et al. (2019) take it.
    """

    squared: bool

    def __call__(self, product: Product, query: Core, candidate: Core) -> Tensor:
        (root, a), (n,) = query.scalars, candidate.scalars
        b = n / root
        F = -torch.expm1(-b)
        sigma = (F + torch.expm1(-a)).square()
        sigma = sigma + product(query.vector, candidate.vector) * (F * (2 - F) / n)
        square = root.square() * sigma.clamp_min(0) * torch.exp(a + b)
        return square if self.squared else (square + DISTANCE_FLOOR).sqrt()


class UnitGeodesic(NamedTuple):
    """``d = √β · acosh(…)`` at curvature −1: the geodesic distance of the unit hyperboloid, times √β."""

    def __call__(self, product: Product, query: Core, candidate: Core) -> Tensor:
        root, a = query.scalars
        sides = Geodesic().sides((torch.ones_like(root), a), candidate.scalars)
        return root * Geodesic().value(product(query.vector, candidate.vector), *sides)


Other = Arc | Lorentzian | UnitGeodesic


class OtherDistances(GoldE):
    """GoldE with another distance in the components of some letters, made for the numbers they have."""

    def __init__(
        self, *given: Any, distances: Mapping[str, Callable[[int], Other]], **named: Any
    ) -> None:
        super().__init__(*given, **named)
        changed = [group for group in self.geometries if group.letter in distances]
        if not changed:
            raise ConfigError(
                f"the signature {str(self.signature)!r} has no {' or '.join(distances)}: nothing is changed"
            )
        for group in changed:
            # What no kernel knows takes plain operations.
            group.finish = cast(Finish, distances[group.letter](group.numbers))

    def _score_all(self, queries: list[Core], candidates: list[Core]) -> Tensor:
        return self._total(every_pair, queries, candidates)

    def _score_own(self, queries: list[Core], candidates: list[Core]) -> Tensor:
        return self._total(own_pairs, queries, candidates)


class ScaledHyperbolic(Hyperbolic):
    """Points and maps are those of the unit hyperboloid, with rapidity ‖x‖ in place of ‖x‖/√β."""

    @staticmethod
    def query(head: Tensor, maps: HyperbolicMap, groups: Grouping) -> Core:
        unit = maps._replace(beta=torch.ones_like(maps.beta))
        vector, (_, a) = Hyperbolic.query(head, unit, groups)
        return Core(vector, (groups.rows(maps.beta.sqrt()).transpose(0, 1), a))

    @staticmethod
    def transport(head: Tensor, maps: HyperbolicMap, groups: Grouping) -> Tensor:
        unit = maps._replace(beta=torch.ones_like(maps.beta))
        return Hyperbolic.transport(head, unit, groups)


class PublishedBeta(OtherDistances):
    """β as the code published with the paper reads it: no curvature, but a scale of the distance."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, distances={"Q": lambda numbers: UnitGeodesic()}, **named)
        for group in self.geometries:
            if isinstance(group, Hyperbolic):
                group.__class__ = ScaledHyperbolic


def every_pair(query: Core, candidate: Core, finish: Finish | Other, norm: int) -> Tensor:
    """``Σ_m d_m(q_b, c_n)^norm`` for every query and every candidate, (B, N)."""
    if not isinstance(finish, Other):
        return pairwise(query, candidate, finish, norm)
    M, B, _ = query.vector.shape
    few = max(1, BLOCK_ELEMENTS // (M * candidate.vector.shape[1]))
    others = Core(candidate.vector, tuple(s.unsqueeze(1) for s in candidate.scalars))
    parts = []
    for block in (slice(at, at + few) for at in range(0, B, few)):
        asked = Core(query.vector[:, block], tuple(s[:, block, None] for s in query.scalars))
        parts.append(finish(lambda q, c: torch.bmm(q, c.mT), asked, others).pow(norm).sum(0))
    return torch.cat(parts)


def own_pairs(query: Core, candidate: Core, finish: Finish | Other, norm: int) -> Tensor:
    """``Σ_m d_m(q_b, c_b)^norm`` for query b and candidate b alone, (B,)."""
    if not isinstance(finish, Other):
        return paired(query, candidate, finish, norm)
    sides = (
        Core(side.vector, tuple(s.unsqueeze(2) for s in side.scalars))
        for side in (query, candidate)
    )
    each = finish(lambda q, c: (q * c).sum(-1, keepdim=True), *sides)  # (M, B, 1)
    return each.pow(norm).sum((0, 2))


# All of them.


class Lever(NamedTuple):
    """What stands in the place of golde's own model, loss and training."""

    model: Callable[..., Model] = GoldE
    loss: Loss = step_loss
    training: Callable[..., Training] = Training


LEVERS = {
    UNCHANGED: Lever(),
    "component-dropout-0.1": Lever(model=partial(ComponentDropout, share=0.1)),
    "component-dropout-0.3": Lever(model=partial(ComponentDropout, share=0.3)),
    "relation-prediction-0.1": Lever(loss=with_term(relation_loss, 0.1)),
    "relation-prediction-1": Lever(loss=with_term(relation_loss, 1.0)),
    "distance-penalty-0.01": Lever(loss=with_term(distance_penalty, 0.01)),
    "distance-penalty-0.1": Lever(loss=with_term(distance_penalty, 0.1)),
    "published-beta": Lever(model=PublishedBeta),
    "weight-averaging-0.99": Lever(training=partial(Averaged, decay=0.99)),
    "weight-averaging-0.999": Lever(training=partial(Averaged, decay=0.999)),
    "then-cross-entropy-0.1": Lever(training=partial(ThenCrossEntropy, share=0.1)),
    "then-cross-entropy-0.3": Lever(training=partial(ThenCrossEntropy, share=0.3)),
    "ellipsoid-geodesic": Lever(model=partial(OtherDistances, distances={"E": Arc, "P": Arc})),
    "lorentzian": Lever(
        model=partial(OtherDistances, distances={"Q": lambda numbers: Lorentzian(squared=False)})
    ),
    "lorentzian-squared": Lever(
        model=partial(OtherDistances, distances={"Q": lambda numbers: Lorentzian(squared=True)})
    ),
}
"""By name; a figure is the share that is dropped, the weight of a term, the decay of an average with each
step, or the share of steps with the second loss."""


@contextmanager
def in_force(lever: Lever) -> Iterator[None]:
    """Trainings inside are made with the lever; then all is as before."""
    with (
        patch.dict(KINDS, golde=lever.model),
        patch("golde.training.update.step_loss", lever.loss),
        patch("golde.training.loop.Training", lever.training),
    ):
        yield
