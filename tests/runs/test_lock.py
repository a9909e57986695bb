"""One process at a time trains in a run folder, and a dead one is in nobody's way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from golde.errors import RunError
from golde.runs import lock as lock_module
from golde.runs.lock import locked
from golde.training import Report, StoppedError, train
from tiny import quick, ring

HOLDER = """
import sys
from pathlib import Path
from golde.runs.lock import locked
with locked(Path(sys.argv[1], "run.lock")) as mine:
    print(mine, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def started(tmp_path: Path) -> Path:
    """A run with a checkpoint, to go on with."""
    with pytest.raises(StoppedError):
        train(ring(), tmp_path / "run", quick(), should_stop=lambda: True)
    return tmp_path / "run"


@pytest.fixture
def holder(started: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock of the run."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(started)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        yield process
        process.kill()


def test_a_second_training_is_refused_until_the_first_is_dead(
    started: Path, holder: subprocess.Popen[str]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in started.iterdir()}
    for resume in (True, False):
        with pytest.raises(RunError, match="run: another process is training there"):
            train(ring(), started, quick(), resume=resume)
    assert {path: path.stat().st_mtime_ns for path in started.iterdir()} == before
    holder.kill()
    holder.wait()
    assert (started / "run.lock").exists()  # it had no time to clear up
    folder = train(ring(), started, quick(), resume=True)
    assert folder.about()["finished"]
    assert not (started / "run.lock").exists()


def test_training_holds_the_lock_from_start_to_end(tmp_path: Path) -> None:
    refused = []

    def intrude(report: Report) -> None:
        with pytest.raises(RunError, match="another process") as error:
            train(ring(), tmp_path, quick(), resume=True)
        refused.append(error)

    train(ring(), tmp_path, quick(), watch=intrude)
    assert len(refused) == 5  # at every report


def test_a_start_killed_at_once_leaves_a_folder_to_start_in(tmp_path: Path) -> None:
    (tmp_path / "run.lock").touch()
    assert train(ring(), tmp_path, quick()).about()["finished"]


def test_a_lock_file_removed_while_another_opens_it_is_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first lets go, and the third comes, between the opening and the locking of the second."""
    path, first, third = tmp_path / "lock", ExitStack(), ExitStack()
    assert first.enter_context(locked(path))
    lock = lock_module._lock

    def late(path: Path, file: int) -> bool:
        monkeypatch.undo()
        first.close()
        assert third.enter_context(locked(path))
        return lock(path, file)

    monkeypatch.setattr(lock_module, "_lock", late)
    with third, locked(path) as second:
        assert not second
    assert not path.exists()
