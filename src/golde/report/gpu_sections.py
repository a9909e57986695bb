"""Sections on steps, memory, precision and budgets on a GPU."""

from __future__ import annotations

from statistics import fmean, median
from typing import Any

from golde.report import seeds
from golde.report.seeds import BySeed
from golde.report.tables import markdown as table


def gpu(found: dict[str, Any], script: str) -> str:
    machine, versions = found["machine"], found["versions"]
    return (
        f"{machine['gpu']}; Python {versions['python']}, torch {versions['torch']}, Triton "
        f"{versions['triton']}; commit `{found['commit'][:10]}`; written by `benchmarks/{script}.py`."
    )


STEP = ["a step", "pairs a second", "memory beyond parameters and Adam"]


def steps(first: str, found: dict[str, Any]) -> str:
    """One row a form or size."""

    def row(name: str, one: dict[str, Any]) -> list[str]:
        if "ms" not in one:
            return [name, "failed" if "failed" in one else "skipped", "", ""]
        return [
            name,
            f"**{one['ms']:.2f} ms**",
            f"{one['pairs_per_second'] / 1e6:,.0f} M",
            f"{one['memory_beyond_state_mb']:,} MiB",
        ]

    return table([first, *STEP], [row(name, one) for name, one in found.items()])


def gpu_step(found: dict[str, Any]) -> str:
    """A training step on a GPU, form by form, and the fused form at other sizes."""
    ranked = found["evaluation"]
    captured = [name for name, one in found["forms"].items() if one.get("captured")]
    graphs = f"As one CUDA graph: {', '.join(captured)}. " if captured else ""
    return (
        f"{steps('form', found['forms'])}\n\n"
        "![A step in every form](assets/gpu_step.png)\n\n"
        f"{steps('fused, other sizes', found['sizes'])}\n\n"
        "A whole step (draw, forward, backward, Adam unless it says otherwise) at the size the paper uses "
        "on WN18RR (40,943 entities, `P10x36 Q13x36`, 1,000 queries, 3,000 shared negatives; 200 of its own "
        "for every query in the gathered form), on a random graph of that size, with float32-accurate "
        "products; rows of YAGO3-10 have its published space, `P8x50 Q13x50`, 3,000 queries and 3,000 shared "
        f"negatives. {graphs}Filtered ranking of "
        f"{ranked['queries']:,} queries among all entities: **{ranked['seconds']:.3f} s**. Medians "
        f"by device events, of {found['settings']['repeats']} steps above. {gpu(found, 'gpu_step')}"
    )


def gpu_growth(found: dict[str, Any]) -> str:
    """How the fused step grows with one dimension at a time."""
    return (
        "![How the cost of a step grows](assets/gpu_growth.png)\n\n"
        f"{steps('fused', found['sizes'])}\n\n"
        "The step above with one dimension changed at a time; dashed, growth in proportion. "
        f"{gpu(found, 'gpu_growth').replace('`benchmarks/gpu_growth.py`', '`golde bench --sweep`')}"
    )


CEILINGS = {
    "bytes": ("memory", "B"),
    "fp32": ("FP32", ""),
    "special": ("special", ""),
    "tensor": ("TF32", ""),
}


def gpu_roofline(found: dict[str, Any]) -> str:
    """How near each kernel of a step comes to what this GPU can do."""

    def row(one: dict[str, Any]) -> list[str]:
        cells = [f"`{one['kernel']}`", f"{one['ms']:.3f} ms", f"{one['share']:.0%}"]
        if "operations" not in one:
            return [*cells, *[""] * 5]
        for kind, (_, unit) in CEILINGS.items():
            count, reached = one["operations"][kind], one["reached"][kind]
            cells.append(f"{count / 1e9:.3g} G{unit}, {reached:.0%}" if count else "")
        return [*cells, CEILINGS[one["bound"]][0] if one["bound"] else "none of these"]

    head = [
        "kernel",
        "a step",
        "share",
        *(name for name, _ in CEILINGS.values()),
        "nearest ceiling",
    ]
    parts = []
    for number, (signature, one) in enumerate(found["profiles"].items()):
        kernels = [k for k in one["kernels"] if number == 0 or "operations" in k]
        about = "" if number == 0 else f"`{signature}` alone:\n\n"
        parts.append(f"{about}{table(head, [row(k) for k in kernels])}")
    most = found["ceilings"]
    text = (
        "Kernels of a captured step of the size above by the profiler. Each cell has what the kernel has to "
        "do, counted from the algorithm (`benchmarks/operations.py`), and its share of what this GPU "
        f"reached in the same run on nothing else: {most['bytes'] / 1e12:.2f} TB/s of copying, "
        f"{most['fp32'] / 1e12:.1f} T FP32 multiply-adds a second, {most['special'] / 1e12:.2f} T special "
        f"functions, and {most['tensor'] / 1e12:.0f} T TF32 operations in Triton's product. "
        f"{gpu(found, 'gpu_roofline')}"
    )
    return "\n\n".join([*parts, text])


