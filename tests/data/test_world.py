from __future__ import annotations

import hashlib
import lzma
from collections import Counter, defaultdict
from importlib.resources import files
from pathlib import Path

import pytest
from torch import Tensor

from golde.data.graph import SPLITS, KnowledgeGraph
from golde.data.world import PATTERNS, QUESTIONS, load_patterns, load_world
from golde.data.world_facts import world_counts

Fact = tuple[str, str, str]
PAGE = Path(__file__).parents[2] / "docs" / "world.md"
INVERSES = {"contains": "located in", "capital of": "has capital"}


def named(graph: KnowledgeGraph, triples: Tensor) -> set[Fact]:
    names, relations = graph.entities, graph.relations
    return {(names[h], relations[r], names[t]) for h, r, t in triples.tolist()}


@pytest.fixture(scope="module")
def parts() -> dict[str, set[Fact]]:
    """Every split and every pattern, by name."""
    graph, patterns = load_world(), load_patterns()
    parts = {split: named(graph, graph.split(split)) for split in SPLITS}
    return parts | {pattern: named(graph, patterns[pattern]) for pattern in PATTERNS}


def test_shipped_content_is_the_one_released() -> None:
    packed = files("golde.data").joinpath("shipped", "world.tsv.xz").read_bytes()
    assert len(packed) < 400_000
    digest = hashlib.sha256(lzma.decompress(packed)).hexdigest()
    assert digest == "f679576e7e21efb1c64101fb841c0057259ed2ad159a7f5d0fe261522a3a3e9e"
    assert load_world().notes == ()


def test_counts_without_the_graph_are_those_of_the_graph() -> None:
    graph, counts = load_world(), world_counts()
    assert (counts.entities, counts.relations) == (len(graph.entities), len(graph.relations))
    for split in SPLITS:
        assert getattr(counts, split) == len(graph.split(split))


def test_page_shows_the_counts(parts: dict[str, set[Fact]]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    table = page.split("<!-- counts -->")[1].split("<!-- /counts -->")[0].strip().splitlines()
    shown = {}
    for line in table[2:]:
        relation, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        shown[relation] = [int(cell) for cell in cells]
    found: dict[str, list[int]] = {"all": [len(facts) for facts in parts.values()]}
    for column, facts in enumerate(parts.values()):
        for relation, count in Counter(r for _, r, _ in facts).items():
            found.setdefault(relation, [0] * len(parts))[column] = count
    assert shown == found


def test_parts_are_disjoint_and_of_the_promised_size(parts: dict[str, set[Fact]]) -> None:
    total = sum(len(facts) for facts in parts.values())
    assert len(set.union(*parts.values())) == total
    assert 5_000 < total < 10_000
    for split in ("valid", "test"):
        assert 0.09 < len(parts[split]) / total < 0.11


def test_no_pair_of_entities_is_divided_between_splits(parts: dict[str, set[Fact]]) -> None:
    where = defaultdict(set)
    for split in SPLITS:
        for head, _, tail in parts[split]:
            where[frozenset((head, tail))].add(split)
    assert [pair for pair, splits in where.items() if len(splits) > 1] == []


def test_held_out_facts_are_about_things_train_shows(parts: dict[str, set[Fact]]) -> None:
    degree = Counter(entity for h, _, t in parts["train"] for entity in (h, t))
    answers = Counter((r, t) for _, r, t in parts["train"])
    for head, relation, tail in parts["valid"] | parts["test"]:
        assert min(degree[head], degree[tail]) >= 2
        assert relation == "contains" or answers[relation, tail] >= 2, (relation, tail)


def test_mirrors_and_inverses_are_complete(parts: dict[str, set[Fact]]) -> None:
    facts = set.union(*parts.values())
    for head, relation, tail in facts:
        if relation in ("borders", "near"):
            assert (tail, relation, head) in facts
        if relation in INVERSES:
            assert (tail, INVERSES[relation], head) in facts


def test_every_place_lies_in_the_world(parts: dict[str, set[Fact]]) -> None:
    located = [(h, t) for split in SPLITS for h, r, t in parts[split] if r == "located in"]
    parent = dict(located)
    assert len(parent) == len(located)
    for place in parent:
        steps = 0
        while place in parent:
            place, steps = parent[place], steps + 1
        assert place == "World"
        assert steps <= 5


def test_patterns_follow_from_train(parts: dict[str, set[Fact]]) -> None:
    train = parts["train"]
    assert all((t, r, h) in train for h, r, t in parts["symmetry"])
    assert all((t, INVERSES[r], h) in train for h, r, t in parts["inversion"])
    parent = {h: t for h, r, t in train if r == "located in"}

    def steps(head: str, ancestor: str) -> int:
        count = 0
        while head != ancestor:
            head, count = parent[head], count + 1
        return count

    assert {(r, steps(h, t)) for h, r, t in parts["composition"]} == {("within", 2)}
    assert {(r, steps(h, t) >= 3) for h, r, t in parts["hierarchy"]} == {("within", True)}
    assert {steps(h, t) >= 2 for h, r, t in train if r == "within"} == {True}
    shown = {h for h, r, _ in train if r == "within"}
    assert not shown & {h for h, _, _ in parts["composition"] | parts["hierarchy"]}


def test_questions_can_be_asked_and_most_are_not_answered_by_train(
    parts: dict[str, set[Fact]],
) -> None:
    assert len(QUESTIONS) >= 8
    held_out = 0
    for question in QUESTIONS:
        assert (question.head is None) != (question.tail is None)
        answered = {
            split
            for split in SPLITS
            for head, relation, tail in parts[split]
            if relation == question.relation and question.head in (head, None)
            if question.tail in (tail, None)
        }
        assert answered, question.text
        held_out += "test" in answered
    assert held_out == 8
