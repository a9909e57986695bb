"""``golde reproduce`` and ``golde report``, called in this process and as processes."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from golde.cli.main import app
from golde.cli.report import _last_error
from golde.data.loading import load_graph
from golde.inference.run import Run
from golde.report.processes import Command, run_side_by_side
from golde.report.reproduce import Place
from golde.report.studies import read_jobs
from golde.training.loop import StoppedError


def call(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_reproduce_then_report(config_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(config_file.parent)
    done = call("reproduce", config_file, "--seeds", "0,1", "--device", "cpu")
    assert done.exit_code == 0, done.output
    assert "small, seed 1: test MRR 0." in done.stdout
    there = call("reproduce", config_file, "--seeds", "0,1", "--device", "cpu")
    assert there.stdout.count("there already") == 2
    assert "nothing is left to train; --again makes these anew" in there.stderr
    assert "nothing is left" not in done.stderr
    shown = call("report")
    assert "more than once" not in shown.stderr
    assert shown.exit_code == 0
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert "small              2" in shown.stdout
    _other_commit(
        Path("results/runs/ring/small/seed-1.json"), ", ".join(str(n) * 40 for n in range(4))
    )
    several = call("report").stdout
    assert max(map(len, several.splitlines())) <= 80
    assert "…" not in several
    assert "3333333" in several
    assert "small              2" in several
    found = json.loads(call("report", "--json").stdout)
    assert found["ring"]["small"]["seeds"] == 2
    assert "ours: wn18rr, standard" in call("report", "--paper").stdout
    config_file.write_text(config_file.read_text().replace("steps = 12", "steps = 13"))
    refused = call("reproduce", config_file, "--seeds", "0", "--device", "cpu")
    assert refused.exit_code == 2
    assert "training.steps is 12 there and 13 here" in refused.stderr
    again = call("reproduce", config_file, "--seeds", "0", "--device", "cpu", "--again")
    assert again.exit_code == 0, again.output


def test_rankings_that_are_not_whole_or_not_the_only_ones_are_told(
    config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(config_file.parent)
    assert call("reproduce", config_file, "--seeds", "0,1", "--device", "cpu").exit_code == 0
    first, second = (Path(f"results/runs/ring/small/seed-{seed}.json") for seed in (0, 1))
    twice = json.loads(first.read_text())
    twice["evaluations"].append(twice["evaluations"][0])
    first.write_text(json.dumps(twice))
    half = json.loads(second.read_text())
    del half["figures"]["self_filter"]
    second.write_text(json.dumps(half))
    shown = call("report")
    assert shown.exit_code == 0
    assert "small              1" in shown.stdout
    assert "ranked on test more than once: small, seed 0 (standard 2 times)" in shown.stderr
    assert f"{second}: not ranked to the end, and left out" in shown.stderr


def _other_commit(path: Path, commit: str) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | {"commit": commit}))


def test_a_study_goes_on_where_one_variant_fails(
    config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(config_file.parent)
    study = config_file.with_name("s.toml")
    study.write_text(
        'base = "small.toml"\n[[variants]]\nname = "bad"\ntraining = {learning_rate = 1e30}\n'
        '[[variants]]\nname = "good"\n'
    )
    done = call("reproduce", study, "--device", "cpu")
    assert done.exit_code == 2
    assert "1 of 2 failed: s/bad, seed 0" in done.stderr
    assert "s/good, seed 0: valid MRR 0." in done.stdout
    assert Path("results/studies/s/good/seed-0.json").is_file()
    assert call("report", "--json").stdout == "{}\n"
    shown = call("report")
    assert shown.stdout == "studies: s\nshown by: golde report --study s\n"
    assert "nothing was reproduced" not in shown.stderr
    assert "\ngood         1" in call("report", "--study", "s").stdout
    Path("results").rename("my results")
    named = call("report", "--results", "my results").stdout
    assert named.endswith("shown by: golde report --results 'my results' --study s\n")


def test_a_study_that_is_ranked_on_another_split_again_can_be_read(
    config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(config_file.parent)
    study = config_file.with_name("s.toml")
    for split, again in (("valid", []), ("test", ["--again"])):
        study.write_text(f'base = "small.toml"\nsplit = "{split}"\n[[variants]]\nname = "a"\n')
        done = call("reproduce", study, "--device", "cpu", *again)
        assert done.exit_code == 0, done.output
    assert "Test, standard protocol" in call("report", "--study", "s").stdout


def test_what_is_trained_already_is_only_ranked(
    config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(config_file.parent)
    words = ["reproduce", config_file, "--seeds", "0", "--device", "cpu"]
    assert "seed 0: training in runs/ring/small/seed-0" in call(*words).stderr
    elsewhere = call(*words, "--results", "other")
    assert elsewhere.exit_code == 0, elsewhere.output
    assert "seed 0: going on from runs/ring/small/seed-0" in elsewhere.stderr


@pytest.fixture
def seed_0_done(config_file: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The words to reproduce more seeds with, where the first is reproduced."""
    monkeypatch.chdir(config_file.parent)
    words: list[object] = ["reproduce", config_file, "--device", "cpu", "--seeds"]
    assert call(*words, "0").exit_code == 0
    return words


