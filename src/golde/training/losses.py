"""Losses as reductions over a candidate axis, which may be split into parts.

Each loss first reduces the candidates it is given to a few numbers a query. Reductions of different
parts of the axis merge into that of the whole; a part without a live candidate is neutral.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from golde.kernels.triton.support import fuses


class Negatives(NamedTuple):
    """Scores of what each query is trained against, and which of them do not count."""

    shared: Tensor  # (B, N)
    masked: Tensor  # (B, N)
    own: Tensor | None  # (B,): of the query's own entity
    own_masked: Tensor  # (B,)

    @property
    def parts(self) -> list[tuple[Tensor, Tensor]]:
        """The parts of the candidate axis, scores and masks as tables."""
        parts = [(self.shared, self.masked)]
        if self.own is not None:
            parts.append((self.own.unsqueeze(1), self.own_masked.unsqueeze(1)))
        return parts


class Adversarial(NamedTuple):
    """``log Σ_n exp(α s_n)``, a constant of the step, and ``Σ_n p_n log σ(−γ − s_n)``; (B,) each."""

    log_weight: Tensor
    wrong: Tensor

    @classmethod
    def of(
        cls, negative: Tensor, masked: Tensor, *, margin: float, temperature: float
    ) -> Adversarial:
        """Reduce scores (B, N) where not ``masked``; ``p = softmax(α s)`` is held constant."""
        if not negative.shape[1]:
            nothing = negative.sum(1)
            return cls(torch.full_like(nothing, -torch.inf), nothing)
        logits = (temperature * negative.detach()).masked_fill_(masked, -torch.inf)
        top = _finite(logits.amax(1))
        p = logits.sub_(top.unsqueeze(1)).exp_()
        total = p.sum(1)  # at least exp 0 = 1 where anything is live
        wrong = (p * logsigmoid(-margin - negative)).sum(1) / total.clamp_min(1)
        return cls(top + total.log(), wrong)

    @classmethod
    def merge(cls, parts: Sequence[Adversarial]) -> Adversarial:
        """The reduction of the whole axis from those of its parts."""
        log_weights = torch.stack([part.log_weight for part in parts])
        log_weight = torch.logsumexp(log_weights, 0)
        share = torch.exp(log_weights - _finite(log_weight))
        return cls(log_weight, (share * torch.stack([part.wrong for part in parts])).sum(0))


def self_adversarial(
    positive: Tensor, negatives: Adversarial, weight: Tensor, *, margin: float
) -> Tensor:
    """``½ Σ_b w_b (−log σ(γ + s⁺_b) − Σ_n p_bn log σ(−γ − s_bn))``, ``p_b = softmax(α s_b)`` (Eq. 16).

    ``positive`` (B,), ``weight`` (B,) adding up to one. A query without any live negative has no
    second term.
    """
    return -(weight * (logsigmoid(margin + positive) + negatives.wrong)).sum() / 2


def adversarial_loss(
    positive: Tensor, negatives: Negatives, weight: Tensor, *, margin: float, temperature: float
) -> Tensor:
    """``self_adversarial`` of shared and own negatives together: on a GPU as one kernel."""
    if fuses(positive):
        from golde.kernels.triton.loss import fused_adversarial

        shared, masked, own, own_masked = negatives
        return fused_adversarial(
            positive, own, shared, own_masked, masked, weight, margin, temperature
        )
    reduced = Adversarial.merge(
        [Adversarial.of(*part, margin=margin, temperature=temperature) for part in negatives.parts]
    )
    return self_adversarial(positive, reduced, weight, margin=margin)


def log_sum(parts: Iterable[tuple[Tensor, Tensor]]) -> Tensor:
    """``log Σ_n exp s_n`` (B,) of scores (B, N) where not masked, given in parts of the candidate axis."""
    return torch.logsumexp(
        torch.stack([torch.logsumexp(s.masked_fill(m, -torch.inf), 1) for s, m in parts]), 0
    )


def cross_entropy(positive: Tensor, negatives: Tensor, weight: Tensor) -> Tensor:
    """``Σ_b w_b (log Σ_{n ∪ +} exp s_bn − s⁺_b)``: softmax over the answer and its live negatives.

    ``negatives`` (B,) is their ``log_sum``.
    """
    return (weight * (torch.logaddexp(positive, negatives) - positive)).sum()


def _finite(log_weight: Tensor) -> Tensor:
    """Keeps ``−∞ − (−∞)`` from being NaN: nothing live then means no weight."""
    return log_weight.clamp_min(torch.finfo(log_weight.dtype).min)
