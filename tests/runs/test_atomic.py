"""A file is the old one or the new one, whatever goes wrong in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch

from golde.errors import RunError
from golde.runs import atomic
from golde.runs.atomic import read_json, replacing, write_json, write_tensors, write_text
from golde.runs.lock import locked
from tiny import left_by_a_kill

WRITER = """
import sys
from pathlib import Path
from golde.runs.atomic import write_json
print("ready", flush=True)
sys.stdin.readline()
for i in range(40):
    write_json(Path(sys.argv[1]), {"by": sys.argv[2], "turn": i, "filling": [i] * 2000})
"""
KILLED = """
import os, signal, sys
from pathlib import Path
from golde.runs.atomic import replacing
with replacing(Path(sys.argv[1])) as new:
    new.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_it_replaces_all_at_once(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with replacing(path) as new:
        new.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left"), ValueError()])
def test_what_goes_wrong_leaves_the_old_file_alone(error: BaseException, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    told = RunError if isinstance(error, OSError) else type(error)
    said = "file: cannot be written: No space left;" if told is RunError else None
    with pytest.raises(told, match=said), replacing(path) as new:  # noqa: PT012
        new.write_text("half")
        raise error
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="it is a folder"), replacing(tmp_path):
        raise AssertionError("nothing should have been asked for")
    assert list(tmp_path.parent.glob("*.partial")) == []


def test_only_an_ordinary_file_is_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(RunError, match="no ordinary file"):
        write_text(pipe, "text")
    assert pipe.is_fifo()


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_several_writers_at_once_and_a_reader_see_whole_files_only(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    write_json(path, {"by": "nobody", "turn": 0, "filling": [0] * 2000})
    with ExitStack() as stack:
        writers = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", WRITER, str(path), str(number)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            for number in range(2)
        ]
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write("go\n")
            writer.stdin.flush()
        reads = 0
        while any(writer.poll() is None for writer in writers):
            found = read_json(path)
            assert found["filling"] == [found["turn"]] * 2000
            reads += 1
        assert [writer.communicate()[1] for writer in writers] == ["", ""]
    assert reads > 10
    assert read_json(path)["turn"] == 39
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="no such signal there")
def test_what_a_kill_left_is_cleared_by_the_next_write(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2
    write_text(path, "new")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_leftovers_of_safetensors_are_cleared_and_other_files_are_not(tmp_path: Path) -> None:
    path, kept = tmp_path / "a.safetensors", tmp_path / "a.safetensors.partial"
    kept.write_text("of somebody")
    other = left_by_a_kill(tmp_path / "b.safetensors")
    left_by_a_kill(path)
    write_tensors(path, {"x": torch.zeros(2)})
    assert set(tmp_path.iterdir()) == {path, kept, other}


def test_a_write_under_way_is_no_leftover(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with replacing(path) as slow:
        slow.write_text("slow")
        write_text(path, "quick")
        assert path.read_text() == "quick"
    assert path.read_text() == "slow"
    assert list(tmp_path.iterdir()) == [path]


def test_a_room_cleared_before_it_is_locked_is_replaced_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"

    def late(place: Path) -> Any:
        monkeypatch.undo()
        atomic.clear_leftovers(path)
        return locked(place)

    monkeypatch.setattr(atomic, "locked", late)
    write_json(path, {"whole": True})
    assert json.loads(path.read_text()) == {"whole": True}
    assert list(tmp_path.iterdir()) == [path]
