"""The graph that ships with GoldE: countries, cities, languages, currencies and how they hang
together. ``docs/world.md`` says what it holds; ``scripts/build_world.py`` builds it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from golde.data.graph import SPLITS, KnowledgeGraph
from golde.data.world_facts import Fact, world_facts

PATTERNS = ("symmetry", "inversion", "composition", "hierarchy")
"""Ways in which the facts of ``load_patterns`` follow from facts in train."""


@dataclass(frozen=True)
class Question:
    """A query in words; the end that is asked for is None."""

    text: str
    relation: str
    head: str | None = None
    tail: str | None = None


QUESTIONS = (
    Question("Which currency does Latvia use?", "uses currency", head="Latvia"),
    Question("Which countries border Peru?", "borders", head="Peru"),
    Question("In which country is Osaka?", "located in", head="Osaka"),
    Question("Which language is official in Uruguay?", "official language", head="Uruguay"),
    Question("In which part of Africa is Chad?", "located in", head="Chad"),
    Question("Which time does Kraków keep?", "in time zone", head="Kraków"),
    Question("In which script is Bulgarian written?", "written in", head="Bulgarian"),
    Question("Among which languages is Ukrainian?", "in family", head="Ukrainian"),
    Question("Which countries pay in Swiss francs?", "uses currency", tail="Swiss Franc"),
    Question("Of which country is Nairobi the capital?", "capital of", head="Nairobi"),
)
"""The first eight have an answer that is in test, so not in train."""


@cache
def load_world() -> KnowledgeGraph:
    """The shipped graph with its fixed splits."""
    train, valid, test = (world_facts()[split] for split in SPLITS)
    return KnowledgeGraph.from_triples(train, valid, test, name="world")


def load_patterns() -> dict[str, Tensor]:
    """Facts outside the three splits that follow from facts in train, by pattern: (n, 3) each.

    symmetry: the mirror is in train. inversion: the inverse is. composition: two steps of
    ``located in`` make one ``within``. hierarchy: three or more steps do. They are true facts, so
    a filtered ranking of them should also leave out the other answers given here.
    """
    graph, facts = load_world(), world_facts()
    return {pattern: _triples(graph, facts[pattern]) for pattern in PATTERNS}


def _triples(graph: KnowledgeGraph, facts: list[Fact]) -> Tensor:
    heads, relations, tails = zip(*facts, strict=True)
    columns = graph.entities.ids(heads), graph.relations.ids(relations), graph.entities.ids(tails)
    return torch.stack(columns, dim=1)
