"""Questions that arrive within a few milliseconds of each other, answered together by one thread."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from golde.service.limits import Limits
from golde.service.problems import busy, closing, too_slow

Compute = Callable[[Any, Sequence[Any]], Sequence[Any]]
"""``compute(key, questions)`` gives an answer to each; questions of one key can be answered together."""
Observe = Callable[[int], None]


@dataclass
class _Waiting:
    key: Hashable
    question: Any
    answer: asyncio.Future[Any]


class Batcher:
    """A bounded queue in front of one thread that has the device.

    While one batch is being answered the next gathers, so batches grow with the load. What does not fit
    into the queue is refused at once: who waits is answered soon.
    """

    def __init__(
        self,
        compute: Compute,
        limits: Limits,
        *,
        at_once: Callable[[Any], int],
        observe: Observe = lambda size: None,
    ) -> None:
        """``at_once(key)``: how many questions of a key to answer together; ``observe`` is told each time."""
        self.compute, self.limits, self.at_once, self.observe = compute, limits, at_once, observe
        self.waiting: deque[_Waiting] = deque()
        self._arrived = asyncio.Event()
        self._closed = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="golde-answers")
        self._work: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to answer, in the running loop."""
        self._work = asyncio.create_task(self._answer_all())

    async def stop(self) -> None:
        """Answer no more; who waits is told so."""
        self._closed = True
        if self._work is not None:
            self._work.cancel()
            with suppress(asyncio.CancelledError):
                await self._work
        while self.waiting:
            self._fail(self.waiting.popleft(), closing())
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def ask(self, key: Hashable, question: Any) -> Any:
        """The answer to a question, or a ``Problem`` if there is no room or no time for it."""
        if self._closed:
            raise closing()
        if len(self.waiting) >= self.limits.queue:
            raise busy(f"{len(self.waiting)} questions are waiting already; try again in a moment")
        one = _Waiting(key, question, asyncio.get_running_loop().create_future())
        self.waiting.append(one)
        self._arrived.set()
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await one.answer
        except TimeoutError:
            raise too_slow(self.limits.seconds) from None

    async def _answer_all(self) -> None:
        while True:
            await self._arrived.wait()
            await asyncio.sleep(self.limits.gather_seconds)
            batch = self._next_batch()
            if not self.waiting:
                self._arrived.clear()
            try:
                await self._answer(batch)
            except asyncio.CancelledError:
                for one in batch:
                    self._fail(one, closing())
                raise

    def _next_batch(self) -> list[_Waiting]:
        """The oldest question and those that can be answered with it; others keep their places."""
        batch: list[_Waiting] = []
        others: deque[_Waiting] = deque()
        while self.waiting:
            one = self.waiting.popleft()
            if one.answer.done():  # nobody waits for it any more
                continue
            if batch and (one.key != batch[0].key or len(batch) >= self.at_once(one.key)):
                others.append(one)
            else:
                batch.append(one)
        self.waiting = others
        return batch

    async def _answer(self, batch: list[_Waiting]) -> None:
        if not batch:
            return
        loop, key = asyncio.get_running_loop(), batch[0].key
        self.observe(len(batch))
        try:
            answers = await loop.run_in_executor(
                self._thread, self.compute, key, [one.question for one in batch]
            )
        except Exception as error:
            if len(batch) > 1:  # one bad question spoils no other
                for one in batch:
                    await self._answer([one])
            else:
                self._fail(batch[0], error)
            return
        for one, answer in zip(batch, answers, strict=True):
            if not one.answer.done():
                one.answer.set_result(answer)

    @staticmethod
    def _fail(one: _Waiting, error: Exception) -> None:
        if not one.answer.done():
            one.answer.set_exception(error)
