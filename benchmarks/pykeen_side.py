"""One turn of PyKEEN in ``pykeen_speed.py``, run in an environment that has PyKEEN and not golde.

A job as JSON on standard input; the figures are the last line of the output.
"""

from __future__ import annotations

import json
import logging
import platform
import sys
from contextlib import suppress
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from common import Meter, measure_calls
from pykeen.evaluation import RankBasedEvaluator
from pykeen.models import RotatE
from pykeen.training import SLCWATrainingLoop
from pykeen.training.callbacks import TrainingCallback
from pykeen.triples import CoreTriplesFactory


class Enough(Exception):
    """The clock ends the training."""


class Clock(TrainingCallback):
    """Ticks once a batch. Between two ticks lies one optimiser step, whichever callback comes first."""

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self.meter = meter

    def post_batch(self, epoch: int, batch: Any, **kwargs: Any) -> None:
        if self.meter.tick(len(batch["positives"])):
            raise Enough


def make_model(factory: CoreTriplesFactory, job: dict[str, Any]) -> RotatE:
    # A complex number is two real ones.
    dimension = job["numbers"] // 2
    return RotatE(
        triples_factory=factory, embedding_dim=dimension, loss=job["loss"], random_seed=job["seed"]
    )


def train_rate(
    factory: CoreTriplesFactory, job: dict[str, Any], batch_size: int
) -> dict[str, float | int]:
    """Facts a second of PyKEEN's own loop; a fact with all its negatives counts one."""
    meter = Meter(job["warmup"], job["seconds"])
    loop = SLCWATrainingLoop(
        model=make_model(factory, job),
        triples_factory=factory,
        optimizer="adam",
        negative_sampler="basic",
        negative_sampler_kwargs={"num_negs_per_pos": job["negatives"]},
        automatic_memory_optimization=False,
    )
    with suppress(Enough):
        loop.train(
            factory,
            num_epochs=1_000_000,
            batch_size=batch_size,
            use_tqdm=False,
            callbacks=Clock(meter),
        )
    return {"rate": meter.rate, "steps": meter.steps, "batch_size": batch_size}


def evaluation_rate(
    factory: CoreTriplesFactory, splits: Any, job: dict[str, Any], batch_size: int
) -> dict[str, float | int]:
    """Queries a second of the filtered evaluation of both sides."""
    model = make_model(factory, job)
    test = torch.from_numpy(splits["test"])[torch.tensor(job["sample"])]
    known = [torch.from_numpy(splits[name]) for name in ("train", "valid", "test")]

    def ranked(facts: int) -> object:
        return RankBasedEvaluator(filtered=True).evaluate(
            model,
            test[:facts],
            batch_size=batch_size,
            additional_filter_triples=known,
            use_tqdm=False,
        )

    rate = measure_calls(
        lambda: ranked(len(test)),
        2 * len(test),
        seconds=job["seconds"],
        warm_up=lambda: ranked(min(64, batch_size)),
    )
    return {"rate": rate, "batch_size": batch_size}


def main() -> None:
    job = json.load(sys.stdin)
    torch.set_num_threads(job["threads"])
    logging.disable(logging.WARNING)  # it says once a pass that a CPU could run out of memory
    splits = np.load(job["facts"])
    factory = CoreTriplesFactory(
        torch.from_numpy(splits["train"]),
        num_entities=job["entities"],
        num_relations=job["relations"],
    )
    result = {
        "train": [train_rate(factory, job, size) for size in job["train_batch_sizes"]],
        "evaluate": [
            evaluation_rate(factory, splits, job, size) for size in job["evaluate_batch_sizes"]
        ],
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in ("pykeen", "torch", "numpy")},
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
