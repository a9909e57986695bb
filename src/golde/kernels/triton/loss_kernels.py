"""The kernels of ``loss``: every term and gradient of a query in one program."""

from __future__ import annotations

from golde.kernels.triton.language import jit, kernel, tl


@jit
def log_one_plus(e):
    """``log(1 + e)`` on [0, 1] within 1.2 ulps, where the logarithm of a rounded sum would lose small e.

    The polynomial is the one of its degree with the least relative error (5·10⁻⁹).
    """
    r = 1.9851401e-2 - 3.2440119e-3 * e
    r = r * e - 5.6959413e-2
    r = r * e + 1.0603642e-1
    r = r * e - 1.5305585e-1
    r = r * e + 1.9675936e-1
    r = r * e - 2.4954133e-1
    r = r * e + 3.3329962e-1
    r = r * e - 4.9999902e-1
    return e * (r * e + 1)


@jit
def log_sigmoid(z):
    """``log σ(z) = min(z, 0) − log(1 + e^{−|z|})``."""
    return tl.minimum(z, 0.0, propagate_nan=tl.PropagateNan.ALL) - log_one_plus(tl.exp(-tl.abs(z)))


@jit
def sigmoid(z):
    """``σ(z)``, from ``e^{−|z|}`` so that nothing overflows."""
    e = tl.exp(-tl.abs(z))
    return tl.where(z < 0, e, 1.0) / (1 + e)


@jit
def loaded(scores, masked, n, N):
    """Scores of a row, and which of them count."""
    s = tl.load(scores + n, mask=n < N, other=0.0)
    return s, tl.load(masked + n, mask=n < N, other=1) == 0


@jit
def logits(s, live, temperature):
    """``α s`` of what counts, −∞ of the rest."""
    return tl.where(live, temperature * s, -float("inf"))


@jit
def finite(high):
    """Keeps ``−∞ − (−∞)`` from being NaN: nothing live then means no weight."""
    return tl.where(high == -float("inf"), 0.0, high)


@jit
def added(high, total, wrong, s, live, margin, temperature):
    """With a block more: ``high = max α s``, ``Σ exp(α s − high)`` and the same sum of ``log σ(−γ − s)``."""
    logit = logits(s, live, temperature)
    new = tl.maximum(high, tl.max(logit, 0))
    scale = tl.exp(high - finite(new))
    p = tl.exp(logit - finite(new))
    total = total * scale + tl.sum(p, 0)
    wrong = wrong * scale + tl.sum(p * log_sigmoid(-margin - s), 0)
    return new, total, wrong


@jit
def slope(s, live, share, high, margin, temperature):
    """``½ w p σ(γ + s)``; ``share = ½ w / Σ exp(α s − high)``."""
    return share * tl.exp(logits(s, live, temperature) - high) * sigmoid(margin + s)


@kernel
def adversarial_kernel(
    positive, own, shared, own_masked, masked, weight,
    terms, to_positive, to_own, to_shared, N, margin, temperature,
    OWN: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Program b: its term of the loss and the term's derivatives, in two passes over its row of scores.

    With ``z = γ + s``: ``∂/∂s⁺ = −½ w σ(−z⁺)`` and, p being held constant, ``∂/∂s = ½ w p σ(z)``.
    The first block stays in registers between the passes; only longer rows have others.
    """
    b = tl.program_id(0).to(tl.int64)
    shared += b * N
    masked += b * N
    to_shared += b * N
    half = 0.5 * tl.load(weight + b)
    high = tl.full((), -float("inf"), tl.float32)
    total = tl.full((), 0.0, tl.float32)
    wrong = tl.full((), 0.0, tl.float32)
    if OWN:  # the first of the negatives
        s_own = tl.load(own + b)
        own_live = tl.load(own_masked + b) == 0
        high = logits(s_own, own_live, temperature)
        total = tl.exp(high - finite(high))
        wrong = total * log_sigmoid(-margin - s_own)
    n = tl.arange(0, BLOCK)
    first, first_live = loaded(shared, masked, n, N)
    high, total, wrong = added(high, total, wrong, first, first_live, margin, temperature)
    for begin in range(BLOCK, N, BLOCK):
        s, live = loaded(shared, masked, begin + n, N)
        high, total, wrong = added(high, total, wrong, s, live, margin, temperature)

    total = tl.where(total == 0, 1.0, total)
    z = margin + tl.load(positive + b)
    tl.store(terms + b, -half * (log_sigmoid(z) + wrong / total))
    tl.store(to_positive + b, -half * sigmoid(-z))
    share, high = half / total, finite(high)
    if OWN:
        tl.store(to_own + b, slope(s_own, own_live, share, high, margin, temperature))
    found = slope(first, first_live, share, high, margin, temperature)
    tl.store(to_shared + n, found, mask=n < N)
    for begin in range(BLOCK, N, BLOCK):
        s, live = loaded(shared, masked, begin + n, N)
        found = slope(s, live, share, high, margin, temperature)
        tl.store(to_shared + begin + n, found, mask=begin + n < N)


@kernel
def scale_kernel(values, factor, size, BLOCK: tl.constexpr):
    """Multiply in place; by one, which is what a loss on its own is asked for, nothing is read or written."""
    by = tl.load(factor)
    if by != 1:
        at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        scaled = by * tl.load(values + at, mask=at < size, other=0.0)
        tl.store(values + at, scaled, mask=at < size)
