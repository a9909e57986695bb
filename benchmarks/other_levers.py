"""What do changes of the model, the loss or the training that are no settings do to accuracy?

The configuration of a set is trained as it is and with one change at a time (``levers.py``):

- component-dropout: a step scores by some of the components, drawn anew for every batch;
- relation-prediction: a term that predicts the relation of some facts from head and tail;
- distance-penalty: a penalty on the squared distances of the facts of a batch;
- published-beta: β as the code published with the paper reads it, a scale of the distance at curvature −1;
- weight-averaging: all parameters are replaced by their moving average at the end;
- then-cross-entropy: softmax cross-entropy follows the configured loss for the last share of the steps;
- ellipsoid-geodesic, lorentzian, lorentzian-squared: distances that the paper names beside those it takes, of
  points scaled onto one ellipsoid and in the space around the hyperboloid.

Settings are otherwise those of the configuration, steps and negatives aside if given. Each run keeps its
last parameters, and its figures are those of the whole validation split (filtered, both sides, realistic rank
on ties). The test split is not looked at.

    python benchmarks/other_levers.py --steps 1500 --negatives 300 --jobs 4 --out results/other_levers.json

The file is written after every training; those that it has with the same settings are left out, and those of
a configuration that has changed since stay in it, for a table of their own.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import torch
from levers import LEVERS, in_force
from trainings import Training, Trainings, attempted, measure, to_the_end, where

from golde.config import Config
from golde.data.graph import KnowledgeGraph
from golde.data.loading import load_graph
from golde.errors import ConfigError, GoldeError
from golde.report.processes import Command, run_side_by_side
from golde.runs.atomic import read_json
from golde.training.defaults import resolve

CONFIGS = Path(__file__).parents[1] / "configs"

KEY = ("configuration", "lever", "seed", "steps", "negatives")
"""What tells one training from another."""


class Task(NamedTuple):
    """One training: a configuration on its graph, with all settings filled in, and what else is changed."""

    file: Path
    graph: KnowledgeGraph
    config: Config
    lever: str

    @property
    def key(self) -> tuple[Any, ...]:
        settings = self.config.training
        return self.file.stem, self.lever, settings.seed, settings.steps, settings.negatives

    def train(self, device: str) -> Training:
        torch.manual_seed(self.config.training.seed)  # levers draw from torch's own generators
        with in_force(LEVERS[self.lever]):
            return attempted(measure, self.graph, self.config, device)


def tasks(
    files: Sequence[Path],
    levers: Sequence[str],
    seeds: Sequence[int],
    *,
    steps: int | None,
    negatives: int | None,
    data_dir: Path | None,
) -> list[Task]:
    """Every lever of every configuration, seed after seed: a study cut short compares like with like."""
    bases = {}
    for file in files:
        config = Config.load(file)
        if (name := config.graph) is None:
            raise ConfigError(f"{file}: names no graph; add a line such as graph = 'wn18rr'")
        given = {"steps": steps, "negatives": negatives}
        config = config.with_values(
            training={k: v for k, v in given.items() if v is not None},
            evidence={"hops": 0, "joined": False},
        )
        graph = load_graph(name, data_dir=data_dir)
        if not len(graph.valid):
            raise GoldeError(f"{name}: has no validation facts to judge by; name a graph that has")
        bases[file] = graph, resolve(config, graph)
    return [
        Task(file, graph, to_the_end(config, graph, seed), lever)
        for seed, (file, (graph, config)), lever in product(seeds, bases.items(), levers)
    ]


def study(lacking: Sequence[Task], trainings: Trainings, device: str) -> None:
    """One training after another."""
    for task in lacking:
        note(task, task.train(device) | where(device), trainings)


def study_side_by_side(
    lacking: Sequence[Task],
    trainings: Trainings,
    device: str,
    *,
    jobs: int,
    data_dir: Path | None,
) -> None:
    """Each training in a process of its own, by this script, ``jobs`` of them at a time."""
    with tempfile.TemporaryDirectory() as folder:
        by_name = {str(number): task for number, task in enumerate(lacking)}
        commands = {}
        for name, task in by_name.items():
            settings = task.config.training
            options = {"--levers": task.lever, "--seeds": settings.seed, "--steps": settings.steps}
            options |= {"--negatives": settings.negatives, "--device": device}
            options |= {"--data-dir": data_dir} if data_dir else {}
            options |= {"--out": Path(folder, f"{name}.json")}
            words = [
                sys.executable,
                __file__,
                task.file,
                *(w for pair in options.items() for w in pair),
            ]
            commands[name] = Command([str(word) for word in words], Path(folder, f"{name}.log"))

        def tell(name: str, code: int) -> None:
            if code == 0:
                (found,) = read_json(Path(folder, f"{name}.json"))["trainings"]
            else:
                said = commands[name].log.read_text("utf-8", errors="replace").split()
                found = {"failed": f"exit code {code}: {' '.join(said)[-200:]}"} | where(device)
            note(by_name[name], found | {"trainings_at_a_time": jobs}, trainings)

        run_side_by_side(commands, jobs, tell=tell)


def note(task: Task, found: Training, trainings: Trainings) -> None:
    """Write a training down, and say how it went."""
    one = {"trainings_at_a_time": 1} | dict(zip(KEY, task.key, strict=True)) | found
    trainings.add(one)
    what = f"{one['configuration']} {one['lever']} seed {one['seed']}, {one['steps']} steps: "
    if "failed" in one:
        print(what + one["failed"], flush=True)
    else:
        mrr = one["validation"]["mrr"]
        print(f"{what}validation MRR {mrr:.4f}, {one['seconds']} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    both = [CONFIGS / "wn18rr.toml", CONFIGS / "fb15k-237.toml"]
    parser.add_argument("files", nargs="*", type=Path, default=both, metavar="CONFIGURATION")
    parser.add_argument(
        "--levers", nargs="+", choices=LEVERS, default=list(LEVERS), metavar="LEVER"
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--steps", type=int, help="in place of the configuration's")
    parser.add_argument("--negatives", type=int, help="in place of the configuration's")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time, each a process")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    try:
        asked = tasks(
            options.files,
            options.levers,
            options.seeds,
            steps=options.steps,
            negatives=options.negatives,
            data_dir=options.data_dir,
        )
        question = __doc__.splitlines()[0]
        trainings = Trainings(options.out, question, KEY, keep_other_settings=True)
        lacking = [task for task in asked if not trainings.has(task.config, *task.key)]
        if options.jobs > 1:
            study_side_by_side(
                lacking, trainings, options.device, jobs=options.jobs, data_dir=options.data_dir
            )
        else:
            study(lacking, trainings, options.device)
    except GoldeError as error:
        raise SystemExit(f"other_levers.py: {error}") from None


if __name__ == "__main__":
    main()