def test_a_seed_beside_seeds_of_other_settings_is_refused_before_it_is_trained(
    config_file: Path, seed_0_done: list[object]
) -> None:
    words = seed_0_done
    config_file.write_text(config_file.read_text().replace("steps = 12", "steps = 13"))
    refused = call(*words, "1")
    assert refused.exit_code == 2
    message = "seed-0.json: was made differently (training.steps is 12 there and 13 here), and has no mean"
    assert message in " ".join(refused.stderr.split())
    assert not Path("runs/ring/small/seed-1").exists()
    assert call(*words, "0,1", "--again").exit_code == 0
    assert call("report").exit_code == 0


def test_who_stops_the_only_seed_that_is_made_anew_is_told_of_no_others(
    seed_0_done: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*given: object, **named: object) -> None:
        raise StoppedError("stopped")

    monkeypatch.setattr("golde.report.reproduce.reproduce", stop)
    one = call(*seed_0_done, "0", "--again")
    assert one.exit_code == 130
    assert one.stderr.endswith("stopped; the same command goes on\n")
    assert "name the rest" in call(*seed_0_done, "0,1", "--again").stderr


def test_a_damaged_run_does_not_keep_others_from_being_trained(seed_0_done: list[object]) -> None:
    Path("results/runs/ring/small/seed-0.json").unlink()
    Path("runs/ring/small/seed-0/run.json").write_text("{}")
    done = call(*seed_0_done, "0,1")
    assert done.exit_code == 2
    assert "1 of 2 failed" in done.stderr
    assert Path("results/runs/ring/small/seed-1.json").is_file()


def test_mistakes_have_exit_code_2(config_file: Path, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere.toml"
    nowhere.write_text('graph = "no-such"\n')
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "gone")
    for words, message in (
        (["reproduce", tmp_path / "none.toml"], "cannot read the configuration"),
        (
            ["reproduce", nowhere],
            f"nowhere.toml: graph = 'no-such', looked for in {Path.cwd()}: 'no-such' is no file",
        ),
        (["reproduce", config_file, "--runs", nowhere], f"--runs: {nowhere} is no folder; name"),
        (["reproduce", config_file, "--runs", dangling], f"--runs: {dangling} is no folder; name"),
        (
            ["reproduce", config_file, "--results", nowhere / "a"],
            f"--results: {nowhere} is no folder",
        ),
        (["reproduce", config_file, "--seeds", "a"], "--seeds 'a': give whole numbers"),
        (["reproduce", config_file, "--seeds", "-1"], "--seeds '-1': give whole numbers from 0"),
        (["report", "--results", tmp_path / "none"], "no such folder"),
        (["report", "--results", nowhere], "nowhere.toml: is no folder"),
        (["report", "--json", "--paper"], "give one of them"),
        (["report", "--paper", "--study", "x"], "give one of them"),
        (["report", "--results", tmp_path, "--study", "x"], "no results of it; it has none"),
    ):
        found = call(*words)
        assert found.exit_code == 2, found.output
        assert message in " ".join(found.stderr.split())


