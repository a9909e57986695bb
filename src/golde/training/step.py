"""The loss of one step: queries scored against shared negatives and against their own answer."""

from __future__ import annotations

import torch
from torch import Tensor

from golde.config import TrainingConfig
from golde.geometry import gather
from golde.models import GoldE
from golde.training.losses import Adversarial, Softmax, cross_entropy, self_adversarial
from golde.training.regularisers import penalty
from golde.training.sampling import Sampler


def step_loss(model: GoldE, sampler: Sampler, config: TrainingConfig) -> Tensor:
    """The loss of the sampler's step, a function of the parameters, the seed and the step alone."""
    batch = sampler.batch()
    candidates = sampler.candidates(batch)
    answers = [batch.answer]
    if config.query_as_negative:
        # Also where it was drawn: the entity a map moves least is the hardest negative there is, and
        # counting it on top of the shared ones keeps it from outranking true answers.
        answers.append(batch.entity)
    (positive, *own), negative = model.score_batch(
        batch.entity, batch.direction, answers, candidates.entity
    )
    parts = [(negative, candidates.masked)]
    if own:
        parts.append((own[0].unsqueeze(1), sampler.own_masked(batch).unsqueeze(1)))
    if config.loss == "self-adversarial":
        margin, temperature = model.margin, config.temperature
        reduced = Adversarial.merge(
            [Adversarial.of(*part, margin=margin, temperature=temperature) for part in parts]
        )
        loss = self_adversarial(positive, reduced, batch.weight, margin=margin)
    else:
        loss = cross_entropy(
            positive,
            Softmax.merge([Softmax.of(*part) for part in parts]),
            batch.weight,
            label_smoothing=config.label_smoothing,
        )
    if config.regulariser != "none":
        rows = gather(model.entity, torch.cat((batch.entity, batch.answer)))
        loss = loss + config.regulariser_weight * penalty(config.regulariser, rows)
    return loss
