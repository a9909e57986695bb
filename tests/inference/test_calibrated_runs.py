"""A run that is calibrated: what it keeps, what it adds to answers, and when it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from golde.api import load_run, train
from golde.config import Config
from golde.data.graph import KnowledgeGraph
from golde.data.synthetic import symmetric
from golde.errors import GoldeError
from golde.inference import Prediction, Query, Run
from golde.inference.batch import predict_file, write_predictions
from golde.inference.calibrate import calibrate

SETTINGS = {"steps": 250, "batch_size": 256, "log_every": 250, "validate_every": 250}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Mirror images of edges, learned well but not without an error, in few steps by geometry alone."""
    space = {"signature": "P3x4", "loop_bias": False}
    config = Config().with_values(model=space, training=SETTINGS)
    out = tmp_path_factory.mktemp("runs") / "mirrors"
    train(symmetric(copies=60, held_out=0.4), out, config, device="cpu")
    return out


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Run:
    """A copy of its own that is not calibrated yet."""
    return load_run(shutil.copytree(trained, tmp_path / "run"), device="cpu")


def corrupted(rows: torch.Tensor) -> torch.Tensor:
    """Each fact with the tail of the next."""
    return torch.cat([rows[:, :2], rows[:, 2:].roll(1, 0)], 1)


def facts(graph: KnowledgeGraph, rows: torch.Tensor) -> list[tuple[str, str, str]]:
    e, r = graph.entities, graph.relations
    return [(e[h], r[k], e[t]) for h, k, t in rows.tolist()]


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_probabilities_hold_on_facts_that_were_not_fitted(run: Run, method: str) -> None:
    judged = run.calibrate(method=method, prior=0.5)
    assert judged.before.ece > 1.5 * judged.after.ece
    assert judged.after.brier < judged.before.brier
    assert set(judged.relations) == set(run.graph.relations.names)
    # The test facts had no part in it.
    true = run.probability(facts(run.graph, run.graph.test))
    false = run.probability(facts(run.graph, corrupted(run.graph.test)))
    assert np.mean(true) > 0.5 > np.mean(false)
    assert np.mean(true) > np.mean(false) + 0.4


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_shown_answers_are_as_often_facts_as_is_said(run: Run, method: str) -> None:
    """Of questions about test facts, which had no part in the fit; single claims say far too much."""
    heads = [Query(h, r) for h, r, _ in facts(run.graph, run.graph.test)]
    tails = [Query(None, r, t) for _, r, t in facts(run.graph, run.graph.test)]
    true = set(facts(run.graph, run.graph.test))

    def said_and_true(prior: float | None) -> tuple[float, float]:
        run.calibrate(method=method, prior=prior, store=False)
        shown = [
            p
            for answers in run.predict_many([*heads, *tails], top=20)
            for p in [p for p in answers if p.known in (None, "test")][:10]
        ]
        chances = [p.probability or 0.0 for p in shown]
        return float(np.mean(chances)), float(np.mean([p.fact in true for p in shown]))

    said, found = said_and_true(None)
    assert said == pytest.approx(found, abs=0.02)
    assert said_and_true(0.5)[0] > found + 0.3


def test_a_calibration_on_answers_is_kept_and_read_again(run: Run) -> None:
    run.calibrate()
    again = load_run(run.folder.path, device="cpu")
    assert again.notes == ()
    assert again.calibrated().as_dict() == run.calibrated().as_dict()
    content = json.loads((run.folder.path / "calibration.json").read_text("utf-8"))
    assert content["prior"] is None
    assert content["negatives"]["kind"] == "answers"
    assert sum(content["facts"].values()) == len(run.graph.valid)
    card = (run.folder.path / "MODEL_CARD.md").read_text("utf-8")
    assert "Calibrated (platt, on answers to 48 validation facts)" in card


def test_it_is_kept_and_read_again(run: Run) -> None:
    run.calibrate(prior=0.2)
    again = load_run(run.folder.path, device="cpu")
    assert again.notes == ()
    claims = facts(run.graph, run.graph.test)
    assert again.probability(claims) == run.probability(claims)
    content = json.loads((run.folder.path / "calibration.json").read_text("utf-8"))
    assert (content["method"], content["prior"]) == ("platt", 0.2)
    assert sum(content["facts"].values()) == len(run.graph.valid)
    assert content["negatives"]["each"] == 10
    assert run.folder.owns(run.folder.path / "calibration.json")


