"""Evidence as part of a run: gathered, kept, counted everywhere, and bound to the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

import golde
from golde.cli.evidence import evidence_points
from golde.cli.main import app
from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError, RunError
from golde.report.reproduce import Place, reproduce
from golde.report.results import relations_alone
from golde.report.studies import Job
from golde.runs import RunFolder
from golde.runs.card import refresh_card
from golde.runs.stored_evidence import StoredEvidence
from golde.training.loop import StoppedError, train
from tiny import quick, ring


def call(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def run(tmp_path: Path) -> golde.Run:
    return golde.train(ring(), tmp_path / "run", quick(), device="cpu")


def test_a_run_gathers_what_its_configuration_asks_for(tmp_path: Path) -> None:
    config = quick().with_values(evidence={"hops": 2})
    found = golde.train(ring(), tmp_path / "run", config, device="cpu")
    assert found.model.evidence is not None
    assert found.model.evidence.walks.hops == 2
    about = found.folder.gathered()
    assert about is not None
    assert about["validation"]["after"] >= about["validation"]["before"]
    assert about["validation"]["facts"] == len(ring().valid)
    again = golde.load_run(tmp_path / "run", device="cpu")
    mrr = [one.evaluate("valid", store=False).mrr for one in (found, again)]
    assert mrr[0] == mrr[1]
    found.folder.evidence_file.unlink()  # as if killed before it was gathered
    golde.train(ring(), tmp_path / "run", config, device="cpu", resume=True)
    assert found.folder.evidence_file.exists()


def test_the_back_of_a_step_is_known_from_the_step(run: golde.Run) -> None:
    before = run.evaluate("test", store=False).mrr
    found = run.gather_evidence(1)
    assert found.evidence.scale > 0
    after = run.evaluate("test", store=False).mrr
    assert after > before + 0.3
    (best, *_) = run.predict(head="e2", relation="next")
    assert best.tail == "e3"
    assert run.score([("e2", "next", "e3")])[0] == pytest.approx(best.score, abs=1e-4)


def test_figures_and_probabilities_from_before_no_longer_count(tmp_path: Path) -> None:
    steps = [(f"e{i}", "next", f"e{(i + 1) % 40}") for i in range(40)]
    backs = [(tail, "back", head) for head, _, tail in steps]
    graph = KnowledgeGraph.from_triples([*steps[12:], *backs], valid=steps[:12], name="ring of 40")
    run = golde.train(graph, tmp_path / "run", quick(), device="cpu")
    run.evaluate("valid")
    run.calibrate()
    assert run.folder.metrics()
    run.gather_evidence(1)
    assert run.folder.metrics() == {}
    assert run.folder.ranks("valid") is None
    assert run.calibration is None
    assert "calibrate the run again" in run.notes[0]
    run.evaluate("valid")
    run.calibrate()
    opened = golde.load_run(run.folder.path, device="cpu")
    assert opened.calibration is not None
    assert set(opened.folder.metrics()) == {"valid"}


def test_evidence_of_other_parameters_is_refused(run: golde.Run) -> None:
    run.gather_evidence(1)
    with torch.no_grad():
        run.model.entity += 0.1
    run.folder.save_model(run.model)
    with pytest.raises(RunError, match=r"gathered for other parameters.*golde evidence"):
        golde.load_run(run.folder.path, device="cpu")
    assert call("evidence", run.folder.path, "--device", "cpu").exit_code == 0
    golde.load_run(run.folder.path, device="cpu")


def test_evidence_of_runs_from_before_is_read(run: golde.Run) -> None:
    """When nothing was said of answers that no training fact mentions."""
    run.gather_evidence(1)
    path, model = run.folder.evidence_file, run.folder._file_digest("model.safetensors")
    stored = StoredEvidence.read(path, model=model)
    del stored.gathered["unmentioned"]
    stored.write(model=model)
    again = golde.load_run(run.folder.path, device="cpu")
    assert again.model.evidence is not None
    found = again.folder.gathered()
    assert found is not None
    assert found["unmentioned"] == 0
    stored.gathered["unmentioned"] = "much"
    stored.write(model=model)
    with pytest.raises(RunError, match=r"its metadata is damaged.*golde evidence"):
        golde.load_run(run.folder.path, device="cpu")


def test_the_card_speaks_of_evidence_that_counts(run: golde.Run) -> None:
    card = run.folder.path / "MODEL_CARD.md"
    run.gather_evidence(1)
    assert "what training facts in a row say" in card.read_text("utf-8")
    model = run.folder._file_digest("model.safetensors")
    stored = StoredEvidence.read(run.folder.evidence_file, model=model)
    stored.gathered.update(scale=0.0, lift=0.0, joined=0.0, unmentioned=0.0)
    stored.write(model=model)
    refresh_card(run.folder)
    assert "facts in a row" not in card.read_text("utf-8")


@pytest.mark.parametrize("content", [b"", b"\x08\0\0\0\0\0\0\0{}      "])
def test_damaged_evidence_is_named_with_its_fix(run: golde.Run, content: bytes) -> None:
    run.folder.evidence_file.write_bytes(content)
    failed = call("evaluate", run.folder.path, "--device", "cpu")
    assert failed.exit_code == 2
    assert "evidence.safetensors" in failed.stderr
    assert "golde evidence" in failed.stderr
    assert call("evidence", run.folder.path, "--hops", "1", "--device", "cpu").exit_code == 0


def test_an_extended_run_has_the_weights_and_walks_its_own_facts(
    run: golde.Run, tmp_path: Path
) -> None:
    run.gather_evidence(1)
    new = [("new", "next", "e1"), ("e0", "next", "new")]
    extended = golde.extend(run.folder.path, new, tmp_path / "more", steps=0, device="cpu")
    assert run.model.evidence is not None
    assert extended.model.evidence is not None
    assert torch.equal(extended.model.evidence.weights.weights, run.model.evidence.weights.weights)
    assert len(extended.model.evidence.walks.facts) == len(run.model.evidence.walks.facts) + 2
    (best, *_) = extended.predict(head="new", relation="back")
    assert best.tail == "e0"


def test_an_explanation_tells_what_evidence_adds(run: golde.Run) -> None:
    run.gather_evidence(1)
    shown = call("explain", run.folder.path, "--head", "e2", "--relation", "next", "--tail", "e3",
                 "--device", "cpu", "--json")  # fmt: skip
    assert shown.exit_code == 0, shown.output
    assert '"evidence"' in shown.stdout


def test_the_command_tells_what_it_found(run: golde.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run.folder.path.parent)
    shown = call("evidence", "run", "--hops", "1", "--device", "cpu")
    assert shown.exit_code == 0, shown.output
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert "next       back⁻¹" in shown.stdout
    assert "golde evaluate" in shown.stdout
    few = json.loads(call("evidence", "run", "--hops", "1", "--walks", "20", "--json").stdout)
    assert 1 <= few["asked"] <= 20
    found = json.loads(call("evidence", "run", "--joined", "--json").stdout)
    assert found["asked"] > few["asked"]
    assert found["hops"] == 2
    assert len(found["heaviest"]) == 10
    gained = ("", "nothing is gained by it, so that no score changes")
    none = found | {"scale": 0.0, "lift": 0.0, "joined": 0.0, "unmentioned": 0.0}
    assert evidence_points(none)[-1] == gained
    for number in ("scale", "lift", "joined", "unmentioned"):
        assert gained not in evidence_points(none | {number: -1.0})


def test_a_run_that_is_not_there_is_named(tmp_path: Path) -> None:
    failed = call("evidence", tmp_path / "nothing")
    assert failed.exit_code == 2
    assert "no run here" in failed.stderr


def test_records_have_the_embedding_alone(tmp_path: Path) -> None:
    config = quick().with_values(evidence={"hops": 1})
    job = Job("small", None, "ring", config, "test", "small.toml")
    place = Place(job, ring(), results=tmp_path / "results", runs=tmp_path / "runs")
    record = reproduce(place, device="cpu")
    assert list(record["figures"]) == ["embedding", "standard", "self_filter"]
    alone = relations_alone(record)
    assert alone is not None
    assert alone.keys() == record["relations"].keys()
    assert alone != record["relations"]
    figures = {name: one["metrics"]["both"]["mrr"] for name, one in record["figures"].items()}
    run = golde.load_run(place.run, device="cpu")
    assert run.evaluate("test", store=False).mrr == figures["standard"]
    run.model.evidence = None
    assert run.evaluate("test", store=False).mrr == figures["embedding"] != figures["standard"]
    assert [one["protocol"] for one in record["evaluations"]] == list(record["figures"])
    assert record["training"]["evidence"]["hops"] == 1
    assert set(RunFolder(place.run).metrics()) == {"test", "test+self-filter"}


def test_evidence_is_not_replaced_where_figures_cannot_be_read(run: golde.Run) -> None:
    run.gather_evidence(1)
    before = run.folder.evidence_file.read_bytes()
    (run.folder.path / "metrics.json").write_text("")
    with pytest.raises(RunError, match=r"metrics\.json: cannot be read"):
        run.gather_evidence(2)
    assert run.folder.evidence_file.read_bytes() == before


def test_what_is_not_stored_keeps_no_figures(run: golde.Run) -> None:
    """They would be taken for those of the run as it is on disk."""
    run.gather_evidence(1, store=False)
    assert run.evaluate("test", store=False).mrr > 0
    with pytest.raises(GoldeError, match="has other evidence than this run counts"):
        run.evaluate("test")
    run.gather_evidence(1)
    run.evaluate("test")
    without = golde.Run(run.folder, evidence=False)
    with pytest.raises(GoldeError, match="has other evidence than this run counts"):
        without.evaluate("test")


def test_a_run_whose_evidence_was_not_gathered_says_so(tmp_path: Path) -> None:
    config = quick().with_values(evidence={"hops": 1})
    found = golde.train(ring(), tmp_path / "run", config, device="cpu")
    assert found.notes == ()
    found.folder.evidence_file.unlink()
    (note,) = golde.load_run(tmp_path / "run", device="cpu").notes
    assert "without the evidence that was configured" in note


def test_what_could_not_be_gathered_is_refused_before_training(tmp_path: Path) -> None:
    graph = KnowledgeGraph.from_triples([("a", "r", "b"), ("b", "r", "c")], name="no valid")
    with pytest.raises(GoldeError, match="needs validation facts to be weighed by"):
        golde.train(graph, tmp_path / "run", quick().with_values(evidence={"hops": 1}))
    assert not (tmp_path / "run").exists()


def with_evidence(tmp_path: Path) -> Place:
    """Where a training of the ring with evidence of one fact is to be reproduced."""
    job = Job(
        "small", None, "ring", quick().with_values(evidence={"hops": 1}), "test", "small.toml"
    )
    return Place(job, ring(), results=tmp_path / "results", runs=tmp_path / "runs")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"hops": 2}, "hops is 2 there and 1 here"),
        ({"hops": 1, "walks": 20}, "walks is 20 there and 300000000 here"),
        ({"hops": 1, "joined": True}, "joined is True there and False here"),
    ],
)
def test_evidence_that_was_replaced_by_hand_is_not_reproduced(
    asked: dict[str, Any], told: str, tmp_path: Path
) -> None:
    place = with_evidence(tmp_path)
    golde.train(ring(), place.run, place.config, device="cpu").gather_evidence(**asked)
    with pytest.raises(RunError, match=f"gathered differently than .* configured for .{told}"):
        reproduce(place, device="cpu")
    assert not place.path.exists()


def test_evidence_from_before_its_settings_were_stored_is_known_by_its_hops(tmp_path: Path) -> None:
    place = with_evidence(tmp_path)
    run = golde.train(ring(), place.run, place.config, device="cpu")
    gathered = run.folder.gathered()
    assert gathered is not None
    del gathered["settings"], gathered["seconds"]
    found = run.model.evidence
    assert found is not None
    run.folder.save_evidence(found, gathered)
    assert reproduce(place, device="cpu")["training"]["evidence"] == gathered


def test_evidence_that_is_gathered_after_training_counts_in_its_time(tmp_path: Path) -> None:
    place = with_evidence(tmp_path)
    folder = train(ring(), place.run, place.config, device="cpu")  # and then it was killed
    record = reproduce(place, device="cpu")
    took = record["training"]["evidence"]["seconds"]
    assert took > 0
    both = folder.about()["seconds"] + took
    assert record["training"]["seconds"] == pytest.approx(both, abs=0.01)


def test_test_seen_before_evidence_is_no_secret(tmp_path: Path) -> None:
    place = with_evidence(tmp_path)
    folder = train(ring(), place.run, place.config, device="cpu")
    golde.Run(folder, evidence=False).evaluate("test")
    record = reproduce(place, device="cpu")
    assert [one["when"] is None for one in record["evaluations"]] == [True, False, False, False]


def test_who_asks_to_stop_is_heard_while_evidence_is_gathered(tmp_path: Path) -> None:
    place = with_evidence(tmp_path)
    train(ring(), place.run, place.config, device="cpu")
    with pytest.raises(StoppedError, match="while evidence was gathered"):
        reproduce(place, device="cpu", should_stop=lambda: True)
    assert not place.path.exists()
    assert RunFolder(place.run).gathered() is None


def test_ctrl_c_while_evidence_is_gathered_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*given: Any, **named: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("golde.inference.run.add_evidence", interrupted)
    out, quickly = tmp_path / "run", ["--set", "training.steps=2", "--set", "evidence.hops=1"]
    stopped = call("train", "world", "--out", out, "--device", "cpu", *quickly)
    assert stopped.exit_code == 130
    assert f"go on with: golde evidence {out}" in " ".join(stopped.stderr.split())
    assert RunFolder(out).about()["finished"]


def test_reproducing_says_that_evidence_is_weighed_and_what_it_adds(tmp_path: Path) -> None:
    config = tmp_path / "small.toml"
    text = quick().with_values(evidence={"hops": 1}).to_toml()
    config.write_text(f'graph = "world"\n{text}')
    folders = ["--results", tmp_path / "results", "--runs", tmp_path / "runs"]
    done = call("reproduce", config, "--seeds", "0", "--device", "cpu", *folders)
    assert done.exit_code == 0, done.output
    assert done.stderr.count("small, seed 0: weighing facts in a row") == 1
    assert "(the embedding alone 0." in done.stdout
