"""Planted shapes get the geometry that suits them, and more of it where there is more of them."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import planted
import pytest

from golde.analysis.advise import advise, component_size, fact_shares, propose
from golde.analysis.shape_picture import draw_shapes
from golde.analysis.structure import Structure
from golde.data import synthetic
from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError, MissingExtraError
from golde.geometry import Signature


def numbers_of(signature: Signature) -> dict[str, int]:
    return {term.letter: term.numbers * term.count for term in signature}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("shape", "expected"),
    {
        "binary tree": "Q9x16",
        "wide tree": "Q9x16",
        "grown tree": "Q9x16",
        "ancestors": "Q9x16",
        "one ring": "P8x16",
        "many rings": "P8x16",
        "cycles with gaps": "P8x16",
        "symmetric": "P8x16",
        "chain": "E8x16",
        "grid": "E8x16",
    }.items(),
)
def test_a_planted_shape_gets_its_geometry(shape: str, expected: str, seed: int) -> None:
    graphs = {
        "binary tree": lambda: planted.graph(planted.tree(2, 8)),
        "wide tree": lambda: planted.graph(planted.tree(6, 3)),
        "grown tree": lambda: planted.graph(planted.grown_tree(800, seed)),
        "ancestors": lambda: synthetic.tree(seed=seed),
        "one ring": lambda: planted.graph(planted.ring(101)),
        "many rings": lambda: planted.graph(planted.rings(40, 7)),
        "cycles with gaps": lambda: synthetic.cycles(seed=seed),
        "symmetric": lambda: synthetic.symmetric(seed=seed),
        "chain": lambda: planted.graph(planted.chain(300)),
        "grid": lambda: planted.graph(planted.grid(16)),
    }
    assert str(advise(graphs[shape](), 128, seed=seed).signature) == expected


@pytest.mark.parametrize("seed", range(3))
def test_a_mixture_gets_a_product_in_proportion(seed: int) -> None:
    tree = planted.tree(3, 5)  # 363 facts
    more_hyperbolic = []
    for rings in (10, 26, 80):
        graph = planted.graph([*tree, *planted.rings(rings, 14)])
        numbers = numbers_of(advise(graph, 128, seed=seed).signature)
        assert numbers.keys() == {"P", "Q"}
        share = len(tree) / (len(tree) + 14 * rings)
        assert numbers["Q"] / 128 == pytest.approx(share, abs=0.06)
        more_hyperbolic.append(numbers["Q"])
    assert more_hyperbolic == sorted(more_hyperbolic, reverse=True)
    # A ring of siblings in each family of a tree: half of each.
    family = advise(synthetic.tree(closure=False, seed=seed), 128, seed=seed)
    assert numbers_of(family.signature) == {"P": 64, "Q": 64}


TREE = Structure("r", 100, 100, "N-1", 0.0, 0.0, 1.0, 0.0, 0.0, 8, -0.25)
"""Somewhat of a tree: it branches, but not as much as could be."""


@pytest.mark.parametrize(
    "change",
    [
        {"krackhardt": 0.9},
        {"cyclicity": 0.2},
        {"delta_relative": 0.1},
        {"curvature": -0.2},
        {"curvature": 0.1},
        {"curvature": None},
    ],
)
def test_less_of_a_tree_is_less_hyperbolic(change: dict[str, float | None]) -> None:
    more, less = fact_shares(TREE), fact_shares(replace(TREE, **change))  # type: ignore[arg-type]
    assert less["Q"] < more["Q"]
    assert less["P"] > more["P"]
    assert sum(less.values()) == pytest.approx(1)


def test_what_is_no_tree_is_elliptic_where_answers_repeat_and_else_euclidean() -> None:
    flat = replace(TREE, category="1-1", curvature=0.0)
    assert fact_shares(flat) == {"Q": 0, "P": 0, "E": 1}
    assert fact_shares(replace(flat, category="N-N")) == {"Q": 0, "P": 1, "E": 0}
    assert fact_shares(replace(flat, cyclicity=0.8)) == {"Q": 0, "P": 1, "E": 0}


@pytest.mark.parametrize("numbers", [1, 2, 3, 7, 8, 32, 60, 100, 127, 128, 792])
def test_a_signature_keeps_to_its_budget_and_grows_with_its_share(numbers: int) -> None:
    before = 0
    for percent in range(101):
        q = percent / 100
        found = set()
        for p in (0.0, 0.2, 0.6, 1.0):  # how the rest divides makes no difference
            signature = propose({"Q": q, "P": p * (1 - q), "E": (1 - p) * (1 - q)}, numbers)
            assert Signature.parse(str(signature)) == signature
            assert numbers - component_size(numbers) < signature.numbers <= numbers
            found.add(numbers_of(signature).get("Q", 0))
        (hyperbolic,) = found
        assert hyperbolic >= before
        before = hyperbolic
    assert before == signature.numbers


def test_the_rest_is_divided_and_what_few_facts_call_for_is_left_out() -> None:
    found = {
        "Q9x16": {"Q": 0.92, "P": 0.08, "E": 0.0},
        "P8x2 Q9x14": {"Q": 0.86, "P": 0.08, "E": 0.06},
        "P8x8 Q9x8": {"Q": 0.5, "P": 0.42, "E": 0.08},
        "E8x2 P8x6 Q9x8": {"Q": 0.5, "P": 0.38, "E": 0.12},
        "E8x12 P8x4": {"Q": 0.05, "P": 0.25, "E": 0.7},
    }
    assert {str(propose(shares, 128)): shares for shares in found.values()} == found


def test_component_sizes_fill_the_budget_where_they_can() -> None:
    sizes = {number: component_size(number) for number in (128, 100, 32, 20, 8, 3, 1, 792)}
    assert sizes == {128: 8, 100: 10, 32: 8, 20: 5, 8: 2, 3: 2, 1: 1, 792: 8}
    advice = advise(planted.graph(planted.tree()), 127)
    assert str(advice.signature) == "Q9x15"
    assert any("7 of 127 numbers" in reason for reason in advice.reasons)


def test_reasons_name_the_relations_and_everything_goes_into_json() -> None:
    graph = planted.graph([*planted.tree(3, 5), *planted.rings(20, 14), ("t0", "named", "root")])
    advice = advise(graph, 64, seed=5)
    found = json.loads(json.dumps(advice.to_dict(), allow_nan=False))
    assert Signature.parse(found["signature"]).numbers == found["numbers"] == 64
    assert found["seed"] == 5
    assert found["sampling"]["sources"] == 64
    assert [one["name"] for one in found["relations"]] == ["parent", "next", "named"]
    assert [one["shape"] for one in found["relations"]] == ["hierarchy", "cyclic", "one-to-one"]
    assert {"krackhardt", "delta", "symmetry", "curvature", "category"} < found["overall"].keys()
    hyperbolic, elliptic = found["reasons"][:2]
    assert "parent (363 facts, N-1, Krackhardt 1.00, curvature −0.5" in hyperbolic
    assert "next (280 facts, 1-1, 100% on cycles, 0% symmetric)" in elliptic
    assert advice.to_dict() == advise(graph, 64, seed=5).to_dict()


def test_nothing_to_measure_and_no_numbers_are_mistakes() -> None:
    empty = KnowledgeGraph.from_triples([], name="hollow")
    with pytest.raises(GoldeError, match="hollow has no training facts"):
        advise(empty, 8)
    with pytest.raises(GoldeError, match="numbers is 0"):
        advise(planted.graph(planted.chain(3)), 0)
    assert str(advise(planted.graph([("a", "of", "b")]), 8).signature) == "E2x4"


def test_the_picture_is_the_same_every_time_or_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    facts = [
        (f"{h}", f"r{i} $x$ {'long ' * 9}", t) for i in range(25) for h, _, t in planted.chain(3)
    ]
    advice = advise(planted.graph([*facts, *planted.tree()]), 64)
    for name in ("one.svg", "two.svg"):
        draw_shapes(tmp_path / name, advice)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert "6 more" in (tmp_path / "one.svg").read_text("utf-8")
    with pytest.raises(GoldeError, match=r"\.png or \.svg"):
        draw_shapes(tmp_path / "one.pdf", advice)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match="plots"):
        draw_shapes(tmp_path / "three.png", advice)
    assert len(list(tmp_path.iterdir())) == 2
