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
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from trainings import Trainings, attempted, measure, to_the_end, where

from golde.analysis.advise import advise
from golde.config import Config
from golde.data.graph import KnowledgeGraph
from golde.data.loading import load_graph
from golde.geometry import GEOMETRIES, Signature, Term
from golde.training.defaults import resolve

CONFIGS = Path(__file__).parents[1] / "configs"
PAPER = {"wn18rr": "P10x36 Q13x36", "fb15k-237": "P6x28 Q23x28"}
"""The paper's choice."""

WEIGHTS = {"P": 0.5}  # the paper's, for both sets

ALONE = {"Euclidean": "E", "hyperbolic": "Q"}
"""The geometries that are tried alone, by the name of their variant."""

KEY = ("set", "variant", "signature", "seed", "steps")
"""What tells one training from another."""


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
    changed = config.with_values(
        model={"signature": str(signature), "weights": weights}, training={"steps": steps}
    )
    return to_the_end(changed, graph, seed)


def study(
    graphs: dict[str, KnowledgeGraph],
    seeds: Sequence[int],
    steps: int,
    out: Path,
    device: str,
) -> None:
    """Every signature of every set, seed after seed, so that a study cut short compares like with like."""
    trainings = Trainings(out, __doc__.splitlines()[0], KEY)
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
        if trainings.get(*key):
            continue
        config = settings(configs[name], graphs[name], signature, seed, steps)
        found = attempted(measure, graphs[name], config, device)
        one = dict(zip(KEY, key, strict=True)) | found | where(device)
        trainings.add(one)
        print(line(one), flush=True)


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
