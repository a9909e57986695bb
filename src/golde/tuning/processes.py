"""Several processes that search side by side in one study."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from golde.errors import GoldeError
from golde.threads import sharing_threads
from golde.tuning.study import Study

LOOK_AGAIN = 0.5
"""Seconds between looks at the processes."""

STUDY = "GOLDE_STUDY"
"""The variable that says where the study is, if no argument does."""

STOPPED = 130
"""Exit code of a worker that was asked to stop."""


@dataclass
class _Worker:
    process: subprocess.Popen[bytes]
    said: IO[bytes]

    @property
    def name(self) -> str:
        """As the process itself signs its trials."""
        return f"{platform.node()}:{self.process.pid}"

    def last_words(self) -> str:
        self.said.seek(0)
        lines = self.said.read().decode("utf-8", "replace").split("\n")
        return next((line.removeprefix("error: ") for line in reversed(lines) if line), "no word")


def search_side_by_side(
    study: Study,
    command: Sequence[str],
    count: int,
    *,
    tell: Callable[[], None] = lambda: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Run ``command`` in ``count`` processes until each says that there are enough trials; false if stopped.

    A worker that is killed loses its trial, and another takes its place. One that fails ends the search.
    """
    # The place is no argument, which all users of a machine can read.
    environment = sharing_threads(count) | {STUDY: study.place}
    workers = [_start(command, environment) for _ in range(count)]
    stopped, idle = False, 0
    try:
        while workers:
            if should_stop() and not stopped:
                stopped = True
                for worker in workers:
                    worker.process.terminate()
            for worker in [w for w in workers if w.process.poll() is not None]:
                workers.remove(worker)
                code, lost = worker.process.returncode, study.give_up_running(worker.name)
                with worker.said:
                    if code > 0 and not stopped:
                        raise GoldeError(f"a worker failed: {worker.last_words()}")
                if code < 0 and not stopped:
                    idle += not lost
                    if idle > count:
                        raise GoldeError(
                            "workers are killed before they begin a trial; is there enough memory? try fewer "
                            "--workers"
                        )
                    workers.append(_start(command, environment))
            tell()
            time.sleep(LOOK_AGAIN if workers else 0)
    finally:
        for worker in workers:  # an error on the way, or a second Ctrl-C
            worker.process.kill()
            worker.process.wait()
            study.give_up_running(worker.name)
    return not stopped


def _start(command: Sequence[str], environment: Mapping[str, str]) -> _Worker:
    said = tempfile.TemporaryFile()  # noqa: SIM115
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,  # it ends when we do, however that comes about
        stdout=subprocess.DEVNULL,
        stderr=said,
        start_new_session=True,  # a Ctrl-C is ours alone: it reaches them once, from here
    )
    return _Worker(process, said)


def orphaned() -> Callable[[], bool]:
    """In a worker: whether the process that started it is gone."""
    gone = threading.Event()

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 1):  # not the buffer, whose lock would be held at the end
            pass
        gone.set()

    threading.Thread(target=wait, daemon=True).start()
    return gone.is_set
