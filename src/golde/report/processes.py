"""Several commands at a time, each a process of its own with a log of its own."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from golde.threads import sharing_threads

LOOK_AGAIN = 0.1
"""Seconds between looks at the processes under way."""


@dataclass(frozen=True)
class Command:
    """A command line and where what it prints goes."""

    words: list[str]
    log: Path


def run_side_by_side(
    commands: Mapping[str, Command],
    at_a_time: int,
    *,
    tell_begun: Callable[[str], None] = lambda name: None,
    tell: Callable[[str, int], None],
    should_stop: Callable[[], bool] = lambda: False,
) -> dict[str, int]:
    """Run named commands, ``at_a_time`` of them; the exit code of each that was begun.

    ``tell_begun`` hears of each that starts, ``tell`` of each that ends. When ``should_stop`` turns true no
    other is begun, and those under way are asked to stop.
    """
    waiting = dict(commands)
    running: dict[str, subprocess.Popen[bytes]] = {}
    environment = sharing_threads(max(1, min(at_a_time, len(commands))))
    codes: dict[str, int] = {}
    stopped = False
    try:
        while waiting or running:
            if should_stop() and not stopped:
                stopped = True
                waiting.clear()
                for process in running.values():
                    process.terminate()
            while waiting and len(running) < at_a_time:
                name = next(iter(waiting))
                running[name] = _start(waiting.pop(name), environment)
                tell_begun(name)
            for name in [name for name, process in running.items() if process.poll() is not None]:
                codes[name] = running.pop(name).returncode
                tell(name, codes[name])
            time.sleep(LOOK_AGAIN if running else 0)
    finally:
        for process in running.values():  # an error on the way, or a second Ctrl-C
            process.kill()
    return codes


def _start(command: Command, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    command.log.parent.mkdir(parents=True, exist_ok=True)
    with command.log.open("ab") as log:  # another process may be writing there: see Place.alone
        return subprocess.Popen(
            command.words,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a Ctrl-C is ours alone: it reaches them once, from here
        )
