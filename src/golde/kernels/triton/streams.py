"""Pieces of work that do not depend on each other, side by side on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TypeVar

import torch

_Result = TypeVar("_Result")


def side_by_side(device: torch.device, jobs: Iterable[Callable[[], _Result]]) -> list[_Result]:
    """What every job returns; each has a stream of its own, so that one fills what another leaves idle.

    Jobs may come one by one: what is done to bring one about is done on the current stream, beside the
    jobs before it. That stream goes on when all are done, also where one has raised. What a job allocates
    belongs to its stream, and a stream takes up a job only after the current one has done what it was
    given before: memory is never handed out again while someone may still read it. Memory of the current
    stream that a job reads must be held on to until all are done.
    """
    if device.type != "cuda":
        return [job() for job in jobs]
    current, begun, found = torch.cuda.current_stream(device), [], []
    try:
        for number, job in enumerate(jobs):
            stream = _stream(device, number)
            stream.wait_stream(current)
            begun.append(stream)
            with torch.cuda.stream(stream):
                found.append(job())
    finally:
        for stream in begun:
            current.wait_stream(stream)
    return found


@cache
def _stream(device: torch.device, number: int) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)
