"""A point of a space is a configuration that trains, within the budget, and the defaults are one of them."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from golde.config import Config
from golde.data import synthetic
from golde.data.graph import KnowledgeGraph
from golde.errors import ConfigError
from golde.geometry import Signature
from golde.models import build
from golde.training.defaults import resolve
from golde.tuning import Space, search_space
from golde.tuning.space import Choice, Range

KINDS = ("golde", "transe", "distmult", "complex")


def settings(**values: Any) -> Config:
    return Config.load(overrides=[f"{k.replace('__', '.')}={v}" for k, v in values.items()])


def ends(space: Space) -> list[dict[str, Any]]:
    """Points at the ends of all axes at once, and every value of each choice."""
    sides = [
        {
            name: axis.values[0 if low else -1]
            if isinstance(axis, Choice)
            else axis[0 if low else 1]
            for name, axis in space.axes.items()
        }
        for low in (True, False)
    ]
    return sides + [
        side | {name: value}
        for side in sides
        for name, axis in space.axes.items()
        if isinstance(axis, Choice)
        for value in axis.values
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_point_is_the_defaults(graph: KnowledgeGraph, kind: str) -> None:
    base = settings(model__kind=kind)
    space = search_space("default", base, graph)
    assert space.start is not None
    assert space.start.keys() == space.axes.keys()
    assert resolve(space.config(space.start), graph) == resolve(base, graph)


def test_the_first_point_is_the_defaults_of_a_large_graph() -> None:
    graph = synthetic.random_graph(2000, 5, 40_000)
    space = search_space("default", Config(), graph)
    assert space.numbers == 256
    assert space.start is not None
    assert resolve(space.config(space.start), graph) == resolve(Config(), graph)


@pytest.mark.parametrize("numbers", [4, 10, 37, 128, 300])
def test_every_signature_is_within_the_budget(graph: KnowledgeGraph, numbers: int) -> None:
    space = search_space("default", Config(), graph, numbers)
    size = space.axes["signature.log2_dimension"]
    assert isinstance(size, Range)
    for log2, share in product(range(1, int(size.high) + 1), (0.0, 0.1, 0.25, 0.5, 0.9, 1.0)):
        text = space.signature({"signature.log2_dimension": log2, "signature.hyperbolic": share})
        signature = Signature.parse(str(text))
        assert numbers - 2**log2 < signature.numbers <= numbers
        letters = {term.letter for term in signature}
        assert letters == {0.0: {"P"}, 1.0: {"Q"}}.get(share, letters)


@pytest.mark.parametrize("kind", KINDS)
def test_the_ends_of_the_space_are_models(graph: KnowledgeGraph, kind: str) -> None:
    space = search_space("default", settings(model__kind=kind), graph, 32)
    for point in ends(space):
        config = resolve(space.config(point), graph)
        model = build(config.model, len(graph.entities), len(graph.relations))
        assert model.entity.shape[1] == 32


def test_the_space_of_the_paper_is_its_table_10(graph: KnowledgeGraph) -> None:
    space = search_space("paper", Config(), graph)
    counts = (2, 4, 8, 10, 15, 20, 25, 30)
    assert space.axes == {
        "training.batch_size": Choice((500, 800, 1000, 1500, 2000)),
        "training.temperature": Range(0.5, 2.0),
        "model.margin": Choice((6, 8, 10, 12, 16, 20, 24, 28)),
        "training.learning_rate": Choice((0.0001, 0.0005, 0.001, 0.003)),
        "signature.elliptic_numbers": Choice((0, 200, 400, 600, 800)),
        "signature.elliptic_components": Choice(counts),
        "signature.hyperbolic_components": Choice(counts),
    }
    assert space.start is None
    for elliptic, m_p, m_q in product((0, 200, 400, 600, 800), counts, counts):
        point = {
            "signature.elliptic_numbers": elliptic,
            "signature.elliptic_components": m_p,
            "signature.hyperbolic_components": m_q,
        }
        signature = Signature.parse(str(space.signature(point)))
        found = {term.letter: term for term in signature}
        assert set(found) == {letter for letter, k in (("P", elliptic), ("Q", 800 - elliptic)) if k}
        for letter, count, share in (("P", m_p, elliptic), ("Q", m_q, 800 - elliptic)):
            if letter in found:
                assert found[letter].count == count
                assert found[letter].numbers == share // count


def test_what_is_given_is_not_searched(graph: KnowledgeGraph) -> None:
    base = settings(
        model__signature="E8", training__learning_rate=0.5, training__regulariser="none"
    )
    space = search_space("default", base, graph)
    assert set(space.axes) == {
        "model.margin",
        "model.bias",
        "training.temperature",
        "training.negatives",
    }
    for point in ends(space):
        config = space.config(point)
        assert (config.model.signature, config.training.learning_rate) == ("E8", 0.5)
    paper = search_space("paper", settings(training__batch_size=7), graph)
    assert "training.batch_size" not in paper.axes


def test_what_would_do_nothing_is_not_searched(graph: KnowledgeGraph) -> None:
    softmax = search_space("default", settings(training__loss="cross-entropy"), graph)
    assert not {"model.margin", "training.temperature"} & set(softmax.axes)
    boosted = search_space("default", settings(model__boost_left=True), graph)
    assert boosted.axes["signature.hyperbolic"] == Range(0.25, 0.75)


@pytest.mark.parametrize(
    ("name", "given", "numbers", "message"),
    [
        ("default", {"training__validate_every": 0}, None, r"validate_every = 0"),
        ("default", {"model__signature": "P8"}, 16, r"model\.signature is given"),
        ("default", {}, 3, "at least 4"),
        ("paper", {}, 128, "at least 200.*--space default"),
        ("paper", {"model__kind": "transe"}, None, "'transe' is not in the paper's space"),
    ],
)
def test_a_space_that_makes_no_sense_is_refused(
    graph: KnowledgeGraph, name: Any, given: dict[str, Any], numbers: int | None, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        search_space(name, settings(**given), graph, numbers)


def test_lazy_adam_is_not_searched_with_a_penalty_on_all_entities(graph: KnowledgeGraph) -> None:
    space = search_space("default", settings(training__optimiser="lazy-adam"), graph)
    assert space.axes["training.regulariser"] == Choice(("none", "n3"))


def test_a_space_without_axes_is_refused(graph: KnowledgeGraph) -> None:
    given = settings(
        model__signature="P8",
        model__margin=6,
        model__bias="false",
        training__learning_rate=0.1,
        training__temperature=1,
        training__negatives=8,
        training__regulariser="none",
    )
    with pytest.raises(ConfigError, match="nothing is left"):
        search_space("default", given, graph)
