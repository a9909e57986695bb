"""The kernel of ``negatives``: a softmax-weighted sum a query."""

from __future__ import annotations

from golde.kernels.triton.language import jit, tl


@jit
def adversarial_kernel(
    scores, masked, top, total, wrong, grad, found, N, margin, temperature,
    BACKWARD: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Forward the running maximum, the sum of weights and the weighted sum; backward the gradient.

    ``∂ Σ p log σ(−γ − s) / ∂s = −p σ(γ + s)``, the weights p being held constant.
    """
    b = tl.program_id(0).to(tl.int64)
    scores += b * N
    masked += b * N
    if BACKWARD:
        high, weights = tl.load(top + b), tl.load(total + b)
        high = tl.where(weights > 0, high, 0.0)
        share = tl.load(grad + b) / tl.where(weights > 0, weights, 1.0)
    else:
        high = tl.full((), -float("inf"), tl.float32)
        weights = tl.full((), 0.0, tl.float32)
        sum_wrong = tl.full((), 0.0, tl.float32)
    for begin in range(0, N, BLOCK):
        n = begin + tl.arange(0, BLOCK)
        live = (n < N) & (tl.load(masked + n, mask=n < N, other=1) == 0)
        s = tl.load(scores + n, mask=n < N, other=0.0)
        logit = tl.where(live, temperature * s, -float("inf"))
        z = -margin - s
        e = tl.exp(-tl.abs(z))
        if BACKWARD:
            p = tl.where(live, tl.exp(logit - high), 0.0)
            sigmoid = tl.where(z < 0, 1 / (1 + e), e / (1 + e))  # σ(−z)
            tl.store(found + b * N + n, -share * p * sigmoid, mask=n < N)
        else:
            new = tl.maximum(high, tl.max(logit, 0))
            safe = tl.where(new == -float("inf"), 0.0, new)
            scale = tl.exp(high - safe)
            p = tl.where(live, tl.exp(logit - safe), 0.0)
            log_sigmoid = tl.minimum(z, 0.0) - tl.log(1 + e)
            weights = weights * scale + tl.sum(p, 0)
            sum_wrong = sum_wrong * scale + tl.sum(p * log_sigmoid, 0)
            high = new
    if not BACKWARD:
        tl.store(top + b, high)
        tl.store(total + b, weights)
        tl.store(wrong + b, sum_wrong / tl.where(weights > 0, weights, 1.0))