def test_the_order_of_answers_stays_and_probabilities_follow_it(run: Run) -> None:
    head = run.graph.entities[0]
    queries = [Query(head, "beside 0"), Query(None, "beside 0", head)]
    assert run.graph.relations[0] == "beside 0"
    before = run.predict_many(queries, top=30)
    for method in ("platt", "isotonic"):
        run.calibrate(method=method)
        after = run.predict_many(queries, top=30)
        for plain, answers in zip(before, after, strict=True):
            assert [p.probability for p in plain] == [None] * 30
            assert [(p.fact, p.score, p.known) for p in plain] == [
                (p.fact, p.score, p.known) for p in answers
            ]
            said = [p.probability or 0.0 for p in answers]
            assert said == sorted(said, reverse=True)
            assert said[0] > said[-1]


def test_both_directions_of_a_reciprocal_model_have_maps_of_their_own(run: Run) -> None:
    run.calibrate()
    forward, backward = run.calibrated().forward, run.calibrated().backward
    assert backward is not None
    assert forward.own[0] != backward.own[0]
    tail = run.graph.entities[5]
    found = run.predict(relation="beside 0", tail=tail, top=1)[0]
    assert found.probability == pytest.approx(float(backward.own[0](np.array(found.score))))


def test_one_score_for_both_directions_has_one_map(tmp_path: Path) -> None:
    few = {**SETTINGS, "steps": 5}
    values = {"signature": "P3x2", "reciprocal": False}
    config = Config().with_values(model=values, training=few)
    plain = train(symmetric(copies=60, held_out=0.4), tmp_path / "plain", config, device="cpu")
    plain.calibrate()
    assert plain.calibrated().backward is None
    heads = plain.predict(relation="beside 0", tail="e0", top=3)
    assert [p.probability for p in heads] == pytest.approx(
        plain.probability([p.fact for p in heads]), rel=1e-4
    )


def test_completion_leaves_out_what_is_less_probable(run: Run) -> None:
    run.calibrate(prior=0.5)
    everything = run.complete(100_000, heads="known")
    likely = [p for p in everything if (p.probability or 0.0) >= 0.6]
    assert 1000 < len(likely) < len(everything)
    for top in (100_000, None):  # None: as many as there are
        found = run.complete(top, min_probability=0.6, heads="known")
        assert [p.fact for p in found] == [p.fact for p in likely]
    assert run.complete(3, min_probability=0.6, heads="known") == likely[:3]
    nothing = run.completion(3, min_probability=1.0, heads="known")
    assert nothing.facts == []
    assert nothing.best == everything[0]
    with pytest.raises(GoldeError, match=r"min_probability is 1.5; it must lie in 0 to 1"):
        run.complete(3, min_probability=1.5, heads="known")


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_completions_come_by_probability_or_by_score(run: Run, method: str) -> None:
    run.calibrate(method=method, prior=0.5)
    wish: dict[str, Any] = {"heads": "known", "min_probability": 0.2}
    everything = run.complete(None, **wish)
    ordered = [(p.probability or 0.0, p.score) for p in everything]
    assert ordered == sorted(ordered, reverse=True)
    assert run.complete(50, heads="known") == everything[:50]
    by_score = run.complete(None, by="score", **wish)
    assert [p.score for p in by_score] == sorted((p.score for p in by_score), reverse=True)
    assert {p.fact for p in by_score} == {p.fact for p in everything}
    assert [p.fact for p in by_score[:50]] != [p.fact for p in everything[:50]]


def test_too_many_facts_are_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.calibrate(prior=0.5)
    monkeypatch.setattr("golde.inference.complete.MOST_FACTS", 500)
    with pytest.raises(
        GoldeError, match=r"500 facts or more have a probability of at least 0.1; say"
    ):
        run.complete(None, min_probability=0.1, heads="known")
    assert len(run.complete(600, min_probability=0.1, heads="known")) == 600


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".parquet"])
def test_tables_have_one_column_more(run: Run, tmp_path: Path, suffix: str) -> None:
    from pyarrow import parquet

    source, target = tmp_path / "queries.tsv", tmp_path / f"answers{suffix}"
    source.write_text("e0\tbeside 0\t?\n", "utf-8")

    def columns() -> list[str]:
        if suffix == ".parquet":
            names: list[str] = parquet.read_table(target).column_names
            return names
        return target.read_text("utf-8").splitlines()[0].split("\t" if suffix == ".tsv" else ",")

    predict_file(run, source, target)
    plain = columns()
    run.calibrate()
    predict_file(run, source, target)
    assert columns() == [*plain, "probability"]
    write_predictions(target, [], known=True, calibrated=True)
    assert columns() == [*plain[2:], "probability"]
    write_predictions(target, [], calibrated=True)
    assert columns() == ["head", "relation", "tail", "score", "probability"]


