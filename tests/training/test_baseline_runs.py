"""Baselines go through the trainer, the run folder and everything that is asked of a run."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from golde.config import Config
from golde.data.graph import KnowledgeGraph
from golde.errors import ConfigError
from golde.evaluation.evaluate import rank_triples
from golde.inference import Run
from golde.runs import RunFolder
from golde.training import StoppedError, memory, train
from golde.training.defaults import compiles, resolve
from tiny import quick, ring

CPU = torch.device("cpu")
KINDS = ("transe", "distmult", "complex")


def small(kind: str, model: dict[str, Any] | None = None, **training: Any) -> Config:
    return quick({"signature": None, "kind": kind, "numbers": 12} | (model or {}), **training)


VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "default": ({}, {}),
    "penalty, biases, inverse": (
        {"bias": True, "reciprocal": False},
        {"regulariser": "n3", "regulariser_weight": 0.1, "validate_every": 0},
    ),
    "cross-entropy, lazy, all entities": (
        {},
        {"loss": "cross-entropy", "optimiser": "lazy-adam", "negatives": 0, "precision": "float64"},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_resumed_run_ends_where_the_uninterrupted_one_does(
    kind: str, variant: str, tmp_path: Path
) -> None:
    model, training = VARIANTS[variant]
    config = small(kind, model, **training)
    whole = train(ring(), tmp_path / "whole", config)
    steps = iter(range(1, 6))
    with pytest.raises(StoppedError):
        train(ring(), tmp_path / "half", config, should_stop=lambda: next(steps) == 5)
    halves = train(ring(), tmp_path / "half", resume=True)
    found, expected = ((f.path / "model.safetensors").read_bytes() for f in (halves, whole))
    assert found == expected


def families() -> KnowledgeGraph:
    """Twelve families of four: everyone is kin of the others, and works at one of three places."""
    kin = [
        (f"f{i}m{a}", "kin", f"f{i}m{b}")
        for i in range(12)
        for a in range(4)
        for b in range(4)
        if a != b
    ]
    works = [(f"f{i}m{a}", "works at", f"w{i % 3}") for i in range(12) for a in range(4)]
    held_out = {*kin[::13], *works[::7]}
    return KnowledgeGraph.from_triples(
        [fact for fact in kin + works if fact not in held_out],
        valid=sorted(held_out)[::2],
        test=sorted(held_out)[1::2],
    )


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns(kind: str, tmp_path: Path) -> None:
    """Chance is an MRR of about .09 among 51."""
    config = Config().with_values(
        model={"kind": kind, "numbers": 32}, training={"steps": 250, "batch_size": 64}
    )
    folder = train(families(), tmp_path, config)
    ranks = rank_triples(folder.load_model().scorer(), families(), families().test).realistic
    assert ranks.reciprocal().mean() > 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_left_open_is_chosen_by_kind(kind: str) -> None:
    found = resolve(Config().with_values(model={"kind": kind}), ring())
    assert (found.model.numbers, found.model.signature) == (128, None)
    assert found.model.margin == (6.0 if kind == "transe" else 0.0)
    assert found.training.regulariser == ("none" if kind == "transe" else "n3")
    assert Config.from_dict(tomllib.loads(found.to_toml())) == found
    chosen = {"regulariser": "none"}
    bare = resolve(Config().with_values(model={"kind": kind}, training=chosen), ring()).training
    assert (bare.regulariser, bare.regulariser_weight) == ("none", 0.0)


def test_an_optimiser_that_moves_drawn_entities_alone_cannot_pull_all() -> None:
    chosen = {"optimiser": "lazy-adam", "regulariser": "norm", "regulariser_weight": 0.1}
    with pytest.raises(ConfigError, match="moves every entity at every step"):
        resolve(Config().with_values(training=chosen), ring())


def test_golde_is_written_without_settings_of_other_kinds() -> None:
    config = resolve(Config(), ring())
    found = tomllib.loads(config.to_toml())
    assert list(found["model"]) == [
        "signature",
        "reflections",
        "boost_left",
        "reciprocal",
        "norm",
        "bias",
        "loop_bias",
        "margin",
        "weights",
    ]
    assert (found["training"]["regulariser"], found["training"]["regulariser_weight"]) == (
        "none",
        0,
    )


def test_a_checkpoint_knows_its_run_by_what_was_written_before(tmp_path: Path) -> None:
    """A setting that is no more is in the text of those that had it, in its place."""
    config = resolve(Config(), ring())
    lines = config.to_toml().splitlines()
    lines.insert(lines.index("boost_left = false") + 1, 'curvature = "learned"')
    lines.insert(lines.index("subsampling = true") + 1, "label_smoothing = 0.0")
    assert config.identity().splitlines() == lines
    baseline = train(ring(), tmp_path, small("complex")).config()  # has no curvature
    lines = baseline.to_toml().splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("subsampling = "))
    lines.insert(place + 1, "label_smoothing = 0.0")
    assert baseline.identity().splitlines() == lines


def test_settings_of_golde_are_not_written_for_a_baseline(tmp_path: Path) -> None:
    folder = train(ring(), tmp_path, small("complex"))
    written = tomllib.loads((folder.path / "config.toml").read_text())["model"]
    assert (written["kind"], written["numbers"]) == ("complex", 12)
    assert not {"signature", "reflections", "weights", "norm"} & set(written)


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_answers_and_exports(kind: str, tmp_path: Path) -> None:
    run = Run(train(ring(), tmp_path / "run", small(kind)), CPU)
    assert f"{kind} of 12 numbers" in repr(run)
    assert run.evaluate("test", bootstrap=0).metrics["both"]["mrr"] > 0
    asked = [
        run.predict("e3", "next"),
        run.predict(relation="back", tail="e3", known="drop"),
        run.predict("e3", None, "e4"),
        run.complete(5, heads="known"),
    ]
    assert [len(found) for found in asked] == [10, 10, 2, 5]
    best = asked[0][0]
    (score,) = run.score([(best.head, best.relation, best.tail)])
    assert score == pytest.approx(best.score, rel=1e-5)
    run.export(tmp_path / "out.npz", "npz")
    with np.load(tmp_path / "out.npz", allow_pickle=False) as arrays:
        assert str(arrays["kind"]) == kind
        assert np.array_equal(arrays["entity"], run.model.entity.detach().numpy())
        assert arrays["relation"].shape == (4, 12)
    run.export(tmp_path / "out.safetensors", "safetensors")


def test_memory_is_counted_and_named_by_its_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "memory_of", lambda device: 16_000_000_000)
    with pytest.raises(ConfigError, match=r"model\.numbers = 1000000000 needs at least"):
        train(ring(), tmp_path / "run", small("transe", {"numbers": 10**9}), device="cpu")
    monkeypatch.setattr(memory, "memory_of", lambda device: None)
    with pytest.raises(ConfigError, match=r"model\.numbers = 2000000 .*at most 1,000,000"):
        train(ring(), tmp_path / "run", small("transe", {"numbers": 2_000_000}), device="cpu")
    assert not RunFolder(tmp_path / "run").exists()
    config = small("distmult")
    parameters = 4 * 12 * (20 + 4)
    assert memory.least_memory(config, 20, 2, CPU) == 4 * parameters
    assert memory.least_memory(config, 20, 2, CPU, rows=900) == 3 * parameters + 4 * 900 * 2 * 12


def test_nothing_of_a_baseline_is_compiled() -> None:
    assert not compiles(small("transe", steps=10**9), 20, CPU)
    with pytest.raises(ConfigError, match=r"nothing of model\.kind = 'transe' is compiled"):
        compiles(small("transe", compile="on"), 20, CPU)
