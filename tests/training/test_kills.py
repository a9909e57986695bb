"""A real process, killed or interrupted, and started again with --resume."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from golde.data import synthetic

pytestmark = pytest.mark.slow

GOLDE = [sys.executable, "-m", "golde"]
SETTINGS = {
    "model.signature": "P4x2 Q5x2",
    "training.steps": 600,
    "training.batch_size": 64,
    "training.negatives": 32,
    "training.validate_every": 100,
    "training.patience": 100,
    "training.log_every": 20,
    "training.checkpoint_seconds": 0,  # after every step: many kills hit one being written
}


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of train, valid and test files."""
    graph = synthetic.inverse(copies=40)
    folder = tmp_path_factory.mktemp("facts")
    for split in ("train", "valid", "test"):
        lines = [
            f"{graph.entities[h]}\t{graph.relations[r]}\t{graph.entities[t]}\n"
            for h, r, t in graph.split(split).tolist()
        ]
        (folder / f"{split}.tsv").write_text("".join(lines), encoding="utf-8")
    return folder


def start(facts: Path, out: Path, *options: str) -> subprocess.Popen[str]:
    settings = [part for key, value in SETTINGS.items() for part in ("--set", f"{key}={value}")]
    return subprocess.Popen(
        [*GOLDE, "train", str(facts), "--out", str(out), "--device", "cpu", *settings, *options],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> None:
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said


def outcome(out: Path) -> tuple[bytes, list[Any]]:
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    for line in log:
        line.pop("seconds", None)
        line.pop("queries_per_second", None)
    return (out / "model.safetensors").read_bytes(), log


@pytest.fixture(scope="module")
def uninterrupted(facts: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("whole") / "run"
    finish(start(facts, out))
    return outcome(out)


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    for _ in range(6000):
        if path.exists():
            return
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.01)
    raise AssertionError(f"{path} did not come")


def written(path: Path) -> int:
    """When a file was last written; 0 if it is not there."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


@pytest.mark.parametrize("seed", [0, 1])
def test_killed_again_and_again_it_ends_where_it_would_have(
    seed: int, facts: Path, uninterrupted: Any, tmp_path: Path
) -> None:
    out, rng, kills = tmp_path / "run", random.Random(seed), 0
    checkpoint = out / "checkpoint.safetensors"
    process = start(facts, out)
    wait_for(checkpoint, process)
    while kills < 5:
        time.sleep(rng.uniform(0.0, 0.3))
        process.kill()
        process.communicate()
        if process.returncode == 0:
            break  # it was done
        kills += 1
        before = written(checkpoint)
        process = start(facts, out, "--resume")
        while process.poll() is None and written(checkpoint) == before:
            time.sleep(0.01)  # past its own first checkpoint, then some
    finish(process)
    assert kills >= 2
    assert outcome(out) == uninterrupted
    assert not list(out.glob("*.partial"))
    assert not checkpoint.exists()


def test_killed_before_its_first_checkpoint_it_starts_over(
    facts: Path, uninterrupted: Any, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    process = start(facts, out)
    while not out.exists():
        time.sleep(0.001)
    process.kill()
    process.communicate()
    finish(start(facts, out, "--resume"))
    assert outcome(out) == uninterrupted


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C cannot be sent to one process there")
@pytest.mark.usefixtures("hangups_are_heard")
@pytest.mark.parametrize("wish", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_polite_wish_to_stop_leaves_a_checkpoint(
    wish: str, facts: Path, uninterrupted: Any, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    process = start(facts, out, "--set", "training.checkpoint_seconds=1000")
    wait_for(out / "log.jsonl", process)
    process.send_signal(getattr(signal, wish))
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert "--resume" in said
    assert (out / "checkpoint.safetensors").exists()
    finish(start(facts, out, "--resume", "--set", "training.checkpoint_seconds=1000"))
    assert outcome(out) == uninterrupted
