"""How training went at the size of YAGO3-10, on a part of its facts, as ``benchmarks/yago_part.py`` found."""

from __future__ import annotations

from typing import Any

from golde.report.tables import machine, short_commit
from golde.report.tables import markdown as table
from golde.words import facts_in_a_row

HEAD = [
    "configuration",
    "steps",
    "in all",
    "queries a second",
    "GPU memory",
    "rank",
    "loss, first tenth",
    "last tenth",
    "largest there",
    "MRR, halfway",
    "at the end",
]


def yago_part(found: dict[str, Any]) -> str:
    """The section of the page."""
    every = found["trainings"]
    done = [one for one in every if "failed" not in one]
    failed = [
        f"`{one['configuration']}` failed: {one['failed']}. " for one in every if "failed" in one
    ]
    parts = dict.fromkeys(
        f"{one['graph']}, {one['facts']:,} training facts among {one['entities']:,} entities"
        for one in every
    )
    machines = dict.fromkeys(
        f"{machine(one)}, commit {short_commit(one['commit'])}" for one in every
    )
    evidence = [_evidence(one) for one in done if "evidence" in one]
    evidence = evidence or ["Evidence, which the configurations ask for, was not gathered. "]
    seeds = ", ".join(map(str, sorted({one["seed"] for one in every})))
    return (
        f"{table(HEAD, [_row(one) for one in done])}\n\n**Not YAGO3-10**, but a part of its training facts "
        f"with all of its entities: {'; '.join(parts)}. Fewer facts are another graph: MRR, on its "
        "validation facts and of the embedding alone, only says that training gets somewhere. *In all* is "
        "training with compilation and validation, *rank* both directions of the validation facts among all "
        "entities, *GPU memory* the most that was allocated, *loss* the mean of the steps that are logged; "
        f"training stops at one that is NaN or infinite. {''.join(evidence + failed)}Seed {seeds}. "
        f"{'; '.join(machines)}; written by `benchmarks/yago_part.py`."
    )


def _evidence(one: dict[str, Any]) -> str:
    """What gathering evidence took, and what it did."""
    found = one["evidence"]
    memory = "" if found["device_gib"] is None else f" and {found['device_gib']:.1f} GiB"
    return (
        f"Evidence of {facts_in_a_row(found['hops'])}, gathered after `{one['configuration']}`, took "
        f"{found['seconds']:,.0f} s{memory}, its ranking {found['rank_s']:.1f} s; with it MRR is "
        f"{found['mrr']:.3f}. "
    )


def _row(one: dict[str, Any]) -> list[str]:
    curve, losses, memory = one["curve"], one["losses"], one["device_gib"]
    return [
        f"`{one['configuration']}`",
        f"{one['steps']:,}",
        f"**{one['seconds']:,.0f} s**",
        f"{one['queries_per_second']:,.0f}",
        "" if memory is None else f"{memory:.1f} GiB",
        f"{one['rank_s']:.1f} s",
        f"{losses[0]['mean']:.3f}",
        f"{losses[-1]['mean']:.3f}",
        f"{losses[-1]['largest']:.3f}",
        f"{curve[(len(curve) - 1) // 2]['mrr']:.3f}",
        f"{curve[-1]['mrr']:.3f}",
    ]