def test_given_negatives_take_the_place_of_drawn_ones(run: Run) -> None:
    wrong = [
        (head, relation, f"e{i}")
        for i, (head, relation, _) in enumerate(facts(run.graph, run.graph.valid))
    ]
    known = facts(run.graph, run.graph.train[:2])
    run.calibrate(negatives=[*wrong, *known])
    made = run.calibrated().negatives
    assert run.calibrated().prior == 0.5
    assert made["kind"] == "given"
    assert made["known_left_out"] >= 2
    assert made["count"] + made["known_left_out"] == len(wrong) + 2


def test_yes_or_no_by_probability_and_by_threshold(run: Run) -> None:
    run.calibrate(prior=0.5)
    true, false = (facts(run.graph, rows) for rows in (run.graph.test, corrupted(run.graph.test)))
    found = run.classify(true, false)
    assert set(found) == {"probability", "threshold"}
    assert min(one.accuracy for one in found.values()) > 0.7
    said = np.array(run.probability([*true, *false])) >= 0.5
    right = np.arange(len(said)) < len(true)
    assert found["probability"].accuracy == float((said == right).mean())


def test_a_calibration_of_other_parameters_is_not_used(run: Run) -> None:
    run.calibrate()
    with torch.no_grad():
        run.model.entity.mul_(1.01)
    run.folder.save_model(run.model)
    stale = load_run(run.folder.path, device="cpu")
    (note,) = stale.notes
    assert (
        "was fitted to other parameters, or other evidence, than the run has now; calibrate the run again"
        in note
    )
    assert [p.probability for p in stale.complete(3, heads="known")] == [None] * 3
    for wish in (lambda: stale.complete(3, min_probability=0.5), lambda: stale.classify([], [])):
        with pytest.raises(GoldeError, match=r"is not calibrated.*golde calibrate"):
            wish()
    stale.calibrate()
    assert stale.notes == load_run(run.folder.path, device="cpu").notes == ()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "cannot be read"),
        ("[]", "holds no JSON object"),
        ({"format": 99}, "written in format 99, this version reads 1"),
        ({"format": 1, "forward": {"overall": {}}}, "does not hold a calibration"),
    ],
)
def test_a_damaged_calibration_does_not_keep_the_run_from_being_opened(
    run: Run, content: Any, problem: str
) -> None:
    if isinstance(content, dict):
        run.folder.save_calibration(content)
    else:
        run.folder.calibration_file.write_text(content, "utf-8")
    opened = load_run(run.folder.path, device="cpu")
    assert opened.calibration is None
    assert problem in opened.notes[0]
    assert opened.notes[0].endswith("calibrate the run again")
    opened.calibrate()


def test_what_cannot_be_fitted_is_refused_and_nothing_kept(run: Run) -> None:
    nothing = KnowledgeGraph.from_triples([("a", "r", "b")], valid=[("b", "r", "a")])
    with pytest.raises(GoldeError, match=r"has 1 validation facts, and at least 10 are needed"):
        calibrate(run.model, nothing)
    for wish, rule in (
        ({"method": "magic"}, "one of platt, isotonic"),
        ({"prior": 1.0}, "between 0 and 1"),
        ({"each": 0}, "at least 1"),
        ({"negatives": []}, "for 0 validation facts there are negatives"),
        ({"negatives": [("e0", "beside 0", "e0", "e0")]}, r"a fact is \(head, relation, tail\)"),
    ):
        with pytest.raises(GoldeError, match=rule):
            run.calibrate(**wish)  # type: ignore[arg-type]
    with torch.no_grad():
        run.model.entity.fill_(torch.nan)
    with pytest.raises(GoldeError, match="diverged"):
        run.calibrate()
    assert not (run.folder.path / "calibration.json").exists()
    assert run.calibration is None


def test_predictions_without_a_calibration_have_no_probability(run: Run) -> None:
    assert Prediction("a", "r", "b", -1.0).probability is None
    with pytest.raises(GoldeError, match=r"is not calibrated, so it has no probabilities"):
        run.probability([])
