"""How fast are training and filtered evaluation on a CPU, beside PyKEEN's RotatE?

Equal numbers an entity, equal negatives, equal threads, the same facts under the same ids. The two
sides take turns (A B A B), every turn in a process of its own and each at the batch size that suits
it best, found in a first round. Ours is also measured with all the settings of a default run.

    make bench-pykeen
    python benchmarks/pykeen_speed.py --pykeen .venv-pykeen/bin/python --out results/cpu_speed.json

A run of some graphs or sizes (``--datasets``, ``--numbers``) replaces these in the file and leaves the
others; each says what it was measured with.

One training fact is one positive with all its negatives, the optimiser step included. A query is
one side of a test fact, ranked among all entities under the filter.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import replaced, spread

from golde.benchmark.provenance import provenance
from golde.data.graph import KnowledgeGraph
from golde.data.loading import load_graph

HERE = Path(__file__).parent
DATASETS = ("umls", "fb15k-237")
SIGNATURES = {128: "P8x8 Q9x8", 512: "P16x16 Q17x16"}
TRAIN_BATCH_SIZES = (128, 256, 512, 1024, 2048, 4096, 8192)
MOST_NUMBERS = 1 << 22  # a batch × numbers; PyKEEN keeps several arrays of negatives times as many
SMALL_GRAPH = 1000  # entities; PyKEEN forms queries × entities × numbers, so large ones take fewer
EVALUATE_BATCH_SIZES = {"small": (32, 256, 1024), "large": (1, 4, 16)}
TRIAL_FACTS = 128  # test facts ranked while looking for the best batch size
TARGETS = {"train": 10.0, "evaluate": 5.0}


def sample_of(graph: KnowledgeGraph, limit: int) -> list[int]:
    """Which test facts PyKEEN ranks: all of a small graph, else always the same ``limit``."""
    order = torch.randperm(len(graph.test), generator=torch.Generator().manual_seed(0)).tolist()
    return order if is_small(graph) else order[:limit]


def is_small(graph: KnowledgeGraph) -> bool:
    return len(graph.entities) < SMALL_GRAPH


def take_turn(python: str, script: str, job: dict[str, Any]) -> dict[str, Any]:
    """Run one side in a new process."""
    done = subprocess.run(
        [python, "-W", "ignore", str(HERE / script)],
        input=json.dumps(job),
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYKEEN_HOME": str(Path(tempfile.gettempdir(), "pykeen-home"))},
    )
    if done.returncode:
        raise SystemExit(f"{script} failed (its message is above)")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def best(figures: list[dict[str, Any]]) -> dict[str, Any]:
    return max(figures, key=lambda figure: figure["rate"])


def compare(
    graph: KnowledgeGraph, dataset: str, numbers: int, facts: Path, args: argparse.Namespace
) -> dict[str, Any]:
    """Both sides in turn on one graph at one size."""
    job = {
        "threads": args.threads,
        "warmup": args.warmup,
        "seconds": args.seconds,
        "negatives": args.negatives,
        "sample": sample_of(graph, args.pykeen_facts),
    }
    ours = {
        "dataset": dataset,
        "data_dir": args.data_dir,
        "signature": SIGNATURES[numbers],
        "set": args.set,
    }
    theirs = {
        "facts": str(facts),
        "entities": len(graph.entities),
        "relations": len(graph.relations),
        "numbers": numbers,
        "loss": "nssa",
    }
    sizes = {
        "train_batch_sizes": [s for s in TRAIN_BATCH_SIZES if s * numbers <= MOST_NUMBERS],
        "evaluate_batch_sizes": EVALUATE_BATCH_SIZES["small" if is_small(graph) else "large"],
    }
    few = {"seed": 0, "trial": True, "sample": job["sample"][:TRIAL_FACTS]}
    trials = {
        "golde": take_turn(sys.executable, "golde_side.py", {**job, **ours, **sizes, **few}),
        "pykeen": take_turn(args.pykeen, "pykeen_side.py", {**job, **theirs, **sizes, **few}),
    }
    announce(f"{dataset}, {numbers} numbers: batch sizes chosen")
    ours |= {"trial": False, **chosen_sizes(trials["golde"])}
    theirs |= chosen_sizes(trials["pykeen"])
    turns = []
    for seed in range(args.repeats):
        a = take_turn(sys.executable, "golde_side.py", {**job, **ours, "seed": seed})
        b = take_turn(args.pykeen, "pykeen_side.py", {**job, **theirs, "seed": seed})
        turns.append((a, b))
        announce(f"{dataset}, {numbers} numbers, round {seed + 1} of {args.repeats}")
    return summarise(dataset, numbers, len(graph.test), job, trials, turns)


def chosen_sizes(trial: dict[str, Any]) -> dict[str, list[int]]:
    """The batch size of each task at which a trial was quickest."""
    return {
        f"{task}_batch_sizes": [best(trial[task])["batch_size"]]
        for task in TARGETS
        if task in trial
    }


def summarise(
    dataset: str,
    numbers: int,
    test: int,
    job: dict[str, Any],
    trials: dict[str, dict[str, Any]],
    turns: list[tuple[dict[str, Any], dict[str, Any]]],
) -> dict[str, Any]:
    """Medians, ranges, and the median of the ratios of turns that followed each other."""
    ours, theirs = [a for a, _ in turns], [b for _, b in turns]
    pykeen = {task: spread(b[task][0]["rate"] for b in theirs) for task in TARGETS}
    for a in ours:
        a["train"] = a["train"][0]
    golde = {key: spread(a[key]["rate"] for a in ours) for key in ("train", "train_default")}
    for key in ("evaluate", "evaluate_sample"):
        golde[key] = spread(a[key] for a in ours)
    for key in ("train", "train_default"):
        golde[key] |= {k: ours[0][key][k] for k in ("batch_size", "candidates", "compiled")}
    for task in TARGETS:
        pykeen[task]["batch_size"] = theirs[0][task][0]["batch_size"]
    pykeen["train"]["candidates"] = job["negatives"]
    pykeen["evaluate"]["test_facts"] = len(job["sample"])
    golde["evaluate"]["test_facts"] = test
    golde["evaluate_sample"]["test_facts"] = len(job["sample"])
    return {
        "dataset": dataset,
        "numbers": numbers,
        "signature": SIGNATURES[numbers],
        "golde": golde,
        "pykeen": pykeen,
        "ratio": {
            key: round(
                statistics.median(
                    a / b
                    for a, b in zip(
                        golde[key]["each"], pykeen[key.split("_")[0]]["each"], strict=True
                    )
                ),
                2,
            )
            for key in golde
        },
        "batch_sizes_tried": {
            side: {task: trial[task] for task in TARGETS if task in trial}
            for side, trial in trials.items()
        },
        "pykeen_versions": trials["pykeen"]["versions"],
    }


def table(results: list[dict[str, Any]]) -> str:
    """The figures side by side, medians with their range."""
    lines = [
        "| graph | numbers | | golde | PyKEEN RotatE | ratio | asked |",
        "|---|---|---|---|---|---|---|",
    ]
    rows = {
        "train": "training facts/s, {candidates} candidates",
        "train_default": "training facts/s, {candidates} candidates (default)",
        "evaluate": "test queries/s",
        "evaluate_sample": "test queries/s, same {test_facts} facts",
    }
    for result in results:
        for key, name in rows.items():
            task = key.split("_")[0]
            ours, theirs = result["golde"][key], result["pykeen"][task]
            asked = f"{TARGETS[task]:g}×" if key == task else ""
            lines.append(
                f"| {result['dataset']} | {result['numbers']} | {name.format(**ours)} "
                f"| {_range(ours)} | {_range(theirs)} | {result['ratio'][key]:.1f}× | {asked} |"
            )
    return "\n".join(lines)


def _range(figures: dict[str, Any]) -> str:
    return f"{figures['median']:,.0f} ({figures['min']:,.0f}–{figures['max']:,.0f})"


def announce(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--pykeen", required=True, help="the Python of an environment with PyKEEN")
    add("--out", type=Path, required=True)
    add("--data-dir", help="folder of graphs, <name>/{train,valid,test}.tsv.xz; else GOLDE_DATA")
    add("--datasets", nargs="+", default=DATASETS)
    add("--numbers", nargs="+", type=int, choices=SIGNATURES, default=tuple(SIGNATURES))
    add("--negatives", type=int, default=64)
    add("--repeats", type=int, default=5)
    add("--warmup", type=float, default=3.0, help="seconds of training left out")
    add("--seconds", type=float, default=8.0, help="seconds measured, at least")
    add("--threads", type=int, default=2)
    add(
        "--pykeen-facts",
        type=int,
        default=512,
        help="so many test facts of a large graph for PyKEEN",
    )
    add("--set", action="append", default=[], help="another setting of ours: section.key=value")
    args = parser.parse_args()

    settings = {
        key: getattr(args, key)
        for key in ("negatives", "repeats", "warmup", "seconds", "threads", "set")
    }
    results = []
    for dataset in args.datasets:
        graph = load_graph(dataset, data_dir=args.data_dir)
        with tempfile.TemporaryDirectory() as folder:
            facts = Path(folder, "facts.npz")
            np.savez(facts, **{s: graph.split(s).numpy() for s in ("train", "valid", "test")})
            for numbers in args.numbers:
                load_before = os.getloadavg()
                found = compare(graph, dataset, numbers, facts, args)
                found |= {"settings": settings, "load_average": [load_before, os.getloadavg()]}
                results.append(found | provenance(("torch", "numpy")))
    results = replaced(args.out, results, "dataset", "numbers")
    record = {
        "question": __doc__.splitlines()[0],
        "units": __doc__.split("\n\n")[-1].replace("\n", " ").strip(),
        "results": results,
        "threading": {
            "note": "torch.set_num_threads on both sides, all other threading defaults untouched",
            "environment": {k: v for k, v in os.environ.items() if k.startswith(("OMP_", "KMP_"))},
        },
    }
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(record, indent=2) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
