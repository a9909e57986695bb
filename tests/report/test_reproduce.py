"""What a training reached is written down once, in full, and nothing about test is hidden."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from golde.errors import ConfigError, GoldeError, RunError
from golde.evaluation import evaluate as evaluation
from golde.inference.run import Run
from golde.report import reproduce as module
from golde.report.reproduce import COUNTED, LOOP, RESUMED, Place, reproduce
from golde.report.results import is_complete, parameters, read_record, read_records
from golde.report.studies import Job
from golde.runs import RunFolder
from golde.training import loop
from golde.training.loop import StoppedError, train
from tiny import quick, ring

Places = Callable[..., Place]
Done = Callable[..., dict[str, Any]]


def test_a_record_has_all_that_it_says(places: Places, done: Done) -> None:
    place, record = places(), done()
    assert place.path.parts[-5:] == ("results", "runs", "ring", "small", "seed-0.json")
    assert read_record(place.path) == {"format": 1, **record}
    assert record["settings"]["training"]["steps"] == record["training"]["steps"] == 12
    assert [check["step"] for check in record["training"]["validation"]] == [4, 8, 12]
    assert record["training"]["seconds"] > 0
    assert record["training"]["counted"] == COUNTED
    assert record["digest"] == ring().digest
    assert list(record["counts"]) == ["entities", "relations", "train", "valid", "test"]
    assert record["counts"]["test"] == 4
    assert {"cpu", "threads"} <= set(record["machine"])
    assert record["versions"]["torch"]
    assert record["commit"]
    for name, self_filter in (("standard", False), ("self_filter", True)):
        one = record["figures"][name]
        assert one["protocol"]["self_filter"] is self_filter
        assert (one["protocol"]["split"], one["protocol"]["triples"]) == ("test", 4)
        assert any(line.startswith("self-filter") for line in one["card"])
        for side, count in (("both", 8), ("head", 4), ("tail", 4)):
            assert one["metrics"][side]["count"] == count
            assert 0 < one["metrics"][side]["mrr"] <= 1
    assert {name: one["facts"] for name, one in record["relations"].items()} == {
        "next": 2,
        "back": 2,
    }
    standard = Run(RunFolder(place.run)).evaluate("test", baselines=False, store=False)
    assert record["figures"]["standard"]["metrics"]["both"]["mrr"] == standard.mrr


def test_parameters_are_counted_by_what_one_more_adds() -> None:
    # P3x2 Q4x2: 12 numbers an entity; rows of U (9 a component), 2·3 weights, 2·3 boosts, 2 β, both ways
    found = parameters(quick().model, 20, 2)
    assert found["entity"] == 12
    assert found["relation"] == 2 * (4 * 9 + 6 + 6 + 2)
    assert found["all"] == 20 * found["entity"] + 2 * found["relation"]


def test_test_is_ranked_once_under_each_protocol_and_logged(
    done: Done, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    ranked = Run.evaluate

    def counted(self: Run, split: str, **options: Any) -> Any:
        asked.append((split, options["self_filter"]))
        return ranked(self, split, **options)

    monkeypatch.setattr(Run, "evaluate", counted)
    first = done()
    assert asked == [("test", False), ("test", True)]
    assert [(one["split"], one["protocol"]) for one in first["evaluations"]] == [
        ("test", "standard"),
        ("test", "self_filter"),
    ]
    assert all(one["when"] and one["commit"] for one in first["evaluations"])
    assert done()["evaluations"] == first["evaluations"]
    assert len(asked) == 2


def test_what_was_interrupted_goes_on(places: Places, done: Done) -> None:
    with pytest.raises(StoppedError):
        reproduce(places(), device="cpu", should_stop=lambda: True)
    assert not places().path.exists()
    resumed = done()
    assert resumed["training"]["steps"] == 12
    whole = done("other")
    assert resumed["figures"]["standard"]["metrics"] == whole["figures"]["standard"]["metrics"]


def test_earlier_calls_count(places: Places) -> None:
    place = places(config=quick(log_every=1))
    with pytest.raises(StoppedError):
        reproduce(place, device="cpu", should_stop=lambda: True)
    lines = place.run / "log.jsonl"
    lines.write_text(json.dumps({"step": 1, "seconds": 1000.0}) + '\n{"step": 2, "sec')
    record = reproduce(place, device="cpu")
    assert 1000 < record["training"]["seconds"] < 1100
    assert record["training"]["counted"] == RESUMED


def test_a_ranking_that_was_cut_short_is_logged_and_made_good(
    places: Places, done: Done, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Run, split: str, **options: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Run, "evaluate", broken)
        with pytest.raises(KeyboardInterrupt):
            done()
    half = read_record(places().path)
    assert not is_complete(half)
    assert len(half["evaluations"]) == 1
    monkeypatch.setattr(
        module, "train", lambda *words, **options: None
    )  # there is nothing to train
    record = done()
    assert record["training"] == half["training"]
    assert [one["protocol"] for one in record["evaluations"]] == [
        "standard",
        "standard",
        "self_filter",
    ]


def test_who_asks_to_stop_is_heard_between_rankings(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranked: list[bool] = []

    def evaluate(self: Run, split: str, **options: Any) -> Any:
        ranked.append(options["self_filter"])
        return original(self, split, **options)

    original = Run.evaluate
    monkeypatch.setattr(Run, "evaluate", evaluate)
    with pytest.raises(StoppedError, match="before all was ranked"):
        reproduce(places(), device="cpu", should_stop=lambda: bool(ranked))
    assert ranked == [False]
    half = read_record(places().path)
    assert list(half["figures"]) == ["standard"]
    assert len(half["evaluations"]) == 1
    record = reproduce(places(), device="cpu")
    assert ranked == [False, True]
    assert len(record["evaluations"]) == 2


def test_test_seen_before_is_no_secret(places: Places, done: Done) -> None:
    place = places()
    train(ring(), place.run, place.job.config, device="cpu")
    Run(RunFolder(place.run)).evaluate("test", baselines=False)
    record = done()
    assert [one["when"] is None for one in record["evaluations"]] == [True, False, False]
    assert record["training"]["counted"] == LOOP


def test_other_settings_are_refused_and_named(places: Places, done: Done) -> None:
    done()
    with pytest.raises(
        ConfigError, match=r"seed-0\.json: was made differently \(training\.steps is 12"
    ):
        places(config=quick(steps=13))
    with pytest.raises(ConfigError, match="ranked on test there and valid here"):
        places(split="valid")
    done(seed=1)  # a seed has a file of its own


def test_a_run_of_other_settings_is_refused(places: Places) -> None:
    place = places()
    train(ring(), place.run, quick(steps=4), device="cpu")
    with pytest.raises(RunError, match=r"training\.steps is 4 there and 12 here.*--runs"):
        places()


def test_a_setting_that_is_new_has_its_default_and_one_that_is_gone_is_named(
    places: Places, done: Done
) -> None:
    done()
    path = places().path
    record = json.loads(path.read_text())
    del record["settings"]["model"]["bias"]
    path.write_text(json.dumps(record))
    assert places().is_complete
    record["settings"]["model"]["curvy"] = True
    path.write_text(json.dumps(record))
    with pytest.raises(ConfigError, match=r"unknown key 'model\.curvy'.*--again"):
        places()


def test_again_keeps_what_it_replaces(places: Places, done: Done) -> None:
    first = done()
    second = done(config=quick(steps=8), again=True)
    assert second["training"]["steps"] == 8
    assert [old["figures"] for old in second["replaced"]] == [first["figures"]]
    assert [old["evaluations"] for old in second["replaced"]] == [first["evaluations"]]
    third = done(again=True)
    assert [old["training"]["steps"] for old in third["replaced"]] == [12, 8]
    assert "replaced" not in third["replaced"][1]
    assert done()["replaced"] == third["replaced"]
    runs = sorted(path.name for path in places().run.parent.iterdir())
    assert runs == ["seed-0", "seed-0-1", "seed-0-2"]


def test_a_study_never_ranks_test(
    places: Places, done: Done, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ranked = []
    rank = evaluation.rank_triples

    def watched(score: Any, graph: Any, triples: Any, **options: Any) -> Any:
        ranked.append({tuple(fact) for fact in triples.tolist()})
        return rank(score, graph, triples, **options)

    monkeypatch.setattr(evaluation, "rank_triples", watched)
    monkeypatch.setattr(loop, "rank_triples", watched)
    record = done("a", study="s", split="valid")
    held_out = {tuple(fact) for fact in ring().valid.tolist()}
    assert len(ranked) >= 5  # while training, at its end, and under two protocols
    assert all(facts <= held_out for facts in ranked)
    assert {one["split"] for one in record["evaluations"]} == {"valid"}
    assert record["figures"]["standard"]["protocol"]["split"] == "valid"
    path = places("a", study="s", split="valid").path
    assert path == tmp_path / "results" / "studies" / "s" / "a" / "seed-0.json"
    assert read_records(tmp_path / "results", "runs") == []


def test_a_result_that_another_process_made_meanwhile_is_not_made_again(
    places: Places, done: Done, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen_before = places()
    first = done()
    monkeypatch.setattr(Run, "evaluate", lambda *words, **options: pytest.fail("ranked twice"))
    assert reproduce(seen_before, device="cpu") == {"format": 1, **first}


def test_a_result_is_made_by_one_process_at_a_time(places: Places) -> None:
    place = places()
    with (
        place.alone(),
        pytest.raises(RunError, match=r"seed-0\.json: another process is reproducing it"),
    ):
        reproduce(places(), device="cpu")
    assert not place.path.parent.exists()
    assert not place.run.exists()


def test_results_that_cannot_be_written_are_refused_before_training(
    places: Places, tmp_path: Path
) -> None:
    (tmp_path / "results").write_text("")
    place = places()
    with pytest.raises(RunError, match=r"seed-0\.json: cannot be written: .*check --results"):
        reproduce(place, device="cpu")
    assert not place.run.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"digest": None}, "'digest' is missing or no str"),
        ({"settings": "x"}, "'settings' is missing or no dict"),
        ({"replaced": None}, "'replaced' is missing or no list"),
        ({"training": {}}, "'training.seconds' is missing or no number"),
        ({"figures": []}, "'figures' is missing or no dict"),
        (
            {"figures": {"standard": {"metrics": {"both": 3}}}},
            "'figures.standard.metrics.both.mrr' is missing or no number",
        ),
    ],
)
def test_a_damaged_result_is_named_and_kept(
    places: Places, done: Done, change: dict[str, Any], message: str
) -> None:
    path = places().path
    text = json.dumps({"format": 1, **done(), **change})
    path.write_text(text)
    for again in (False, True):
        with pytest.raises(RunError, match=rf"seed-0\.json: {message}.*; restore it from"):
            places(again=again)
    assert path.read_text() == text


def test_a_half_ranked_result_without_its_model_is_replaced_by_a_new_training(
    places: Places, done: Done
) -> None:
    """Figures of two trainings never stand in one result."""
    done()
    place = places()
    half = read_record(place.path)
    del half["figures"]["self_filter"]
    place.path.write_text(json.dumps(half))
    assert places().run == place.run
    place.run.rename(place.run.with_name("lost"))
    record = done()
    assert places().run.name == "seed-0-1"
    assert len(record["evaluations"]) == 2
    (replaced,) = record["replaced"]
    assert replaced["evaluations"] == half["evaluations"]
    assert replaced["figures"] == half["figures"]


def test_a_model_that_is_damaged_before_all_is_ranked_has_a_way_out(
    places: Places, done: Done
) -> None:
    done()
    place = places()
    half = read_record(place.path)
    del half["figures"]["self_filter"]
    place.path.write_text(json.dumps(half))
    (place.run / "model.safetensors").write_bytes(b"no model")
    with pytest.raises(
        RunError, match=r"seed-0: cannot be opened to be ranked .*; .* remove the folder"
    ):
        done()
    shutil.rmtree(place.run)
    assert [one["figures"] for one in done()["replaced"]] == [half["figures"]]


def test_a_model_that_cannot_be_is_refused_with_its_source_before_training(tmp_path: Path) -> None:
    huge = "E99999999999x99999999999"
    for model, told in (
        ({"weights": {"E": 2.0}}, r"model\.weights: E is not in"),
        ({"signature": huge, "weights": {}}, f"a model of {huge} does not fit in memory"),
    ):
        config = quick().with_values(model=model)
        job = Job("small", "own", "ring", config, "valid", "own.toml: variant 'small'")
        with pytest.raises(ConfigError, match=rf"^own\.toml: variant 'small': {told}"):
            Place(job, ring(), results=tmp_path / "results", runs=tmp_path / "runs")


@pytest.mark.parametrize("given", ["yago3-10", "folder/yago3-10"])
def test_other_facts_under_the_name_of_a_published_set_are_refused(
    tmp_path: Path, given: str
) -> None:
    job = Job("small", None, given, quick(), "test", "small.toml")
    graph = replace(ring(), name="yago3-10")
    said = (
        r"yago3-10: .*other facts \(32 for training, the set 1,079,040\); rename the file or folder"
    )
    with pytest.raises(GoldeError, match=said):
        Place(job, graph, results=tmp_path / "results", runs=tmp_path / "runs")
