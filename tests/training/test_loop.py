"""The loop: what it reports, chooses, refuses and leaves behind."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from golde.data.graph import KnowledgeGraph
from golde.errors import ConfigError, GoldeError
from golde.evaluation.evaluate import rank_triples
from golde.evaluation.ranking import Ranks
from golde.runs import RunFolder
from golde.training import DivergedError, Report, StoppedError, loop, train, update
from golde.training.step import step_loss
from tiny import quick, ring


def test_it_learns(tmp_path: Path) -> None:
    """The bar is for the mean of five seeds: chance is an MRR of .18, and single seeds spread."""
    found = []
    for seed in range(5):
        config = quick(steps=200, batch_size=64, validate_every=50, learning_rate=0.05, seed=seed)
        folder = train(ring(), tmp_path / str(seed), config)
        ranks = rank_triples(folder.load_model().scorer(), ring(), ring().test).realistic
        found.append(ranks.reciprocal().mean())
    assert torch.stack(found).mean() > 0.8


def test_a_watcher_sees_every_logged_step(tmp_path: Path) -> None:
    reports: list[Report] = []
    train(ring(), tmp_path, quick(), watch=reports.append)
    assert [(r.step, r.validated) for r in reports] == [
        (4, True),
        (5, False),
        (8, True),
        (10, False),
        (12, True),
    ]
    assert all(report.steps == 12 and report.queries_per_second > 0 for report in reports)
    assert reports[-1].seconds_left == 0
    assert reports[0].mrr == reports[1].mrr is not None


def scripted_validation(monkeypatch: pytest.MonkeyPatch, ranks: list[float]) -> None:
    """Validation finds the given ranks in turn; there are no figures in the end."""
    script = iter(ranks)

    def rank(*args: Any, **kwargs: Any) -> Ranks:
        better = torch.tensor([next(script) - 1.0])
        zero = torch.zeros(1)
        return Ranks(zero, zero, zero, better, zero, zero)

    monkeypatch.setattr(loop, "rank_triples", rank)
    monkeypatch.setattr(loop.Training, "_store_figures", lambda self: None)


def test_patience_counts_validations_that_were_no_better(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As good as the best is not better, but of equals the later is kept."""
    scripted_validation(monkeypatch, [8, 4, 5, 2, 3, 2, 1])
    config = quick(steps=50, validate_every=2, patience=2)
    folder = train(ring(), tmp_path, config)
    about = folder.about()
    assert (about["steps"], about["chosen_step"]) == (12, 12)
    assert [v["step"] for v in about["validation"]] == [2, 4, 6, 8, 10, 12]


