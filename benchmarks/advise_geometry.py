"""Is the signature that `golde advise` proposes as good as the paper's choice, or as one geometry alone?

The same training with four signatures of as many numbers an entity:

- chosen: the paper's choice, with its weight of elliptic components; of a set that the paper has not, what
  configs/SET.toml or training would choose;
- advised: what `golde advise` proposes from the training facts (seed 0);
- Euclidean, hyperbolic: as many components as the chosen one has, all of one geometry.

All other settings are those of configs/SET.toml, which were not made for any of them, for a given number of
steps; the weight of a geometry is left out where there is none of it. Each run keeps its last
parameters, and its figures are those of the whole validation split (filtered, both sides, realistic rank on
ties). The test split is not looked at.

    python benchmarks/advise_geometry.py --steps 20000 --out results/advise_geometry.json

The file is written after every training; those that it has are left out.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import torch

from golde.analysis.advise import advise
from golde.benchmark.provenance import provenance
from golde.config import Config
from golde.data.graph import KnowledgeGraph
from golde.data.loading import load_graph
from golde.errors import GoldeError
from golde.geometry import GEOMETRIES, Signature, Term
from golde.runs.atomic import read_json, write_json
from golde.runs.environment import environment
from golde.training import train
from golde.training.defaults import resolve
from golde.training.loop import pick_device

CONFIGS = Path(__file__).parents[1] / "configs"
PAPER = {"wn18rr": "P10x36 Q13x36", "fb15k-237": "P6x28 Q23x28"}
"""The paper's choice."""

WEIGHTS = {"P": 0.5}  # the paper's, for both sets

ALONE = {"Euclidean": "E", "hyperbolic": "Q"}
"""The geometries that are tried alone, by the name of their variant."""

KEY = ("set", "variant", "signature", "seed", "steps")
"""What tells one training from another."""

NEVER = 1e9  # seconds


def base(name: str, graph: KnowledgeGraph) -> Config:
    """The settings of a set, those that are open filled in from the graph."""
    path = CONFIGS / f"{name}.toml"
    config = Config.load(path) if path.is_file() else Config()
    if name in PAPER:
        config = config.with_values(model={"signature": PAPER[name], "weights": WEIGHTS})
    return resolve(config, graph)


def signatures(chosen: Signature, graph: KnowledgeGraph) -> dict[str, Signature]:
    """The variants, each with as many numbers an entity as the chosen one has."""
    return {
        "chosen": chosen,
        "advised": advise(graph, chosen.numbers).signature,
        **{name: alone(letter, chosen) for name, letter in ALONE.items()},
    }


def alone(letter: str, like: Signature) -> Signature:
    """One geometry, in as many components, or as many fewer as share the numbers out evenly."""
    count = next(n for n in range(like.components, 0, -1) if like.numbers % n == 0)
    dimension = like.numbers // count + GEOMETRIES[letter].unstored
    return Signature((Term(letter, dimension, count),))


def settings(
    config: Config, graph: KnowledgeGraph, signature: Signature, seed: int, steps: int
) -> Config:
    """Those of the set, without anything that would end a run early or interrupt it."""
    letters = {term.letter for term in signature}
    weights = {k: weight for k, weight in config.model.weights.items() if k in letters}
    return config.with_values(
        model={"signature": str(signature), "weights": weights},
        training={
            "steps": steps,
            "seed": seed,
            "validate_every": 0,
            "validate_limit": len(graph.valid),  # the figures of the end are those of all of them
            "checkpoint_seconds": NEVER,
        },
    )


def measure(graph: KnowledgeGraph, config: Config, device: str) -> dict[str, Any]:
    """Train, and rank the validation split."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        run = train(graph, Path(folder, "run"), config, device=device)
        seconds = time.monotonic() - began
        figures, resolved = run.metrics()["valid"], run.config()
    gc.collect()  # before the next model is made
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return {
        "validation": figures["metrics"]["both"],
        "protocol": figures["protocol"],
        "seconds": round(seconds, 1),
        "settings": resolved.model_dump(exclude_none=True),
    }


def where(device: str) -> dict[str, Any]:
    """Machine, versions and commit, stored with every training: a file may be gone on with elsewhere."""
    found = provenance(("torch", "triton"))
    found["environment"] = environment(pick_device(device))
    if "gpu" in found["environment"]:
        found["machine"]["gpu"] = found["environment"]["gpu"]
    return found


def study(
    graphs: dict[str, KnowledgeGraph],
    seeds: Sequence[int],
    steps: int,
    out: Path,
    device: str,
) -> None:
    """Every signature of every set, seed after seed, so that a study cut short compares like with like."""
    done: dict[tuple[Any, ...], dict[str, Any]] = {}
    if out.is_file():
        for one in read_json(out)["trainings"]:
            done[tuple(one[part] for part in KEY)] = one
    out.parent.mkdir(parents=True, exist_ok=True)
    configs = {name: base(name, graph) for name, graph in graphs.items()}
    variants = [
        (name, variant, signature)
        for name, graph in graphs.items()
        for variant, signature in signatures(
            Signature.parse(configs[name].model.signature or ""), graph
        ).items()
    ]
    for seed, (name, variant, signature) in product(seeds, variants):
        key = name, variant, str(signature), seed, steps
        if key in done and "failed" not in done[key]:
            continue
        graph = graphs[name]
        try:
            found = measure(graph, settings(configs[name], graph, signature, seed, steps), device)
        except GoldeError as error:  # such as a run that diverged: the others may do better
            found = {"failed": str(error)}
        done[key] = dict(zip(KEY, key, strict=True)) | found | where(device)
        write_json(out, {"question": __doc__.splitlines()[0], "trainings": list(done.values())})
        print(line(done[key]), flush=True)


def line(one: dict[str, Any]) -> str:
    what = f"{one['set']} {one['variant']} ({one['signature']}) seed {one['seed']}, {one['steps']} steps: "
    if "failed" in one:
        return what + one["failed"]
    return what + f"validation MRR {one['validation']['mrr']:.4f}, {one['seconds']} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=list(PAPER))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--data-dir")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    graphs = {name: load_graph(name, data_dir=options.data_dir) for name in options.sets}
    study(graphs, options.seeds, options.steps, options.out, options.device)


if __name__ == "__main__":
    main()
