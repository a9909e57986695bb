"""One turn of our side in ``pykeen_speed.py``: a job as JSON on standard input, figures on the output."""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from common import Meter, measure_calls

from golde.config import Config
from golde.data.graph import KnowledgeGraph
from golde.data.loading import load_graph
from golde.evaluation.evaluate import evaluate
from golde.kernels import can_compile
from golde.models import GoldE
from golde.training.defaults import compiles, resolve
from golde.training.loop import StoppedError, train

ENDLESS = 1_000_000_000


def settings(graph: KnowledgeGraph, job: dict[str, Any], **training: Any) -> Config:
    """What a default run would use at the given size, but for the ``training`` settings given."""
    overrides = [f"model.signature={job['signature']}", f"training.seed={job['seed']}"]
    overrides += [f"training.{key}={value}" for key, value in training.items()]
    return resolve(Config.load(overrides=[*overrides, *job["set"]]), graph)


def train_rate(
    graph: KnowledgeGraph, job: dict[str, Any], **training: Any
) -> dict[str, float | int]:
    """Facts a second of the training loop: sampling, forward, backward, clipping, Adam, checks.

    A fact asked in one direction, with all its candidates, counts one.
    """
    config = settings(graph, job, **training)
    batch = min(config.training.batch_size or 0, 2 * len(graph.train))
    # The clock stops the run, so the schedule has no warm-up and no validation, and whether
    # compiling pays is asked for the steps the run would have had.
    compiled = compiles(config, len(graph.entities), torch.device("cpu"))
    timing = {
        "steps": ENDLESS,
        "warmup": 0.0,
        "validate_every": 0,
        "compile": "on" if compiled else "off",
    }
    meter = Meter(job["warmup"], job["seconds"])
    with tempfile.TemporaryDirectory() as folder, suppress(StoppedError):
        train(
            graph,
            Path(folder, "run"),
            config.with_values(training=timing),
            device="cpu",
            should_stop=lambda: meter.tick(batch),
        )
    return {
        "rate": meter.rate,
        "steps": meter.steps,
        "batch_size": batch,
        "compiled": compiled,
        "candidates": min(config.training.negatives or ENDLESS, len(graph.entities)),
    }


def evaluation_rate(graph: KnowledgeGraph, job: dict[str, Any], chosen: list[int]) -> float:
    """Queries a second of ``evaluate``, both sides of every chosen test fact.

    As with PyKEEN there are no baselines and no intervals, and every pass builds its filter anew.
    """
    entities, relations = len(graph.entities), len(graph.relations)
    model = GoldE(settings(graph, job).model, entities, relations, seed=job["seed"])

    def ranked(chosen: list[int]) -> object:
        rest = torch.ones(len(graph.test), dtype=torch.bool)
        rest[chosen] = False
        known = torch.cat((graph.valid, graph.test[rest]))  # the filter stays whole
        unindexed = replace(graph, valid=known, test=graph.test[chosen])
        return evaluate(model.scorer(), unindexed, baselines=False, bootstrap=0)

    return measure_calls(
        lambda: ranked(chosen),
        2 * len(chosen),
        seconds=job["seconds"],
        warm_up=lambda: ranked(chosen[:64]),
    )


def trained_at(graph: KnowledgeGraph, job: dict[str, Any]) -> list[dict[str, float | int]]:
    """The rate at each batch size of the job, with its negatives, compiled."""
    asked = {"negatives": job["negatives"], "compile": "on" if can_compile() else "off"}
    return [train_rate(graph, job, batch_size=size, **asked) for size in job["train_batch_sizes"]]


def turn(graph: KnowledgeGraph, job: dict[str, Any]) -> dict[str, Any]:
    """Every figure of one turn; a trial looks for the batch size and for nothing else."""
    if job["trial"]:
        return {"train": trained_at(graph, job)}
    return {
        "train": trained_at(graph, job),
        "train_default": train_rate(graph, job),
        "evaluate_sample": evaluation_rate(graph, job, job["sample"]),
        "evaluate": evaluation_rate(graph, job, list(range(len(graph.test)))),
    }


def main() -> None:
    job = json.load(sys.stdin)
    torch.set_num_threads(job["threads"])
    graph = load_graph(job["dataset"], data_dir=job["data_dir"])
    print(json.dumps(turn(graph, job)))


if __name__ == "__main__":
    main()
