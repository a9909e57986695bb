"""Work beside the scoring of questions: a few jobs at a time, others waiting, each until its time is up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from golde.progress import Progress
from golde.service.limits import Limits
from golde.service.problems import busy, closing, too_slow

_Result = TypeVar("_Result")


class Jobs:
    """A bounded number of jobs in threads of their own, each until its time is up.

    A thread cannot be stopped from outside, so a job is handed a ``Progress`` that raises once it is late.
    """

    def __init__(self, most: int, limits: Limits) -> None:
        """``most``: how many may be under way or waiting."""
        self.most, self.limits = most, limits
        self.open = 0
        self._closed = False
        self._threads = ThreadPoolExecutor(limits.threads, thread_name_prefix="golde-jobs")

    def stop(self) -> None:
        """Let jobs under way end at their next report, and those that wait at once."""
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def do(self, work: Callable[[Progress], _Result]) -> _Result:
        """The result of a job, or a ``Problem`` if there is no room or no time for it."""
        if self._closed:
            raise closing()
        if self.open >= self.most:
            raise busy(f"{self.open} such requests are under way; try again in a moment")
        loop = asyncio.get_running_loop()
        late = time.monotonic() + self.limits.seconds

        def watch(done: int, total: int) -> None:
            if self._closed:
                raise closing()
            if time.monotonic() > late:
                raise too_slow(self.limits.seconds)

        def run() -> _Result:
            watch(0, 1)
            return work(watch)

        job = self._threads.submit(run)
        self.open += 1

        def ended(_: Future[_Result]) -> None:
            with suppress(RuntimeError):  # the loop has ended before the job
                loop.call_soon_threadsafe(self._count_down)

        job.add_done_callback(ended)
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await asyncio.wrap_future(job)
        except TimeoutError:
            raise too_slow(self.limits.seconds) from None
        except asyncio.CancelledError:
            if self._closed:  # it was still waiting for a thread
                raise closing() from None
            raise

    def _count_down(self) -> None:
        self.open -= 1
