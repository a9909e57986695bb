"""Jobs side by side: all of them are done, in an order that does not show."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from golde.kernels.triton.streams import side_by_side

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
on_a_gpu = pytest.mark.skipif(not CUDA, reason="there are no streams without a GPU")


def sums(x: Tensor, count: int) -> list[Tensor]:
    """``x + i`` as ``count`` jobs that allocate on the way."""

    def job(i: int) -> Tensor:
        return (x.clone() * 2 + 2 * i) / 2

    return side_by_side(x.device, [partial(job, i) for i in range(count)])


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_results_are_in_the_order_of_the_jobs(count: int) -> None:
    found = sums(torch.zeros(3, device=DEVICE), count)
    assert [t.tolist() for t in found] == [[i] * 3 for i in range(count)]


def test_what_goes_wrong_in_a_job_is_heard_of() -> None:
    def wrong() -> Tensor:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        side_by_side(DEVICE, [wrong, partial(torch.zeros, 3)])


@on_a_gpu
def test_jobs_come_after_what_was_asked_for_and_before_what_is_asked_for_next() -> None:
    """The device is kept busy, so that whoever does not wait sees the numbers from before."""
    x = torch.zeros(1 << 20, device=DEVICE)
    for turn in range(1, 4):
        torch.cuda._sleep(10_000_000)
        x += 1
        found = sums(x, 4)
        total = torch.stack(found).sum(0)
        del found  # the next turn may have the memory
        x.add_(0.5).sub_(0.5)
        assert (total == 4 * turn + 6).all()


@on_a_gpu
@pytest.mark.parametrize("capture", [False, True])
def test_streams_come_together_again_where_a_job_goes_wrong(capture: bool) -> None:
    """What the jobs before it were given to do is waited for; a capture can go on."""
    x = torch.zeros(1 << 20, device=DEVICE)

    def add() -> Tensor:
        torch.cuda._sleep(10_000_000)
        return x.add_(1)

    def wrong() -> Tensor:
        raise ValueError("no")

    def jobs() -> None:
        with pytest.raises(ValueError, match="no"):
            side_by_side(DEVICE, [add, wrong, add, add])
        x.mul_(2)

    if capture:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            jobs()
        graph.replay()
    else:
        jobs()
    assert (x == 2).all()


@on_a_gpu
def test_jobs_can_be_captured() -> None:
    x = torch.zeros(1 << 16, device=DEVICE)
    sums(x, 3)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        total = torch.stack(sums(x, 3)).sum(0)
    for value in (1, 5):
        x.fill_(value)
        graph.replay()
        assert (total == 3 * value + 3).all()
