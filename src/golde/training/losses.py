"""Losses as reductions over a candidate axis."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid


def self_adversarial(
    positive: Tensor,
    negative: Tensor,
    masked: Tensor,
    weight: Tensor,
    *,
    margin: float,
    temperature: float,
) -> Tensor:
    """``½ Σ_b w_b (−log σ(γ + s⁺_b) − Σ_n p_bn log σ(−γ − s_bn))``, ``p_b = softmax(α s_b)`` (Eq. 16).

    ``positive`` (B,), ``negative`` and ``masked`` (B, N), ``weight`` (B,) adding up to one. The
    self-adversarial weights p are constants of the step. A query without any live negative has no
    second term.
    """
    right = logsigmoid(margin + positive)
    logits = (temperature * negative.detach()).masked_fill(masked, -torch.inf)
    adversarial = torch.softmax(logits, 1).nan_to_num(0.0)  # all masked: no weight at all
    wrong = (adversarial * logsigmoid(-margin - negative)).sum(1)
    return -(weight * (right + wrong)).sum() / 2


def cross_entropy(
    positive: Tensor,
    negative: Tensor,
    masked: Tensor,
    weight: Tensor,
    *,
    label_smoothing: float = 0.0,
) -> Tensor:
    """``Σ_b w_b (log Σ_{n ∪ +} exp s_bn − s⁺_b)``: softmax over the answer and its live negatives."""
    live = negative.masked_fill(masked, -torch.inf)
    everything = torch.cat((positive.unsqueeze(1), live), 1)
    log_sum = torch.logsumexp(everything, 1)
    target = positive
    if label_smoothing:
        count = (~masked).sum(1) + 1
        mean = (positive + negative.masked_fill(masked, 0.0).sum(1)) / count
        target = (1 - label_smoothing) * positive + label_smoothing * mean
    return (weight * (log_sum - target)).sum()