def test_the_chosen_model_is_the_one_validated_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its parameters are those of its step, not those of the end."""
    states: dict[int, dict[str, Tensor]] = {}
    real = loop.Training._validate

    def remember(self: Any) -> None:
        real(self)
        states[self.progress.step] = {k: v.clone() for k, v in self.model.state_dict().items()}

    monkeypatch.setattr(loop.Training, "_validate", remember)
    scripted_validation(monkeypatch, [5, 2, 3])
    folder = train(ring(), tmp_path, quick())
    assert list(states) == [4, 8, 12]
    assert folder.about()["chosen_step"] == 8
    torch.testing.assert_close(dict(folder.load_model().state_dict()), states[8], rtol=0, atol=0)


def test_without_validation_the_last_model_is_kept(tmp_path: Path) -> None:
    graph = KnowledgeGraph.from_triples([("a", "r", "b"), ("b", "r", "c"), ("c", "r", "a")])
    about = train(graph, tmp_path / "none", quick()).about()
    assert (about["chosen_step"], about["validation"]) == (12, [])
    about = train(ring(), tmp_path / "never", quick(validate_every=0)).about()
    assert (about["chosen_step"], about["validation"]) == (12, [])


def test_at_most_so_many_facts_are_validated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Tensor] = []

    def rank(score: Any, graph: KnowledgeGraph, triples: Tensor, **options: Any) -> Ranks:
        asked.append(triples)
        return rank_triples(score, graph, triples, **options)

    monkeypatch.setattr(loop, "rank_triples", rank)
    train(ring(), tmp_path, quick(validate_limit=3))
    assert all(torch.equal(triples, asked[0]) for triples in asked)
    valid = {tuple(row) for row in ring().valid.tolist()}
    assert len({tuple(row) for row in asked[0].tolist()} & valid) == 3


@pytest.mark.parametrize(("limit", "key"), [(3, "valid+sample"), (4, "valid")])
def test_training_leaves_the_figures_of_the_facts_it_validated(
    limit: int, key: str, tmp_path: Path
) -> None:
    folder = train(ring(), tmp_path, quick(validate_limit=limit))
    about, stored = folder.about(), folder.metrics()
    assert list(stored) == [key]
    protocol, figures = stored[key]["protocol"], stored[key]["metrics"]["both"]
    assert (protocol["triples"], protocol["split_triples"]) == (limit, 4)
    assert figures["count"] == 2 * limit
    chosen = {check["step"]: check["mrr"] for check in about["validation"]}
    assert figures["mrr"] == pytest.approx(chosen[about["chosen_step"]])


def poison(monkeypatch: pytest.MonkeyPatch, at: int, what: str) -> None:
    """The loss, its gradient or a parameter goes wrong in the given step."""

    steps = count(1)

    def poisoned(model: Any, rows: Any, draw: Any, config: Any) -> Tensor:
        loss = step_loss(model, rows, draw, config)
        if next(steps) != at:
            return loss
        if what == "loss":
            return loss * torch.nan
        if what == "gradient":
            return loss + (rows * 0).abs().sqrt().sum()  # finite, with a slope of 0 · ∞
        model.entity.data[0] = torch.inf
        return loss

    monkeypatch.setattr(update, "step_loss", poisoned)


@pytest.mark.parametrize(
    ("what", "at", "named"),
    [
        ("loss", 7, "the loss became nan at step 7"),
        ("gradient", 7, "the gradient became nan at step 7"),
        ("parameter", 8, "after step 8 the score of candidate"),  # where it is validated
        ("parameter", 9, "entity is no longer finite after step 9"),  # where it is to be saved
    ],
)
def test_divergence_names_the_step_and_keeps_the_last_good_checkpoint(
    what: str, at: int, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = quick(checkpoint_seconds=0)
    whole = train(ring(), tmp_path / "whole", config)
    with monkeypatch.context() as patch:
        poison(patch, at, what)
        with pytest.raises(DivergedError, match=rf"{named}.*checkpoint.safetensors is from before"):
            train(ring(), tmp_path / "run", config)
    folder = train(ring(), tmp_path / "run", config, resume=True)  # without the poison all is well
    assert folder.load_model().state_dict().keys() == whole.load_model().state_dict().keys()
    for name, tensor in whole.load_model().state_dict().items():
        assert torch.equal(folder.load_model().state_dict()[name], tensor)


def test_a_last_update_that_overflows_is_not_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(monkeypatch, 12, "parameter")
    with pytest.raises(DivergedError, match="after step 12; no checkpoint yet"):
        train(ring(), tmp_path, quick(validate_every=0))
    assert not (tmp_path / "model.safetensors").exists()


def test_an_absurd_learning_rate_diverges_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(DivergedError, match=r"step \d+; no checkpoint yet.*lower training.learn"):
        train(ring(), tmp_path, quick(learning_rate=1e30, validate_every=0))


def test_a_run_stopped_with_unsound_parameters_has_diverged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(monkeypatch, 1, "parameter")
    with pytest.raises(DivergedError):
        train(ring(), tmp_path, quick(), should_stop=lambda: True)


def test_a_checkpoint_comes_as_often_as_asked(tmp_path: Path) -> None:
    with pytest.raises(StoppedError, match="stopped after step 1 of 12"):
        train(ring(), tmp_path, quick(), should_stop=lambda: True)
    stamps = set()

    def look(report: Report) -> None:
        stamps.add((tmp_path / "b" / "checkpoint.safetensors").stat().st_mtime_ns)

    train(ring(), tmp_path / "b", quick(checkpoint_seconds=0, log_every=2), watch=look)
    assert len(stamps) == 6


def test_a_graph_without_training_facts(tmp_path: Path) -> None:
    graph = KnowledgeGraph.from_triples([], valid=[("a", "r", "b")])
    with pytest.raises(GoldeError, match="no training facts"):
        train(graph, tmp_path / "run", quick())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("device", ["tpu", *([] if torch.cuda.is_available() else ["cuda"])])
def test_a_device_that_is_not_there(device: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="device"):
        train(ring(), tmp_path / "run", quick(), device=device)


@pytest.mark.parametrize("setting", [{"signature": "Z3x2"}, {"block": 2}])
def test_settings_that_make_no_model_leave_no_run(setting: Any, tmp_path: Path) -> None:
    """Otherwise the mended settings would be refused as different ones."""
    with pytest.raises(ConfigError):
        train(ring(), tmp_path / "run", quick(setting))
    assert not (tmp_path / "run").exists()


def test_compiling_where_that_does_not_work_leaves_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("golde.training.defaults.can_compile", lambda: False)
    with pytest.raises(ConfigError, match=r"torch\.compile does not work here"):
        train(ring(), tmp_path / "run", quick(compile="on"))
    assert not (tmp_path / "run").exists()


def test_defaults_are_resolved_and_written_down(tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        train(ring(), tmp_path, should_stop=lambda: True)
    config = RunFolder(tmp_path).config()
    assert config.model.signature
    settings = config.training
    assert None not in (settings.steps, settings.batch_size, settings.negatives)
