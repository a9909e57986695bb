"""Work captured as one CUDA graph after it was done a few times, and then replayed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import torch

EAGER = 3
"""Times before the capture: libraries choose their ways and allocate on first use, which it must not see."""

_Outcome = TypeVar("_Outcome")


class Replay(Generic[_Outcome]):
    """Does the work it is given, which is always the same and reads all that changes from the device."""

    def __init__(self) -> None:
        self._done = 0
        self._captured: tuple[torch.cuda.CUDAGraph, _Outcome] | None = None

    @property
    def captured(self) -> bool:
        """Whether the work is replayed from now on."""
        return self._captured is not None

    def __call__(self, work: Callable[[], _Outcome]) -> _Outcome:
        """The outcome; that of a replay is in the same memory every time."""
        if self._captured is not None:
            graph, outcome = self._captured
            graph.replay()
            return outcome
        # Beside the main stream, as a capture asks for; the capture itself runs nothing.
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            outcome = work()
            self._done += 1
            if self._done == EAGER:
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, stream=stream):
                    replayed = work()
                self._captured = graph, replayed
        torch.cuda.current_stream().wait_stream(stream)
        return outcome
