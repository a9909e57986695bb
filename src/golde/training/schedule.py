"""The learning rate as a function of the step."""

from __future__ import annotations

import math


def learning_rate(step: int, *, steps: int, peak: float, warmup: float) -> float:
    """Linear warm-up over the first ``warmup`` share of the steps, then one cosine decay to zero."""
    ramp = round(warmup * steps)
    if step < ramp:
        return peak * (step + 1) / ramp
    return peak * 0.5 * (1 + math.cos(math.pi * (step - ramp) / max(1, steps - ramp)))
