"""One step of training over several processes, each of which moves the entities it owns.

Head rows are handed to all, and every process makes the same queries of them. It scores those against the
answers and candidates it owns and reduces what it found to three numbers a query; from everyone's the loss
follows, the same in every process. Gradients of queries are added up, after which those of relations come out
alike everywhere. What is sent is of the order of a batch of rows, whatever the number of candidates, entities
or relations.
"""

from __future__ import annotations

import torch
from torch import Tensor

from golde.config import TrainingConfig
from golde.distributed.exchange import merged_adversarial, merged_log_sum, shared, summed
from golde.distributed.sampling import ShardDraw, ShardSampler
from golde.distributed.world import World
from golde.models.contract import Loops, Model
from golde.training.dense_adam import DenseAdam, State, dense_adam
from golde.training.losses import Adversarial, cross_entropy, log_sum, self_adversarial
from golde.training.regularisers import cubes
from golde.training.row_adam import RowAdam, row_adam
from golde.training.update import Outcome

BIASES = ("query_bias", "answer_bias")

OWNED = ("entity", *BIASES)
"""Parameters with a row for each entity, of which a process has those it owns."""


class ShardedUpdate:
    """The steps of one run, as ``golde.training.update.Update``; ``model`` has the rows that are owned."""

    def __init__(
        self, model: Model, sampler: ShardSampler, config: TrainingConfig, world: World
    ) -> None:
        self.model, self.sampler, self.config, self.world = model, sampler, config, world
        self.table = row_adam(model.entity, config, sampler.entities, capture=False)
        named = dict(model.named_parameters())
        biases = {name: named.pop(name) for name in BIASES if name in named}
        del named["entity"]
        self.relations = dense_adam(named, config, sampler.device, capture=False)
        self.biases = dense_adam(biases, config, sampler.device, capture=False) if biases else None

    @property
    def batch_size(self) -> int:
        return self.sampler.batch_size

    def __call__(self, step: int, rate: float) -> Outcome:
        """Make step ``step`` at the given learning rate."""
        self.world.step = step + 1
        for adam in self._adams:
            adam.advance(rate)
        self.model.zero_grad()
        draw = self.sampler.seek(step).draw()
        rows = self.table.rows(draw.rows)
        loss = sharded_loss(self.model, rows, draw, self.config, self.world)
        loss.backward()
        assert rows.grad is not None
        squares = self.table.fold(rows.grad).sum().view(1)
        if self.biases is not None:
            squares = squares + self.biases.clip(squares.new_empty(0)).norm.square()
        norm, scale, found_inf = self.relations.clip(self.world.add_up(squares))
        for adam in self._adams:
            adam.step(scale, found_inf)
        return Outcome(loss.detach(), norm)

    def rehearse(self) -> None:
        """Kernels are compiled as they are met."""

    def settle(self) -> None:
        """Bring the rows up to date; to be called before anything but a step reads them."""
        self.table.settle()

    def state(self) -> State:
        """What Adam keeps of each parameter it has moved, by name; of entities those that are owned."""
        biases = {} if self.biases is None else self.biases.state()
        return {**self.relations.state(), **biases, "entity": self.table.state()}

    def load(self, state: State) -> None:
        """Put back what ``state`` returned."""
        if "entity" in state:
            self.table.load(state["entity"])
        if self.biases is not None:
            self.biases.load({name: state[name] for name in BIASES if name in state})
        self.relations.load({k: v for k, v in state.items() if k not in OWNED})

    @property
    def _adams(self) -> list[RowAdam | DenseAdam]:
        biases = [] if self.biases is None else [self.biases]
        return [self.table, self.relations, *biases]


def sharded_loss(
    model: Model, rows: Tensor, draw: ShardDraw, config: TrainingConfig, world: World
) -> Tensor:
    """The loss of a draw, the same in all processes, given the ``draw.rows`` of this one."""
    batch, B = draw.batch, len(draw.batch.entity)
    sizes = [len(draw.heads), len(draw.answers), len(draw.candidates.entity)]
    heads, answers, candidates = model.with_biases(rows, draw.rows).split(sizes)
    heads = summed(_placed(heads, draw.heads, B), world)
    answers = _placed(answers, draw.answers, B)
    if config.regulariser == "n3":  # every process then works out the same penalty
        answers = summed(answers, world)
    loops = Loops(batch.answer == batch.entity, draw.candidates.entity == batch.entity.unsqueeze(1))
    positive, own, negative = model.score_parts(
        heads,
        answers,
        candidates,
        batch.direction,
        loops,
        own=config.query_as_negative,
        share=lambda side: shared(side, world),
    )
    positive = _placed(positive[draw.answers], draw.answers, B)
    parts = [(negative, draw.candidates.masked)]
    if own is not None:
        parts.append((own.unsqueeze(1), draw.own_masked.unsqueeze(1)))
    if config.loss == "self-adversarial":
        margin, temperature = model.margin, config.temperature
        found = Adversarial.merge(
            [Adversarial.of(*part, margin=margin, temperature=temperature) for part in parts]
        )
        found, positive = merged_adversarial(found, positive, world)
        loss = self_adversarial(positive, found, batch.weight, margin=margin)
    else:
        reduced, positive = merged_log_sum(log_sum(parts), positive, world)
        loss = cross_entropy(positive, reduced, batch.weight)
    if config.regulariser == "n3" and config.regulariser_weight is not None:
        numbers = model.entity.shape[1]
        facts = model.penalised(torch.cat((heads, answers))[:, :numbers], batch.direction)
        loss = loss + config.regulariser_weight * cubes(facts)
    return loss


def _placed(some: Tensor, at: Tensor, count: int) -> Tensor:
    """``count`` rows, of which ``some`` are those of the places ``at`` and the others zero."""
    return some.new_zeros(count, *some.shape[1:]).index_copy(0, at, some)
