"""A process that is killed or stalls costs the steps since the last checkpoint, and nothing else."""

from __future__ import annotations

import os
import platform
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from golde.runs import RunFolder
from processes import environment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]

SETTINGS = (
    "model.signature=P2x2",
    "training.steps=400",
    "training.patience=999",
    "training.log_every=5",
    "training.checkpoint_seconds=0",
    "training.precision=float64",
)
ENVIRONMENT = environment(OMP_NUM_THREADS="1")


def started(folder: Path, out: str, *more: str) -> subprocess.Popen[str]:
    facts = "".join(f"e{i}\tnext\te{(i + 1) % 30}\n" for i in range(30))
    (folder / "ring.tsv").write_text(facts)
    words = [word for setting in SETTINGS for word in ("--set", setting)]
    command = [
        "train",
        "ring.tsv",
        "--out",
        out,
        "--devices",
        "2",
        "--device",
        "cpu",
        *words,
        *more,
    ]
    return subprocess.Popen(
        [sys.executable, "-m", "golde", *command],
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def workers(folder: Path, out: str) -> list[int]:
    """The processes that train there."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_text().split("\0")
            at_work = (process / "cwd").resolve() == folder.resolve()
            told = (process / "environ").read_text()
        except (OSError, ValueError):
            continue
        if process.name.isdigit() and at_work and out in words and "\0RANK=" in told:
            found.append(int(process.name))
    return found


def wait_for(run: subprocess.Popen[str], folder: Path, out: str) -> None:
    """Until there are two processes that have made twenty steps more."""
    reached, deadline = step_of(folder / out), time.monotonic() + 120
    while step_of(folder / out) < reached + 20 or len(workers(folder, out)) < 2:
        assert run.poll() is None, run.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.05)


def rank_of(process: int) -> int:
    told = Path(f"/proc/{process}/environ").read_text().split("\0")
    return int(dict(entry.split("=", 1) for entry in told if "=" in entry)["RANK"])


def step_of(run: Path) -> int:
    """Of the newest checkpoint."""
    steps = [int(path.name.removeprefix("checkpoint-")) for path in run.glob("checkpoint-*")]
    return max(steps, default=0)


def test_a_run_whose_processes_are_killed_ends_as_if_they_were_not(tmp_path: Path) -> None:
    whole = started(tmp_path, "whole")
    words, _ = whole.communicate(timeout=300)
    assert whole.returncode == 0, words

    run = started(tmp_path, "run")
    for kill in (0, 1):
        wait_for(run, tmp_path, "run")
        os.kill(workers(tmp_path, "run")[kill], signal.SIGKILL)
    words, _ = run.communicate(timeout=300)
    assert run.returncode == 0, words

    found, expected = RunFolder(tmp_path / "run").about(), RunFolder(tmp_path / "whole").about()
    assert found["validation"] == expected["validation"]
    assert not list((tmp_path / "run").glob("checkpoint*"))


def test_a_process_that_stalls_is_named_in_time_and_the_run_goes_on(tmp_path: Path) -> None:
    run = started(tmp_path, "run", "--stall-limit", "5")
    wait_for(run, tmp_path, "run")
    stalled = next(process for process in workers(tmp_path, "run") if rank_of(process) == 1)
    other = next(process for process in workers(tmp_path, "run") if process != stalled)
    os.kill(stalled, signal.SIGSTOP)
    began = time.monotonic()
    while Path(f"/proc/{other}").exists() and time.monotonic() < began + 30:
        time.sleep(0.1)
    waited = time.monotonic() - began
    words, _ = run.communicate(timeout=300)
    assert 4 < waited < 15
    assert f"process 1 ({platform.node()}, process id {stalled}) gives no sign of life" in words
    assert re.search(r"the others wait for it since \d+ s, at step \d+", words)
    assert run.returncode == 0, words
    assert RunFolder(tmp_path / "run").about()["steps"] == 400


@pytest.mark.usefixtures("hangups_are_heard")
@pytest.mark.parametrize("wish", [signal.SIGTERM, signal.SIGHUP])
def test_a_wish_to_stop_reaches_all_and_nothing_is_said_but_how_to_go_on(
    wish: signal.Signals, tmp_path: Path
) -> None:
    run = started(tmp_path, "run")
    wait_for(run, tmp_path, "run")
    run.send_signal(wish)  # as Ctrl-C, which who runs in the background is not told of
    words, _ = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "go on with: golde train --resume --out run --devices 2" in words
    assert "Traceback" not in words
    assert (tmp_path / "run" / "checkpoint.json").exists()
