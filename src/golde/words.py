"""Names of figures, probabilities and lengths of time as people write them."""

from __future__ import annotations


def label(name: str) -> str:
    """A figure's name: MRR for mrr, H@10 for hits@10."""
    return name.replace("hits@", "H@") if "@" in name else name.upper()


def probability(value: float) -> str:
    """Three digits; never certain, however many digits it would take to say so."""
    return "> 0.999" if value > 0.999 else "< 0.001" if value < 0.001 else f"{value:.3f}"


def facts_in_a_row(hops: int) -> str:
    """How many training facts evidence is of."""
    return f"up to {hops} training facts in a row" if hops > 1 else "single training facts"


def duration(seconds: float) -> str:
    """Seconds in words: 41 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 100:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
