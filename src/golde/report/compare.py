"""Runs on one graph side by side: figures, and whether their differences from the first mean anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from golde.errors import GoldeError, RunError
from golde.evaluation.evaluate import Evaluation
from golde.evaluation.metrics import HITS, rank_table
from golde.evaluation.protocol import Protocol
from golde.evaluation.significance import Difference, holm, paired_bootstrap
from golde.inference import Run
from golde.progress import Progress, silent
from golde.runs import RunFolder

TESTED = ("mrr", "hits@10")
"""Figures whose differences are tested."""

Open = Callable[[Path], Run]


@dataclass(frozen=True)
class Contestant:
    """One run of a comparison."""

    letter: str
    path: Path
    space: str
    seed: int
    parameters: int
    seconds: float  # of training
    machine: str
    found: Evaluation
    against_first: dict[str, dict[str, Any]]  # by tested figure; empty for the first
    not_kept: str | None  # why its figures could not be stored, if they could not

    def as_dict(self) -> dict[str, Any]:
        """One object, ready for JSON."""
        plain = ("letter", "space", "seed", "parameters", "seconds", "machine", "against_first")
        return {
            "run": str(self.path),
            **{name: getattr(self, name) for name in plain},
            "metrics": self.found.metrics,
            "relations": self.found.relations,
        }


@dataclass(frozen=True)
class Comparison:
    """Runs ranked under one protocol, the first being the one that others are held against."""

    digest: str
    protocol: Protocol
    resamples: int
    seed: int
    runs: list[Contestant]

    def as_dict(self) -> dict[str, Any]:
        """One object, ready for JSON."""
        return {
            "graph": self.protocol.graph,
            "digest": self.digest,
            "protocol": self.protocol.as_dict(),
            "significance": {
                "test": "paired percentile bootstrap over facts, two-sided",
                "resamples": self.resamples,
                "seed": self.seed,
                "correction": "Holm, over the runs held against the first, for each figure",
            },
            "runs": [run.as_dict() for run in self.runs],
        }


def compare(
    paths: Sequence[Path],
    open_run: Open,
    split: str = "test",
    *,
    resamples: int = 10_000,
    seed: int = 0,
    progress: Progress = silent,
) -> Comparison:
    """Compare finished runs on a split, under the standard protocol.

    Ranks kept in a run folder are used; others are found, and stored as ``Run.evaluate`` does. Runs are
    opened one at a time.
    """
    digest = _refuse_unlike(paths)
    contestants, gains = [], []
    for i, path in enumerate(paths):

        def ranked(done: int, total: int, turn: int = i) -> None:
            progress(turn * total + done, len(paths) * total)

        run = open_run(path)
        found, not_kept = _evaluation(run, split, ranked)
        about = run.folder.about()
        gains.append(_by_name(run, split, found))
        contestants.append(
            Contestant(
                letter=_letter(i),
                path=path,
                space=run.config.model.space,
                seed=run.config.training.seed,
                parameters=sum(parameter.numel() for parameter in run.model.parameters()),
                seconds=about["seconds"],
                machine=about["environment"].get("gpu") or about["environment"]["device"],
                found=found,
                against_first={},
                not_kept=not_kept,
            )
        )
    tested = _differences(gains, resamples, seed)
    runs = [
        replace(run, against_first=against)
        for run, against in zip(contestants, [{}, *tested], strict=True)
    ]
    return Comparison(digest, runs[0].found.protocol, resamples, seed, runs)


def _refuse_unlike(paths: Sequence[Path]) -> str:
    """The digest of the one graph, splits included, that all runs were trained on."""
    if len(paths) < 2:
        raise GoldeError("a comparison takes at least two runs: golde compare RUN RUN …")
    places = [path.resolve() for path in paths]
    if twice := [str(path) for path in paths if places.count(path.resolve()) > 1]:
        raise GoldeError(f"{', '.join(twice)}: is one run named twice; name different ones")
    first, *others = (RunFolder(path).about() for path in paths)
    for path, other in zip(paths[1:], others, strict=True):
        if other["digest"] != first["digest"]:
            raise RunError(
                f"{path}: was trained on other facts or another split of them than {paths[0]} "
                f"({_graph(other)}; there {_graph(first)}); only runs on one graph, split alike, "
                "can be compared"
            )
    digest: str = first["digest"]
    return digest


def _graph(about: dict[str, Any]) -> str:
    sizes = "/".join(f"{about[split]:,}" for split in ("train", "valid", "test"))
    return f"{about['graph']} of {sizes} facts, digest {about['digest'][:8]}"


def _letter(place: int) -> str:
    """A, B, … Z, AA, AB, …"""
    before, last = divmod(place, 26)
    return (_letter(before - 1) if before else "") + chr(ord("A") + last)


def _evaluation(run: Run, split: str, progress: Progress) -> tuple[Evaluation, str | None]:
    """The figures of a run, kept or new, and why new ones could not be stored."""
    if (kept := run.kept_evaluation(split)) is not None:
        return kept, None
    found = run.evaluate(split, baselines=False, store=False, progress=progress)
    try:
        stored = run.folder.metrics().get(split)
        if stored is not None and (
            "model" in stored or stored["metrics"]["both"]["mrr"] == found.mrr
        ):
            run.store_ranks(found)  # the figures are there, with baselines and all
        else:
            run.store(found)
    except RunError as error:  # somebody else's run may well be read-only
        return found, str(error)
    return found, None


def _by_name(run: Run, split: str, found: Evaluation) -> Tensor:
    """What each fact contributes to the tested figures, (n, 2), facts in the order of their names.

    Runs on the same facts may number and order them differently.
    """
    graph = run.graph
    names = [
        (graph.entities[head], graph.relations[relation], graph.entities[tail])
        for head, relation, tail in graph.split(split).tolist()
    ]
    order = torch.tensor(sorted(range(len(names)), key=names.__getitem__))
    table = rank_table(found.ranks.realistic, found.ranks.candidates, HITS)
    tail, head = table[:, [2, 4 + HITS.index(10)]].chunk(2)
    return (tail + head)[order] / 2


def _differences(
    contributions: list[Tensor], resamples: int, seed: int
) -> list[dict[str, dict[str, Any]]]:
    """Of every run but the first: the difference of each tested figure from that of the first."""
    first, *others = contributions
    gains = torch.cat([other - first for other in others], dim=1)
    found = paired_bootstrap(gains, resamples, seed)
    by_figure = [found[i :: len(TESTED)] for i in range(len(TESTED))]
    columns = [_described(differences) for differences in by_figure]
    return [dict(zip(TESTED, row, strict=True)) for row in zip(*columns, strict=True)]


def _described(differences: list[Difference]) -> list[dict[str, Any]]:
    """With the p-value corrected for so many runs having been tried."""
    together = holm([one.p for one in differences])
    return [{**asdict(one), "p_holm": p} for one, p in zip(differences, together, strict=True)]
