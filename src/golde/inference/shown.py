"""Answers as ``predict`` shows them to the questions of validation facts, and which of them are facts.

A fact (h, r, t) asks (h, r, ?) and (?, r, t). Each question is asked once, as if validation facts were not
known: what is a fact of train or test is left out, and of the rest the best are kept. The world is taken
for closed: an answer is right if it is a validation fact, and otherwise a near miss.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from golde.data.graph import KnowledgeGraph
from golde.evaluation.ranking import both_sides
from golde.inference.predict import Predictor
from golde.models import Model
from golde.progress import Progress, silent

MOST_SCORES = 1 << 32
"""Fewer facts are asked for where all would take more scores, minutes of work on a CPU."""

FEWEST_ASKED = 1000
"""How many facts are asked for, if there are as many, whatever that takes."""


class Answers(NamedTuple):
    """The answers to all questions, in the order of questions, then best first; (n,) each, on the CPU."""

    entity: Tensor
    direction: Tensor
    answer: Tensor
    score: Tensor
    right: Tensor


def asked_facts(graph: KnowledgeGraph, seed: int = 0) -> Tensor:
    """The validation facts that are asked for, (m, 3): all, or on large graphs some at random."""
    most = max(FEWEST_ASKED, MOST_SCORES // (2 * len(graph.entities)))
    if len(graph.valid) <= most:
        return graph.valid
    generator = torch.Generator().manual_seed(seed)
    return graph.valid[torch.randperm(len(graph.valid), generator=generator)[:most]]


def shown_answers(
    model: Model, graph: KnowledgeGraph, facts: Tensor, each: int, progress: Progress = silent
) -> Answers:
    """The best ``each`` answers to the questions of some validation facts (m, 3)."""
    unknown = replace(graph, valid=graph.valid[:0])
    predictor = Predictor(model, unknown, top=each, known="drop")
    asked = torch.stack(both_sides(facts, len(graph.relations))[:2]).unique(dim=1)  # (2, Q)
    parts, done = [], 0
    for entity, direction in zip(
        *(one.split(predictor.rows_at_once(asked.shape[1])) for one in asked), strict=True
    ):
        score, answer = predictor.best(entity, direction)  # (B, top)
        row, column = (score > -torch.inf).nonzero().unbind(1)
        entity, direction, answer = entity[row], direction[row], answer[row, column]
        right = graph.known("valid").contains(entity, direction, answer)
        parts.append(Answers(entity, direction, answer, score[row, column].double(), right))
        done += len(score)
        progress(done, asked.shape[1])
    return Answers(*map(torch.cat, zip(*parts, strict=True)))
