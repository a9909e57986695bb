"""Keeping a service up: one process listens, another answers, and is started anew should it die.

The socket belongs to the first, so that who connects meanwhile waits instead of being refused. The first has
neither runs nor torch in it.
"""

from __future__ import annotations

import multiprocessing
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from golde.errors import GoldeError

MOST_DEATHS, WITHIN_SECONDS = 5, 60.0
"""So many starts in so short a time are a reason to give up."""
GRACE_SECONDS = 10.0
"""For the process that answers to end, before it is killed."""

Work = Callable[[Any, socket.socket, Connection], None]
"""What the answering process does: it sends ``None`` once it is ready, or the words of a mistake."""


class Supervisor:
    """Runs ``work(settings, listening, tell)`` in a process of its own until told to stop."""

    def __init__(
        self,
        work: Work,
        settings: Any,
        listening: socket.socket,
        *,
        ready: Callable[[], None],
        warn: Callable[[str], None],
    ) -> None:
        """``ready`` is called once the first process answers, ``warn`` whenever one was lost."""
        self.work, self.settings, self.listening = work, settings, listening
        self.ready, self.warn = ready, warn
        self._answered = False
        self._stop = threading.Event()
        self._wake, self._woken = multiprocessing.Pipe()

    def run(self) -> None:
        """Until SIGINT or SIGTERM; a ``GoldeError`` if the service cannot be started or kept up."""
        before = {
            one: signal.signal(one, self._told_to_stop) for one in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            self._keep_up()
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)
            self.listening.close()

    def _told_to_stop(self, number: int, frame: Any) -> None:
        self._stop.set()
        with suppress(OSError):
            self._wake.send_bytes(b"stop")

    def _keep_up(self) -> None:
        deaths: deque[float] = deque(maxlen=MOST_DEATHS)
        while not self._stop.is_set():
            code = self._one_life()
            if self._stop.is_set():
                return
            deaths.append(time.monotonic())
            if len(deaths) == MOST_DEATHS and deaths[-1] - deaths[0] < WITHIN_SECONDS:
                raise GoldeError(
                    f"the service ended {MOST_DEATHS} times within {WITHIN_SECONDS:g} seconds, the last time "
                    f"with {_in_words(code)}; see what was logged above"
                )
            self.warn(f"the process that answers ended with {_in_words(code)}; starting another")
            self._stop.wait(0.1 * 2 ** (len(deaths) - 1))

    def _one_life(self) -> int:
        """Start a process that answers, see it through, and return how it ended."""
        spawning = multiprocessing.get_context("spawn")  # threads and CUDA do not survive a fork
        told, tell = spawning.Pipe(duplex=False)
        process = spawning.Process(
            target=self.work, args=(self.settings, self.listening, tell), daemon=True
        )
        process.start()
        tell.close()
        try:
            self._first_words(told)
            wait([process.sentinel, self._woken])
        finally:
            told.close()
            if self._stop.is_set():
                self.listening.close()  # who comes now is refused, not kept waiting
            self._end(process)
        return process.exitcode or 0

    def _first_words(self, told: Connection) -> None:
        """Wait until the process is ready, or ends; a mistake that it names is raised here."""
        if told not in wait([told, self._woken]):
            return
        with suppress(EOFError):  # it ended without a word
            mistake = told.recv()
            if mistake is not None:
                raise GoldeError(mistake)
            if not self._answered:
                self._answered = True
                self.ready()

    @staticmethod
    def _end(process: Any) -> None:
        if process.is_alive():
            process.terminate()
            process.join(GRACE_SECONDS)
        if process.is_alive():
            process.kill()
        process.join()


def _in_words(code: int) -> str:
    """An exit code as people say it."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
