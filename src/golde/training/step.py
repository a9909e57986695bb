"""The loss of one step: queries scored against shared negatives and against their own answer."""

from __future__ import annotations

import torch
from torch import Tensor

from golde.config import TrainingConfig
from golde.models import GoldE
from golde.training.losses import cross_entropy, self_adversarial
from golde.training.regularisers import penalty
from golde.training.sampling import Sampler


def step_loss(model: GoldE, sampler: Sampler, step: int, config: TrainingConfig) -> Tensor:
    """The loss of step ``step``, a function of the parameters, the seed and the step alone."""
    batch = sampler.batch(step)
    candidates = sampler.candidates(step, batch)
    masked = candidates.masked
    answers = [batch.answer, batch.entity] if config.query_as_negative else [batch.answer]
    (positive, *own), negative = model.score_batch(
        batch.entity, batch.direction, answers, candidates.entity
    )
    if own:
        negative = torch.cat((negative, own[0].unsqueeze(1)), 1)
        masked = torch.cat((masked, sampler.is_known(batch, batch.entity).unsqueeze(1)), 1)
    if config.loss == "self-adversarial":
        loss = self_adversarial(
            positive,
            negative,
            masked,
            batch.weight,
            margin=model.config.margin,
            temperature=config.temperature,
        )
    else:
        loss = cross_entropy(
            positive, negative, masked, batch.weight, label_smoothing=config.label_smoothing
        )
    if config.regulariser_weight:
        rows = torch.cat((batch.entity, batch.answer))
        loss = loss + config.regulariser_weight * penalty(config.regulariser, model.entity[rows])
    return loss
