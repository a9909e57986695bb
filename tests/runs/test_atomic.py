"""A file is the old one or the new one, whatever goes wrong in between."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from golde.errors import RunError
from golde.runs.atomic import replacing, write_text


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
