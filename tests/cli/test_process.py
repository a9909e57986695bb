"""What only a process of its own can show: how quick it starts and how it ends."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from golde.__main__ import main
from golde.cli.main import app

Golde = Callable[..., Any]

COMMAND = (sys.executable, "-m", "golde")


def test_help_is_quick() -> None:
    def seconds() -> float:
        start = time.perf_counter()
        shown = subprocess.run([*COMMAND, "--help"], capture_output=True, text=True, check=True)
        assert "golde demo" in shown.stdout
        return time.perf_counter() - start

    assert min(seconds() for _ in range(3)) < 0.5


def test_help_loads_nothing_heavy() -> None:
    script = "import sys, golde.cli.main; print([m for m in HEAVY if m in sys.modules])".replace(
        "HEAVY", repr(["torch", "numpy", "rich.table", "golde.config", "matplotlib"])
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"


def test_the_list_of_sets_loads_nothing_heavy() -> None:
    script = (
        "import sys; from golde.cli.main import app; app(['data', 'list'], standalone_mode=False);"
        "print([m for m in ('torch', 'numpy', 'golde.config') if m in sys.modules])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert shown[-1] == "[]"
    assert any(line.startswith("world") for line in shown)


@pytest.mark.parametrize(
    "command",
    [
        *(info.callback.__name__ for info in app.registered_commands if info.callback),
        "data list",
        "data describe",
    ],
)
def test_each_command_shows_an_example(golde: Golde, command: str) -> None:
    shown = golde(*command.split(), "--help")
    assert shown.exit_code == 0
    assert f"Example: golde {command}" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80


@pytest.mark.skipif(os.name == "nt", reason="a closed pipe is another error there")
def test_a_reader_that_leaves_gets_no_traceback() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    process = subprocess.Popen(
        [*COMMAND, "data", "list", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait() == 1


@pytest.mark.skipif(os.name == "nt", reason="a closed pipe is another error there")
def test_work_goes_on_where_nobody_reads_how_it_gets_on() -> None:
    script = "from golde.cli.output import note; note('a'); note('b'); print('done')"
    process = subprocess.Popen(
        [sys.executable, "-c", f"input(); {script}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    process.stderr.close()
    process.stderr = None
    said, _ = process.communicate("\n", timeout=60)
    assert (process.returncode, said) == (0, "done\n")


@pytest.mark.skipif(os.name == "nt", reason="no such terminals there")
def test_work_goes_on_where_the_terminal_has_gone(tmp_path: Path) -> None:
    """A bar is shown meanwhile; the terminal's signal is ignored, as by ``nohup``."""
    import pty

    script = (
        "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from pathlib import Path; from golde.cli.output import bar, note\n"
        "with bar('working') as progress:\n"
        "    progress(1, 2); Path('begun').touch()\n"
        "    while not Path('gone').exists(): pass\n"
        "    progress(2, 2); note('in between')\n"
        "note('at the end'); Path('done').touch()\n"
    )
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", script], cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    deadline = time.monotonic() + 60
    while not (tmp_path / "begun").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.close(ours)
    (tmp_path / "gone").touch()
    assert process.wait(60) == 0
    assert (tmp_path / "done").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_cannot_be_written_is_one_message() -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [*COMMAND, "data", "list", "--json"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: No space left")
    assert ended.stderr.count("\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="the shell there cannot close a stream")
def test_no_output_at_all_is_no_mistake() -> None:
    command = [*COMMAND, "data", "list"]
    ended = subprocess.run(
        f"exec {shlex.join(command)} >&-", shell=True, stderr=subprocess.PIPE, text=True
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_wish_to_end_while_modules_are_imported_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Interrupted(ModuleType):
        def __getattr__(self, name: str) -> None:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "golde.cli.main", Interrupted("golde.cli.main"))
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 130
