"""Patterns learned, not only constructed: planted graphs and a tree, trained from scratch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from golde.config import Config
from golde.data import synthetic
from golde.data.graph import KnowledgeGraph
from golde.evaluation.evaluate import rank_triples
from golde.models import GoldE
from golde.training import train

pytestmark = pytest.mark.slow

Plant = Callable[..., KnowledgeGraph]


def held_out_ranks(model: GoldE, graph: KnowledgeGraph) -> Tensor:
    """Filtered ranks of the test facts, both sides."""
    return rank_triples(model.scorer(), graph, graph.test).realistic


def median_place(model: GoldE, graph: KnowledgeGraph, triples: Tensor) -> float:
    """The median filtered rank, both sides, as a share of the candidates: near 0 first, 1 last."""
    ranks = rank_triples(model.scorer(), graph, triples)
    return float((ranks.realistic / ranks.candidates).median())


@pytest.mark.parametrize(
    ("plant", "copies"),
    [(synthetic.symmetric, 60), (synthetic.inverse, 60), (synthetic.composition, 75)],
    ids=["symmetry", "inversion", "composition"],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_default_model_finds_what_the_pattern_implies(
    plant: Plant, copies: int, seed: int, tmp_path: Path
) -> None:
    graph = plant(copies=copies, seed=seed)
    ranks = held_out_ranks(train(graph, tmp_path).load_model(), graph)
    assert (ranks <= 1).double().mean() >= 0.95


def test_the_reverse_of_an_antisymmetric_fact_is_held_for_false(tmp_path: Path) -> None:
    """Members of a ring stay near each other, so the bar is not a rank among strangers.

    Every held-out fact lies within the margin, every reverse far outside it, below every fact.
    """
    graph = synthetic.antisymmetric(copies=30)
    model = train(graph, tmp_path).load_model()
    assert (held_out_ranks(model, graph) <= 1).double().mean() >= 0.95
    with torch.no_grad():
        true, reverse = model.score_triples(graph.test), model.score_triples(graph.test.flip(1))
    assert torch.sigmoid(model.margin + true).min() > 0.5
    assert torch.sigmoid(model.margin + reverse).max() < 0.1
    assert reverse.max() < true.min() - 2


@pytest.mark.parametrize("seed", range(4))
def test_the_reverse_of_an_antisymmetric_fact_ranks_in_the_worse_half(
    seed: int, tmp_path: Path
) -> None:
    """Half of an order's pairs stay untold, and a reverse belongs behind all of those of its query.

    A ranking that knows the order by heart has medians of about .24 for facts and .63 for reverses.
    """
    graph = synthetic.order(80, seed=seed)
    model = train(graph, tmp_path, Config().with_values(training={"seed": seed})).load_model()
    assert median_place(model, graph, graph.test) < 1 / 3
    assert median_place(model, graph, graph.test.flip(1)) > 1 / 2
    assert median_place(model, graph, graph.train.flip(1)) > 1 / 2


def test_a_symmetric_model_ranks_reverses_high_and_learns_no_order(tmp_path: Path) -> None:
    """The same bar can be missed: a single reflection is its own inverse, so r(a, b) = r(b, a)."""
    graph = synthetic.order(80)
    config = Config().with_values(
        model={"signature": "E2x64", "reflections": "k-1", "reciprocal": False}
    )
    model = train(graph, tmp_path, config).load_model()
    with torch.no_grad():
        scores, reverse = model.score_triples(graph.test), model.score_triples(graph.test.flip(1))
    assert torch.allclose(scores, reverse, atol=1e-4)
    assert median_place(model, graph, graph.test) > 1 / 2
    assert median_place(model, graph, graph.train.flip(1)) < 1 / 4


def test_on_a_deep_tree_eight_hyperbolic_numbers_beat_eight_euclidean(tmp_path: Path) -> None:
    """Both fit the facts they see; the ancestors they do not see are what tells them apart.

    Biases take up how often a node is an answer, so that only the geometry is compared.
    """
    for seed in range(4):
        graph = synthetic.tree(depth=7, branching=2, seed=seed)
        mrr = {}
        for signature in ("Q9x1", "E8x1"):  # Q9 stores 8 numbers
            config = Config().with_values(
                model={"signature": signature, "norm": 2, "bias": True},
                training={
                    "loss": "cross-entropy",
                    "learning_rate": 0.03,
                    "steps": 500,
                    "batch_size": 512,
                    "negatives": 0,
                    "validate_every": 100,
                    "seed": seed,
                },
            )
            model = train(graph, tmp_path / f"{signature}-{seed}", config).load_model()
            assert model.entity.shape[1] == 8
            mrr[signature] = held_out_ranks(model, graph).reciprocal().mean()
        assert mrr["Q9x1"] > mrr["E8x1"] + 0.05, seed


@pytest.mark.parametrize("seed", range(4))
def test_on_a_deep_tree_hyperbolic_planes_beat_euclidean_ones_under_the_default_loss(
    seed: int, tmp_path: Path
) -> None:
    """Eight numbers either way, the same settings, trained to the end."""
    graph = synthetic.tree(depth=8, branching=2, seed=seed)
    mrr = {}
    for signature in ("Q3x4", "E2x4"):  # Q3 stores 2 numbers
        config = Config().with_values(
            model={"signature": signature},
            training={"learning_rate": 0.1, "steps": 2000, "patience": 20, "seed": seed},
        )
        model = train(graph, tmp_path / signature, config).load_model()
        assert model.entity.shape[1] == 8
        mrr[signature] = held_out_ranks(model, graph).reciprocal().mean()
    assert mrr["Q3x4"] > mrr["E2x4"] + 0.05
