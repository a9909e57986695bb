"""Probabilities of answers several hops away, fitted anew for every path that is asked.

P(a path leads from e to t | its score s) = σ(slope·s + offset), or an isotonic curve, as the run's
calibration has it. It is fitted to ends that this very path has by validation facts and not by training
facts, against other entities that training facts show at the end of its last hop. Probabilities of the
single hops are not multiplied: hops are not right or wrong independently of each other, and the entities in
between are the best of many, not one claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from golde.data.graph import SPLITS, KnowledgeGraph
from golde.evaluation.calibration import FEWEST_FACTS, Map, balanced, fit, with_prior
from golde.inference.calibration import Calibration
from golde.inference.paths import PathAnswer, beam_scores, composed_scores, reached, reversed_path
from golde.inference.search import SCORES_AT_ONCE
from golde.models import Model
from golde.progress import Progress, silent

MOST_PATHS = 100
"""Held-out paths that are fitted to: as many queries more."""

MOST_SCORES = 1 << 26
"""There are fewer where so many scores in the last hop, a minute's work, would not do; but not below
three times as many as a fit needs."""

NEGATIVES = 10
"""Wrong ends drawn for each of them, if there are as many."""

_TRIES = 4  # draws for each negative, and walks for each path, that are wanted


def with_probabilities(
    answers: Sequence[PathAnswer],
    model: Model,
    graph: KnowledgeGraph,
    directions: Sequence[int],
    beam: int | None,
    calibration: Calibration,
    progress: Progress = silent,
) -> list[PathAnswer]:
    """The answers to a path with their probabilities; as they are where too few facts tell of it."""
    curve = path_curve(model, graph, directions, beam, calibration.method, progress)
    if curve is None:
        return list(answers)
    scores = np.array([answer.score for answer in answers], dtype=np.float64)
    found = with_prior(curve(scores), path_prior(calibration)).tolist()
    return [replace(one, probability=p) for one, p in zip(answers, found, strict=True)]


def path_prior(calibration: Calibration) -> float:
    """How probable a path is before its score is seen: as the calibration has it, or else even chances."""
    return 0.5 if calibration.prior is None else calibration.prior


def path_curve(
    model: Model,
    graph: KnowledgeGraph,
    directions: Sequence[int],
    beam: int | None,
    method: str,
    progress: Progress = silent,
    seed: int = 0,
) -> Map | None:
    """The curve from scores to probabilities, right and wrong ends balanced; None where either is too few."""
    generator = torch.Generator().manual_seed(seed)
    affordable = MOST_SCORES // (model.entities * (beam or 1))
    most = min(MOST_PATHS, max(3 * FEWEST_FACTS[method], affordable))
    held_out, facts = held_out_paths(graph, directions, most, generator)
    if facts < FEWEST_FACTS[method]:
        return None
    wrong, whose = wrong_ends(graph, directions, held_out[:, 0], generator)
    if len(wrong) < FEWEST_FACTS[method]:
        return None
    row = torch.cat((torch.arange(len(held_out)), whose))
    ends = torch.cat((held_out[:, 1], wrong))
    scores = _scores(model, held_out[:, 0], directions, beam, row, ends, progress)
    labels, one_path = np.arange(len(row)) < len(held_out), np.zeros(len(row), dtype=np.int64)
    weights = balanced(labels, one_path)
    return fit(scores.double().numpy(), labels, one_path, weights, method).overall


def held_out_paths(
    graph: KnowledgeGraph,
    directions: Sequence[int],
    most: int,
    generator: torch.Generator,
    split: str = "valid",
) -> tuple[Tensor, int]:
    """Starts and ends, (n, 2), that the facts of a split join and those of the splits before it do not.

    Each is by way of a fact of the split at a hop that no other is by way of, the other hops being facts
    drawn at random, of the split or before it. The second result is how many different facts those are.
    """
    before = SPLITS[: SPLITS.index(split)]
    relations, held_out = len(graph.relations), graph.split(split)
    known = graph.known(*before, split)

    def walk(entity: int, hops: Sequence[int]) -> int | None:
        for direction in hops:
            _, answers = known.answers(torch.tensor([entity]), torch.tensor([direction]))
            if not len(answers):
                return None
            entity = int(answers[torch.randint(len(answers), (), generator=generator)])
        return entity

    steps = [
        (fact, hop)
        for hop, direction in enumerate(directions)
        for fact in (held_out[:, 1] == direction % relations).nonzero()[:, 0].tolist()
    ]
    order = torch.randperm(len(steps), generator=generator)[: _TRIES * most].tolist()
    found: dict[tuple[int, int], int] = {}
    for fact, hop in (steps[i] for i in order):
        head, _, tail = held_out[fact].tolist()
        near, far = (head, tail) if directions[hop] < relations else (tail, head)
        start = walk(near, reversed_path(directions[:hop], relations))
        end = walk(far, directions[hop + 1 :])
        if start is None or end is None or (start, end) in found:
            continue
        if end not in reached(graph, start, directions, *before):
            found[start, end] = fact
        if len(found) == most:
            break
    return torch.tensor(list(found), dtype=torch.int64).view(-1, 2), len(set(found.values()))


def wrong_ends(
    graph: KnowledgeGraph, directions: Sequence[int], starts: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Ends of the right kind that no facts lead to, (m,), and whose of the starts each is, (m,).

    They are drawn from those that training facts show at the end of the last hop.
    """
    relations = len(graph.relations)
    head, _, tail = graph.train[graph.train[:, 1] == directions[-1] % relations].unbind(1)
    pool = (tail if directions[-1] < relations else head).unique()
    found, whose = [starts[:0]], [starts[:0]]
    for row, start in enumerate(starts.tolist()):
        tried = torch.randperm(len(pool), generator=generator)[: _TRIES * NEGATIVES]
        others = pool[tried]
        right = reached(graph, start, directions)
        others = others[~torch.isin(others, right)][:NEGATIVES]
        found.append(others)
        whose.append(torch.full_like(others, row))
    return torch.cat(found), torch.cat(whose)


@torch.no_grad()
def _scores(
    model: Model,
    starts: Tensor,
    directions: Sequence[int],
    beam: int | None,
    row: Tensor,
    ends: Tensor,
    progress: Progress,
) -> Tensor:
    """The score of each end (n,) for the start in each row (n,), on the CPU, in bounded memory."""
    device, scores = model.device, torch.empty(len(ends), dtype=model.entity.dtype)
    path = torch.tensor([directions], device=device)
    at_once = max(1, SCORES_AT_ONCE // (model.entities * (beam or 1)))
    for first in range(0, len(starts), at_once):
        asked = starts[first : first + at_once].to(device)
        paths = path.expand(len(asked), -1)
        if beam is None:
            found = composed_scores(model, asked, paths)
        else:
            found = beam_scores(model, asked, paths, beam)[0]
        here = (row >= first) & (row < first + len(asked))
        scores[here] = found[(row[here] - first).to(device), ends[here].to(device)].cpu()
        progress(first + len(asked), len(starts))
    return scores
