"""The loss of one step: queries scored against shared negatives and against their own answer."""

from __future__ import annotations

from torch import Tensor

from golde.config import TrainingConfig
from golde.models import Model
from golde.training.losses import Negatives, adversarial_loss, cross_entropy, log_sum
from golde.training.regularisers import cubes
from golde.training.sampling import Draw


def step_loss(model: Model, rows: Tensor, draw: Draw, config: TrainingConfig) -> Tensor:
    """The loss of a draw, given the rows of its ``entities``."""
    batch, candidates, own_masked, _ = draw
    # The query's own entity, also where it was drawn: what a map moves least is the hardest negative
    # there is, and counting it on top of the shared ones keeps it from outranking true answers.
    positive, own, shared = model.score_batch(
        rows,
        batch.entity,
        batch.direction,
        batch.answer,
        candidates.entity,
        own=config.query_as_negative,
    )
    negatives = Negatives(shared, candidates.masked, own, own_masked)
    if config.loss == "self-adversarial":
        loss = adversarial_loss(
            positive, negatives, batch.weight, margin=model.margin, temperature=config.temperature
        )
    else:
        loss = cross_entropy(positive, log_sum(negatives.parts), batch.weight)
    if config.regulariser == "n3" and config.regulariser_weight is not None:
        facts = model.penalised(rows[: 2 * len(batch.entity)], batch.direction)
        loss = loss + config.regulariser_weight * cubes(facts)
    return loss
