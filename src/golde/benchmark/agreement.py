"""Whether a form does the same as the plain one, step after step; one that does not is not timed.

Some spaces carry a rounding far (points on a line that nearly coincide, say), others not at all. So the
plain form is run twice, the second time from parameters that were rounded once more, and what that does
tells how much is rounding. Where points coincide in few pairs it may do next to nothing for once, so a form
that seems wrong is looked at again after the plain form was rounded several times.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from golde.benchmark.forms import Step
from golde.models import GoldE
from golde.training.update import Outcome

STEPS = 8
"""Steps that are compared: of a captured form the first are as they come, the last are replays."""

OUTCOME_TOLERANCE = 1e-4
"""Of loss and gradient norm, relative to the plain form's."""

PARAMETER_TOLERANCE = 1e-3
"""Of a parameter, relative to how far the steps have moved it: products in TF32 do not keep to it."""

ROUNDINGS = 8
"""How often the plain form is rounded before a form is said to be wrong."""

SLACK = 10.0
"""How many times what one more rounding does is allowed where that is more than the tolerance."""


class Trace(NamedTuple):
    """What a form did in ``STEPS`` steps; parameters on the host, so that the device keeps its memory."""

    first: tuple[float, float]  # loss and gradient norm of step 0
    last: tuple[float, float]  # of the last step
    start: dict[str, Tensor]
    end: dict[str, Tensor]


class Expected(NamedTuple):
    """What the plain form did, and how far from it each difference may be."""

    trace: Trace
    limits: dict[str, float]


def trace(step: Step) -> Trace:
    """Make the first steps and note what came of them."""
    start = _parameters(step)
    first = _numbers(step(0))
    for number in range(1, STEPS - 1):
        step(number)
    last = _numbers(step(STEPS - 1))
    step.settle()
    return Trace(first, last, start, _parameters(step))


@torch.no_grad()
def round_once_more(model: GoldE, *, seed: int) -> None:
    """Change every parameter by up to one unit in its last place; each seed gives another change."""
    generator = torch.Generator().manual_seed(seed)
    for p in model.parameters():
        noise = 2 * torch.rand(p.shape, generator=generator, dtype=p.dtype) - 1
        p.mul_((1 + torch.finfo(p.dtype).eps * noise).to(p.device))


def expected(plain: Trace, rounded: Trace) -> Expected:
    """The plain form as the rule, and its limits."""
    limits = {
        name: PARAMETER_TOLERANCE if name.startswith("parameter") else OUTCOME_TOLERANCE
        for name in differences(plain, plain)
    }
    return widened(Expected(plain, limits), rounded)


def widened(rule: Expected, rounded: Trace) -> Expected:
    """The rule with limits that one more rounding keeps to as well."""
    gaps = differences(rounded, rule.trace)
    return Expected(
        rule.trace, {name: max(limit, SLACK * gaps[name]) for name, limit in rule.limits.items()}
    )


def differences(found: Trace, plain: Trace) -> dict[str, float]:
    """Everything that is compared, relative to the plain form."""
    gaps = {}
    for number, ours, theirs in (
        (0, found.first, plain.first),
        (STEPS - 1, found.last, plain.last),
    ):
        for name, a, b in zip(("loss", "gradient norm"), ours, theirs, strict=True):
            gaps[f"{name} in step {number}"] = _ratio(abs(a - b), abs(b))
    for name, end in plain.end.items():
        apart, moved = (end - found.end[name]).norm(), (end - plain.start[name]).norm()
        gaps[f"parameter {name} after {STEPS} steps"] = _ratio(float(apart), float(moved))
    return gaps


def worst(found: Trace, rule: Expected) -> tuple[float, str]:
    """The largest difference as a share of its limit (1 is still right), and what it is in words."""
    gaps = differences(found, rule.trace)
    shares = {name: _ratio(gap, rule.limits[name]) for name, gap in gaps.items()}
    name = max(shares, key=lambda name: shares[name])
    words = (
        f"{name} differs from the plain form's by {gaps[name]:.3g}, at most {rule.limits[name]:.3g}"
    )
    return shares[name], f"{words} is rounding"


def _ratio(a: float, b: float) -> float:
    """``a / b``; nothing of nothing is 0, and what is not a number is as wrong as can be."""
    if a == 0:
        return 0.0
    ratio = a / b if b else math.inf
    return math.inf if math.isnan(ratio) else ratio


def _numbers(outcome: Outcome) -> tuple[float, float]:
    return float(outcome.loss), float(outcome.gradient_norm)


def _parameters(step: Step) -> dict[str, Tensor]:
    named = step.model.named_parameters()
    return {name: p.detach().to("cpu", copy=True) for name, p in named}
