"""A step captured as one CUDA graph after a few plain ones, and then replayed."""

from __future__ import annotations

from collections.abc import Callable

import torch

from golde.training.update import Outcome

EAGER_STEPS = 3
"""Before the capture: libraries choose their ways and allocate on first use, which it must not see."""


class Replay:
    """``step`` without arguments, which reads all that changes from memory on the device."""

    def __init__(self, step: Callable[[], Outcome]) -> None:
        self.step = step
        self._done = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._outcome: Outcome | None = None

    def __call__(self) -> Outcome:
        if self._graph is not None and self._outcome is not None:
            self._graph.replay()
            return self._outcome
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            outcome = self.step()
            self._done += 1
            if self._done == EAGER_STEPS:
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, stream=stream):
                    self._outcome = self.step()
                self._graph = graph
        torch.cuda.current_stream().wait_stream(stream)
        return outcome
