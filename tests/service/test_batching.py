"""Questions are scored together, refused when there are too many, and never left without an answer."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Any

from golde.errors import GoldeError
from golde.progress import Progress
from golde.service.batching import Batcher
from golde.service.jobs import Jobs
from golde.service.limits import Limits
from golde.service.problems import Problem


class Scorer:
    """Doubles numbers, and remembers which came together; it may be held up, and it cannot bear 13."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, list[int]]] = []
        self.go_on = threading.Event()
        self.go_on.set()

    def __call__(self, key: str, questions: Sequence[int]) -> list[int]:
        self.go_on.wait(10)
        self.batches.append((key, list(questions)))
        if 13 in questions:
            raise GoldeError("13 brings bad luck")
        return [2 * question for question in questions]


async def ask_all(batcher: Batcher, asked: Sequence[tuple[str, int]]) -> list[Any]:
    return await asyncio.gather(*(batcher.ask(*one) for one in asked), return_exceptions=True)


def answered(scorer: Scorer, asked: Sequence[tuple[str, int]], **limits: Any) -> list[Any]:
    """The answers, or problems, of questions asked at once."""

    async def work() -> list[Any]:
        batcher = Batcher(scorer, Limits(**limits), at_once=lambda key: 4)
        batcher.start()
        try:
            return await ask_all(batcher, asked)
        finally:
            await batcher.stop()

    return asyncio.run(work())


def test_questions_of_one_kind_are_scored_together_and_in_turn() -> None:
    scorer = Scorer()
    asked = [("a", 1), ("b", 2), ("a", 3), ("a", 4), ("a", 5), ("a", 6), ("b", 7)]
    assert answered(scorer, asked) == [2, 4, 6, 8, 10, 12, 14]
    assert scorer.batches == [("a", [1, 3, 4, 5]), ("b", [2, 7]), ("a", [6])]


def test_a_bad_question_spoils_no_other() -> None:
    found = answered(Scorer(), [("a", 1), ("a", 13), ("a", 2)])
    assert (found[0], found[2]) == (2, 4)
    assert isinstance(found[1], GoldeError)


def test_what_does_not_fit_into_the_queue_is_refused_at_once() -> None:
    found = answered(Scorer(), [("a", i) for i in range(9)], queue=5)
    assert found[:5] == [0, 2, 4, 6, 8]
    for problem in found[5:]:
        assert problem.status == 503
        assert ("Retry-After", "1") in problem.headers


def test_who_waits_too_long_is_told_and_the_next_is_answered() -> None:
    scorer = Scorer()
    scorer.go_on.clear()

    async def work() -> Any:
        batcher = Batcher(scorer, Limits(seconds=0.05), at_once=lambda key: 4)
        batcher.start()
        (late,) = await ask_all(batcher, [("a", 1)])
        scorer.go_on.set()
        await asyncio.sleep(0.05)
        (next_one,) = await ask_all(batcher, [("a", 2)])
        await batcher.stop()
        return late, next_one

    late, next_one = asyncio.run(work())
    assert (late.status, next_one) == (503, 4)
    assert "longer than 0.05 seconds" in late.message


def test_at_the_end_those_under_way_and_those_waiting_are_told() -> None:
    scorer = Scorer()
    scorer.go_on.clear()

    async def work() -> list[Any]:
        batcher = Batcher(scorer, Limits(), at_once=lambda key: 2)
        batcher.start()
        asked = [asyncio.create_task(batcher.ask("a", i)) for i in range(5)]
        await asyncio.sleep(0.05)
        await batcher.stop()
        found = await asyncio.gather(*asked, return_exceptions=True)
        scorer.go_on.set()
        return [*found, *(await ask_all(batcher, [("a", 6)]))]

    found = asyncio.run(work())
    assert [problem.status for problem in found] == [503] * 6
    assert all("shutting down" in problem.message for problem in found)


def done(works: Sequence[Any], most: int = 8, **limits: Any) -> list[Any]:
    async def work() -> list[Any]:
        jobs = Jobs(most, Limits(threads=1, **limits))
        try:
            return await asyncio.gather(*(jobs.do(one) for one in works), return_exceptions=True)
        finally:
            jobs.stop()

    return asyncio.run(work())


def test_jobs_are_bounded_in_number_and_time() -> None:
    ended = threading.Event()

    def endless(progress: Progress) -> None:
        try:
            while True:
                time.sleep(0.005)
                progress(0, 1)
        except Problem:
            ended.set()
            raise

    assert done([lambda _: 1, lambda _: 2]) == [1, 2]
    late, waiting, refused = done([endless, endless, lambda _: 3], most=2, seconds=0.1)
    assert [problem.status for problem in (late, waiting, refused)] == [503] * 3
    assert "such requests" in refused.message
    assert ended.wait(2), "a job goes on that nobody waits for"


def test_the_errors_of_a_job_come_through() -> None:
    def wrong(_: Progress) -> None:
        raise GoldeError("no")

    (found,) = done([wrong])
    assert str(found) == "no"
