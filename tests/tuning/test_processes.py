"""Several processes, and processes that are killed: a search loses a trial at most."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="a process there is not killed by a signal"),
]

Popen = subprocess.Popen[str]


@pytest.fixture
def tune(tmp_path: Path) -> Callable[..., Popen]:
    """Starts ``golde tune`` on a ring, each trial some seconds long."""
    steps = (("next", 1), ("second", 2), ("previous", 29))
    rows = [f"e{i}\t{name}\te{(i + step) % 30}\n" for i in range(30) for name, step in steps]
    (tmp_path / "ring.tsv").write_text("".join(rows), encoding="utf-8")

    def start(*words: object, steps: int = 800) -> Popen:
        given = ("ring.tsv", "--out", "best.toml", "--numbers", "16", "--device", "cpu")
        given += ("--set", f"training.steps={steps}", "--set", "training.patience=100")
        return subprocess.Popen(
            [sys.executable, "-m", "golde", "tune", *given, *map(str, words)],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def finish(process: Popen, code: int = 0) -> tuple[str, str]:
    stdout, stderr = process.communicate(timeout=400)
    assert process.returncode == code, stderr
    return stdout, stderr


def workers(study: Path, count: int) -> list[int]:
    """Process ids of workers under way, once there are so many."""
    for _ in range(2400):
        if study.is_file():
            with closing(sqlite3.connect(study, timeout=60)) as database:
                rows = (
                    database.execute(
                        "SELECT a.value_json FROM trial_user_attributes a JOIN trials t USING (trial_id) "
                        "WHERE a.key = 'worker' AND t.state = 'RUNNING'"
                    ).fetchall()
                    if _has_trials(database)
                    else []
                )
            if len(rows) >= count:
                return [int(json.loads(value).rpartition(":")[2]) for (value,) in rows]
        time.sleep(0.1)
    raise AssertionError("no trial was begun")


def _has_trials(database: sqlite3.Connection) -> bool:
    names = database.execute("SELECT name FROM sqlite_master").fetchall()
    return ("trial_user_attributes",) in names


def outcome(tune: Callable[..., Popen], trials: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(finish(tune("--trials", trials, "--json"))[0])
    return found


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_workers_share_the_trials(tune: Callable[..., Popen], tmp_path: Path) -> None:
    process = tune("--trials", 7, "--workers", 3, steps=300)
    _, stderr = finish(process)
    assert stderr.count("trial ") == 7
    with closing(sqlite3.connect(tmp_path / "best.db")) as database:
        names = database.execute(
            "SELECT DISTINCT value_json FROM trial_user_attributes WHERE key = 'worker'"
        ).fetchall()
        points = database.execute("SELECT COUNT(*) FROM trials").fetchone()
    assert len(names) == 3
    assert points == (7,)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best.db", "best.toml", "ring.tsv"]


def test_a_killed_worker_is_replaced_and_its_trial_tried_again(
    tune: Callable[..., Popen], tmp_path: Path
) -> None:
    process = tune("--trials", 4, "--workers", 2)
    os.kill(workers(tmp_path / "best.db", 2)[0], signal.SIGKILL)
    finish(process)
    found = outcome(tune, 4)
    assert len(found["trials"]) == 4
    assert {trial["state"] for trial in found["trials"]} <= {"complete", "pruned"}
    numbers = [trial["trial"] for trial in found["trials"]]
    assert len(set(range(max(numbers) + 1)) - set(numbers)) == 1


def test_a_killed_command_takes_its_workers_along_and_goes_on(
    tune: Callable[..., Popen], tmp_path: Path
) -> None:
    process = tune("--trials", 3, "--workers", 2)
    running = workers(tmp_path / "best.db", 2)
    process.kill()
    process.communicate()
    for _ in range(600):
        if all(map(gone, running)):
            break
        time.sleep(0.1)
    assert all(map(gone, running))
    assert len(outcome(tune, 3)["trials"]) == 3
    assert not (tmp_path / "best.db.runs").exists()


@pytest.mark.parametrize("count", [1, 2])
def test_an_interrupted_search_says_how_to_go_on(
    tune: Callable[..., Popen], tmp_path: Path, count: int
) -> None:
    process = tune("--trials", 3, "--workers", count)
    workers(tmp_path / "best.db", count)
    process.send_signal(signal.SIGINT)
    stdout, stderr = finish(process, 130)
    assert stdout == ""
    assert "the same command goes on" in stderr
    assert "best.db" in stderr
    assert not (tmp_path / "best.db.runs").exists()
    assert len(outcome(tune, 3)["trials"]) == 3
