"""Whom to ask: kinds by hand, gaps that are planted, and new entities."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from golde.api import load_run, train
from golde.config import Config
from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError
from golde.inference import Run
from golde.inference.heads import Heads
from golde.training.extend import extend

Fact = tuple[str, str, str]


def asked(graph: KnowledgeGraph, relation: str, rule: str = "kind", **more: float) -> set[str]:
    ids = Heads(graph, rule, **more).of(graph.relations.id(relation))
    assert ids.tolist() == sorted(set(ids.tolist()))
    return {graph.entities[i] for i in ids.tolist()}


TOWNS = [
    *((f"t{i}", "lies in", "land") for i in range(6)),
    *((f"t{i}", "twin of", f"t{i + 1}") for i in range(5)),
    *((f"t{i}", "has mayor", f"m{i}") for i in range(4)),
    ("land", "has mayor", "m9"),
]


def test_the_right_kind_by_hand() -> None:
    graph = KnowledgeGraph.from_triples(TOWNS)
    # Of those that lie in something 4 of 6 have a mayor, of twins 4 of 5, of their twins 3 of 5.
    kind = {f"t{i}" for i in range(6)} | {"land"}
    assert asked(graph, "has mayor", share=0.5, several=1.0) == kind
    assert asked(graph, "has mayor", share=0.7, several=1.0) == kind - {"t5"}  # t4 is a twin
    assert asked(graph, "has mayor", share=0.9, several=1.0) == kind - {"t4", "t5"}
    # Each has one, so those that have one are not asked.
    assert asked(graph, "has mayor", share=0.5, several=1.5) == {"t4", "t5"}
    # Of those with a mayor 4 of 5 lie in something, so the land may; a mayor may not.
    assert asked(graph, "lies in", share=0.5, several=1.0) == kind
    assert asked(graph, "lies in", share=0.9, several=1.0) == kind - {"land"}


def test_an_answer_in_any_split_is_an_answer() -> None:
    graph = KnowledgeGraph.from_triples(TOWNS, valid=[("t4", "has mayor", "m4")])
    assert asked(graph, "has mayor") == {"t5"}


def test_a_relation_with_several_tails_asks_for_more() -> None:
    more = [(f"t{i}", "has mayor", f"m{i + 1}") for i in range(4)]
    graph = KnowledgeGraph.from_triples(TOWNS, test=more)  # 9 facts, 5 heads
    assert asked(graph, "has mayor", several=1.8) >= {"t0", "t5"}
    assert asked(graph, "has mayor", several=1.81) == {"t4", "t5"}


def test_known_heads_and_all() -> None:
    graph = KnowledgeGraph.from_triples(TOWNS, valid=[("t5", "has mayor", "m5")])
    assert asked(graph, "has mayor", "known") == {"t0", "t1", "t2", "t3", "t5", "land"}
    assert asked(graph, "has mayor", "all") == set(graph.entities)
    with pytest.raises(GoldeError, match="heads is 'some'; it must be one of kind, known, all"):
        Heads(graph, "some")


STUDIOS, LANDS, FILMS = 15, 5, 120


@dataclass(frozen=True)
class Planted:
    """A run, and the facts it lacks that follow from others."""

    run: Run
    gaps: set[Fact]


def film(i: int) -> list[Fact]:
    """A film is from where its studio is."""
    studio = i % STUDIOS
    made = (f"film {i}", "made by", f"studio {studio}")
    return [made, (f"film {i}", "from", f"land {studio % LANDS}")]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    """Every sixth film lacks its country."""
    lacking = [film(i)[1] for i in range(0, FILMS, 6)]
    facts = [fact for i in range(FILMS) for fact in film(i) if fact not in lacking]
    facts += [(f"studio {s}", "based in", f"land {s % LANDS}") for s in range(STUDIOS)]
    settings = {"steps": 300, "batch_size": 256, "negatives": 32, "learning_rate": 0.03}
    config = Config().with_values(model={"signature": "P4x4"}, training=settings)
    out = tmp_path_factory.mktemp("runs") / "films"
    graph = KnowledgeGraph.from_triples(facts, name="films")
    return Planted(train(graph, out, config, device="cpu"), set(lacking))


def test_gaps_are_found(planted: Planted) -> None:
    run, gaps = planted.run, planted.gaps
    best = [fact.fact for fact in run.complete(2 * len(gaps))]
    assert len(gaps & set(best[: len(gaps)])) > 0.6 * len(gaps)
    assert len(gaps & set(best)) > 0.8 * len(gaps)
    assert not gaps & {fact.fact for fact in run.complete(100_000, heads="known")}
    # Films have one country each: nobody who has one is asked.
    assert {head for head, relation, _ in best if relation == "from"} <= {g[0] for g in gaps}
    everyone = [fact.fact for fact in run.complete(100_000, heads="all")]
    assert gaps <= set(everyone)
    assert ("land 0", "from", "land 1") in everyone


def test_a_new_entity_is_asked(planted: Planted, tmp_path: Path) -> None:
    made, missing = film(FILMS + 4)
    new = load_run(extend(planted.run.folder.path, [made], tmp_path / "new").path, device="cpu")
    found = [fact.fact for fact in new.complete(100, relations=["from"])]
    assert missing in found
    of_it = [fact for fact in found if fact[0] == missing[0]]
    assert of_it[0] == missing