def test_trainings_side_by_side(config_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(config_file.parent)
    done = call("reproduce", config_file, "--seeds", "0,1", "--device", "cpu", "--jobs", "2")
    assert done.exit_code == 0, done.output
    for seed in (0, 1):
        record = json.loads(Path(f"results/runs/ring/small/seed-{seed}.json").read_text())
        assert record["training"]["trainings_at_a_time"] == 2
        log = Path(f"runs/ring/small/seed-{seed}.log")
        assert f"seed {seed}: begun, log in {log}" in " ".join(done.stderr.split())
        assert f"seed {seed}: training in" in log.read_text()


@pytest.mark.parametrize("words", [[], ["--again"]])
def test_who_asks_to_stop_while_a_seed_is_ranked_gets_no_other_seed(
    words: list[str], config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(config_file.parent)
    original, ranked = Run.evaluate, []

    def evaluate(self: Run, split: str, **options: Any) -> Any:
        ranked.append(options["self_filter"])
        if options["self_filter"]:  # the last of a seed
            signal.raise_signal(signal.SIGINT)
        return original(self, split, **options)

    monkeypatch.setattr(Run, "evaluate", evaluate)
    stopped = call("reproduce", config_file, "--seeds", "0,1", "--device", "cpu", *words)
    assert stopped.exit_code == 130, stopped.output
    assert "seed 0: test MRR 0." in stopped.stdout
    assert ranked == [False, True]
    assert "stopped; the same command goes on" in stopped.stderr
    assert ("name the rest with --seeds" in " ".join(stopped.stderr.split())) == bool(words)
    rest = call("reproduce", config_file, "--seeds", "1", "--device", "cpu", *words)
    assert rest.exit_code == 0, rest.output  # there is nothing after it that could be stopped


def test_a_training_that_others_have_under_way_is_told_from_its_log(
    config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(config_file.parent)
    (job,) = read_jobs(config_file, seeds=[0])
    graph = load_graph(job.graph)
    log = Path("runs/ring/small/seed-0.log")
    log.parent.mkdir(parents=True)
    log.write_text("error: of another time\nstep 3 of 12\n")
    place = Place(job, graph, results=Path("results"), runs=Path("runs"))
    with place.alone():
        found = call("reproduce", config_file, "--seeds", "0", "--device", "cpu", "--jobs", "2")
    assert found.exit_code == 2
    assert "another process is reproducing it; wait for it" in " ".join(found.stderr.split())
    assert "another time" not in found.stderr
    assert log.read_text().startswith("error: of another time\nstep 3 of 12\n")


def test_a_process_that_dies_without_a_word_is_not_told_by_an_error_of_before(
    tmp_path: Path,
) -> None:
    log = tmp_path / "a.log"
    log.write_text("error: of before\n")
    begun = log.stat().st_size
    assert _last_error(log, begun) == "no word"
    log.write_text("error: of before\nTraceback\nMemoryError\n")
    assert _last_error(log, begun) == "MemoryError"
    log.write_text("error: of before\nerror: of now\nstep 4 of 12 of another process\n")
    assert _last_error(log, begun) == "of now"


def test_a_device_that_is_not_there_is_told_once_and_nothing_is_left(
    config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is one here")
    monkeypatch.chdir(config_file.parent)
    found = call("reproduce", config_file, "--device", "cuda")
    assert found.exit_code == 2
    assert found.stderr.count("error:") == 1
    assert not Path("results").exists()


def test_processes_are_so_many_at_a_time_and_stop_when_asked(tmp_path: Path) -> None:
    def command(name: str, code: str) -> Command:
        return Command([sys.executable, "-S", "-c", code], tmp_path / f"{name}.log")

    told: list[tuple[str, int]] = []
    commands = {
        "good": command("good", "print('words')"),
        "bad": command("bad", "import sys; sys.exit('why')"),
    }
    codes = run_side_by_side(commands, 1, tell=lambda *found: told.append(found))
    assert told == [("good", 0), ("bad", 1)]
    assert codes == dict(told)
    assert (tmp_path / "bad.log").read_text() == "why\n"
    slow = {name: command(name, "import time; time.sleep(60)") for name in "ab"}
    looks = iter([False, True])
    stopped = run_side_by_side(
        slow, 1, tell=lambda *found: None, should_stop=lambda: next(looks, True)
    )
    assert list(stopped) == ["a"]


@pytest.mark.parametrize(
    ("at_a_time", "count", "threads"), [(1, 2, 8), (2, 3, 4), (3, 3, 2), (16, 2, 4), (9, 9, 1)]
)
def test_processes_share_the_threads_that_there_are(
    at_a_time: int, count: int, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each by itself would take all of them, and wait for the others' half of the time and more."""
    code = "import os; print(os.environ['OMP_NUM_THREADS'])"

    def told() -> set[str]:
        words = [sys.executable, "-S", "-c", code]
        commands = {str(n): Command(words, tmp_path / f"{n}.log") for n in range(count)}
        for command in commands.values():
            command.log.unlink(missing_ok=True)
        run_side_by_side(commands, at_a_time, tell=lambda *found: None)
        return {command.log.read_text().strip() for command in commands.values()}

    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert told() == {str(threads)}
    monkeypatch.setenv("OMP_NUM_THREADS", "8")  # where they are so many because somebody said so
    assert told() == {str(threads)}


def test_train_takes_the_graph_of_its_configuration(config_file: Path, tmp_path: Path) -> None:
    done = call("train", "--config", config_file, "--out", tmp_path / "run", "--device", "cpu")
    assert done.exit_code == 0, done.output
    assert "graph" not in (tmp_path / "run" / "config.toml").read_text()
    resumed = call("train", "--config", config_file, "--out", tmp_path / "run", "--resume")
    assert resumed.exit_code == 0, resumed.output
