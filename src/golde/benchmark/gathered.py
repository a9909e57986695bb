"""The textbook form of a step, as most code has it: every query brings negatives of its own."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from golde.benchmark.task import RATE, Task
from golde.geometry import gather
from golde.models import GoldE
from golde.training.replay import Replay
from golde.training.sampling import Draw
from golde.training.update import Outcome

NEGATIVES = 200
"""Of every query."""


class Gathered:
    """Rows of B × ``NEGATIVES`` entities are gathered from the table, one for every pair.

    Nothing of the training step's loss or optimiser is used here. ``shared`` takes the negatives that
    the sampler drew for all queries, and leaves known answers out, so that the outcome can be compared.
    """

    def __init__(self, task: Task, *, capture: bool, shared: bool = False) -> None:
        self.model, self.columns, self.shared = task.model(), NEGATIVES, shared
        self.sampler, self.clip = task.sampler(), task.config.training.gradient_clip
        self.optimiser = torch.optim.Adam(
            self.model.parameters(), lr=RATE, fused=True, capturable=capture
        )
        self.capture, self._replay = capture, Replay[Outcome]()

    @staticmethod
    def comparable(task: Task) -> Task:
        """As many negatives if there are, none of them the query's own entity, and the usual Adam always."""
        others = [s for s in task.settings if not s.startswith("training.optimiser=")]
        alike = replace(task, settings=(*others, "training.query_as_negative=false"))
        return alike.at(task.size._replace(negatives=min(NEGATIVES, task.size.entities)))

    def __call__(self, number: int) -> Outcome:
        self.sampler.seek(number)
        return self._replay(self._step) if self.capture else self._step()

    def settle(self) -> None:
        """Nothing is ever due."""

    def _step(self) -> Outcome:
        self.optimiser.zero_grad()
        loss = self._loss(self.sampler.draw())
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimiser.step()
        return Outcome(loss.detach(), norm)

    def _loss(self, draw: Draw) -> Tensor:
        """``½ Σ_b w_b (−log σ(γ + s⁺_b) − Σ_n p_bn log σ(−γ − s_bn))``, ``p_b = softmax(s_b)`` (Eq. 16)."""
        model, batch = self.model, draw.batch
        negatives, masked = self._negatives(draw)  # (B, n) each
        others = torch.cat((batch.answer.unsqueeze(1), negatives), 1)  # (B, 1 + n)
        positive, negative = scores(model, batch.entity, batch.direction, others).split(
            [1, negatives.shape[1]], 1
        )
        weight = torch.softmax(negative.detach().masked_fill(masked, -torch.inf), 1)
        wrong = (weight * logsigmoid(-model.margin - negative)).sum(1)
        right = logsigmoid(model.margin + positive.squeeze(1))
        return -(batch.weight * (right + wrong)).sum() / 2

    def _negatives(self, draw: Draw) -> tuple[Tensor, Tensor]:
        """Entities, and which of them do not count."""
        queries = len(draw.batch.entity)
        if self.shared:
            return draw.candidates.entity.expand(queries, -1), draw.candidates.masked
        device = draw.batch.entity.device
        drawn = torch.randint(self.model.entities, (queries, NEGATIVES), device=device)
        return drawn, torch.zeros_like(drawn, dtype=torch.bool)


def scores(model: GoldE, entity: Tensor, direction: Tensor, others: Tensor) -> Tensor:
    """``−Σ_m d_m(q_b, c_bn)`` of every query with entities of its own, (B, n); others (B, n)."""
    queries = model.queries(gather(model.entity, entity), direction)
    candidates = model.candidates(gather(model.entity, others.flatten()))
    total = torch.zeros(others.shape, dtype=model.entity.dtype, device=model.entity.device)
    for group, q, c in zip(model.geometries, queries, candidates, strict=True):
        M, B, C = q.vector.shape
        x = (q.vector.unsqueeze(2) * c.vector.view(M, B, -1, C)).sum(-1)  # (M, B, n)
        sides = group.finish.sides(
            tuple(s.unsqueeze(2) for s in q.scalars), tuple(s.view(M, B, -1) for s in c.scalars)
        )
        total = total - group.finish.value(x, *sides).sum(0)
    return total
