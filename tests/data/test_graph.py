"""Vocabulary and graph."""

from __future__ import annotations

import random

import pytest
import torch

from golde.data.graph import KnowledgeGraph
from golde.data.vocabulary import Vocabulary
from golde.errors import GoldeError

FACTS = [("ann", "knows", "bob"), ("bob", "knows", "cid"), ("cid", "likes", "ann")]


def test_names_and_ids_are_each_others_inverse() -> None:
    words = Vocabulary(["b", "a", "c"])
    assert [words.id(name) for name in words] == [0, 1, 2]
    assert words.ids(["c", "b"]).tolist() == [2, 0]
    assert "a" in words
    assert "d" not in words
    with pytest.raises(GoldeError, match="'a' is listed twice"):
        Vocabulary(["a", "b", "a"])


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("germany", "Germany"), ("Untied Kingdom", "United Kingdom"), ("Netherland", "Netherlands")],
)
def test_a_misspelt_name_gets_the_closest_ones(wrong: str, meant: str) -> None:
    filler = [f"city number {i}" for i in range(500)]
    countries = Vocabulary([*filler, "Germany", "United Kingdom", "Netherlands"], "entity")
    assert countries.closest(wrong)[0] == meant
    with pytest.raises(GoldeError, match=rf"unknown entity '{wrong}'; did you mean '{meant}'"):
        countries.id(wrong)
    assert countries.closest("xyzzy") == []


def test_ids_follow_first_appearance_and_repeated_rows_go() -> None:
    graph = KnowledgeGraph.from_triples([*FACTS, FACTS[0]], [("dan", "likes", "ann")])
    assert graph.entities.names == ("ann", "bob", "cid", "dan")
    assert graph.relations.names == ("knows", "likes")
    assert graph.train.tolist() == [[0, 0, 1], [1, 0, 2], [2, 1, 0]]
    assert graph.valid.tolist() == [[3, 1, 0]]
    assert graph.test.shape == (0, 3)
    assert graph.duplicates == 1
    assert graph.notes == ("train: 1 duplicate row dropped",)


def test_known_facts_of_chosen_splits() -> None:
    graph = KnowledgeGraph.from_triples(FACTS[:2], test=FACTS[2:])
    asked = graph.test[:, 0], graph.test[:, 1]
    assert graph.known().counts(*asked).tolist() == [1]
    assert graph.known("train").counts(*asked).tolist() == [0]
    assert graph.known("valid", "train") is graph.known("train", "valid")
    with pytest.raises(GoldeError, match="unknown split 'dev'"):
        graph.split("dev")


def test_the_digest_sees_content_only() -> None:
    facts = [(f"e{i}", f"r{i % 3}", f"e{i * i % 17}") for i in range(40)]
    digest = KnowledgeGraph.from_triples(facts, FACTS, FACTS[:1]).digest
    shuffled = random.Random(0).sample(facts, len(facts))
    other = KnowledgeGraph.from_triples(shuffled, FACTS[::-1], FACTS[:1], name="other")
    assert not torch.equal(other.train, KnowledgeGraph.from_triples(facts).train)
    assert other.digest == digest
    changed = [
        KnowledgeGraph.from_triples(facts[1:], FACTS, FACTS[:1]),
        KnowledgeGraph.from_triples(facts, FACTS[1:], FACTS[:1]),
        KnowledgeGraph.from_triples(facts, FACTS[:1], FACTS),
        KnowledgeGraph.from_triples([(h, r, t + "'") for h, r, t in facts], FACTS, FACTS[:1]),
    ]
    assert len({digest, *(graph.digest for graph in changed)}) == 5


@pytest.mark.parametrize("fact", [("a", "r"), ("a", " ", "b"), ("a", "r", 3)])
def test_a_fact_is_three_names(fact: tuple[str, ...]) -> None:
    with pytest.raises(GoldeError, match=r"train\[1\] is .* three non-empty strings"):
        KnowledgeGraph.from_triples([("a", "r", "b"), fact])  # type: ignore[list-item]