def gpu_accuracy(found: dict[str, Any]) -> str:
    """Validation MRR and step time, variant by variant, beside the plain form in float32."""
    groups: dict[tuple[str, int, str], BySeed] = {}
    failed = []
    for one in found["trainings"]:
        name, steps, variant, seed = (one[part] for part in ("set", "steps", "variant", "seed"))
        if "failed" in one:
            failed.append(f"{variant} on {name} with seed {seed} failed: {one['failed']}. ")
        else:
            groups.setdefault((name, steps, variant), {})[seed] = one
    rows = []
    for (name, steps, variant), runs in sorted(groups.items(), key=lambda item: item[0][:2]):
        plain = groups.get((name, steps, "plain-float32"), {})
        rows.append(
            [
                f"{name}, {steps:,} steps",
                variant,
                seeds.with_range(runs),
                seeds.difference(runs, plain),
                f"{median(run['score_error'] for run in runs.values()):.0e}",
                f"{median(run['step_ms'] for run in runs.values()):.2f} ms",
                f"{fmean(run['seconds'] for run in runs.values()):,.0f} s",
            ]
        )
    head = ["set", "variant", "validation MRR", "difference", "score error", "a step", "in all"]
    drawn = sorted({one["seed"] for one in found["trainings"]})
    sources = dict.fromkeys(
        f"{one['machine']['gpu']}; Python {one['versions']['python']}, torch {one['versions']['torch']}, "
        f"Triton {one['versions']['triton']}; commit `{one['commit'][:10]}`"
        for one in found["trainings"]
    )
    return (
        f"{table(head, rows)}\n\nThe published sizes and rates, so many steps and no more, last parameters; "
        "filtered MRR of the whole validation split, both sides, realistic rank on ties, ranked in the "
        f"same variant. Means over seeds {', '.join(map(str, drawn))} with their range (without one, of the "
        "first seed alone), and the mean difference to plain-float32 at the same seeds, that of each in "
        "brackets. The score error is that of the trained model, relative to float64, as a norm over many "
        "scores. *Plain* is the step in PyTorch operations, *fused* the one in kernels, with products in "
        "three TF32 parts unless one is named; "
        "*published-beta* is plain-float32 with β as the published code reads it, a scale of the distance at "
        f"curvature −1. {''.join(failed)}{' and '.join(sources)}; written by "
        "`benchmarks/gpu_accuracy.py`."
    )


def gpu_budget(found: dict[str, Any]) -> str:
    """What a short training on a GPU reaches, from a cold start."""
    rows = []
    for one in found["trainings"]:
        both, training = one["test"]["both"], one["settings"]["training"]
        low, high = both["intervals"]["mrr"]
        rows.append(
            [
                f"{one['seed']}",
                f"**{one['seconds']:.1f} s**",
                f"{training['steps']:,}",
                f"{one['validation'][-1]['mrr']:.4f}",
                f"**{both['mrr']:.4f}** ({low:.3f}–{high:.3f})",
                f"{both['hits@1']:.3f}",
                f"{both['hits@10']:.3f}",
                f"{both['mr']:,.0f}",
            ]
        )
    head = ["seed", "in all", "steps", "validation MRR", "test MRR (95%)", "H@1", "H@10", "MR"]
    return (
        f"{table(head, rows)}\n\n`golde train {found['graph']} --config configs/wn18rr-45s.toml` with an "
        f"empty cache of compiled kernels, for which {found['budget_s']:.0f} s are allowed: start-up, "
        "reading, compilation, training and validation. Settings were chosen on validation; test was "
        "ranked once, filtered, both sides, realistic rank on ties, the query's own entity a candidate "
        f"like any other. {gpu(found, 'gpu_budget')}"
    )
