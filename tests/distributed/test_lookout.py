"""A process that keeps the others waiting is named, and only that one."""

from __future__ import annotations

import torch
from torch.distributed import HashStore

from golde.distributed.lookout import STALLED, Lookout
from threads import Meeting, Thread

LIMIT = 40.0


class Watched:
    """Processes whose clocks and exchanges a test moves by hand."""

    def __init__(self, size: int) -> None:
        self.store, self.said, self.left = HashStore(), list[str](), list[int]()
        self.worlds = [Thread(rank, Meeting(size)) for rank in range(size)]
        self.lookouts = [
            Lookout(world, self.store, LIMIT, self.said.append, self.left.append)
            for world in self.worlds
        ]

    def until(self, seconds: int, dead: tuple[int, ...] = ()) -> None:
        """Look every two seconds, but for those who are stopped."""
        for now in range(0, seconds, 2):
            for rank, lookout in enumerate(self.lookouts):
                if rank not in dead and not self.left:
                    lookout.look(float(now))

    def come_to(self, exchanges: int, *ranks: int, step: int, waits: bool = True) -> None:
        for rank in ranks:
            world = self.worlds[rank]
            world.exchanges, world.step, world.waits = exchanges, step, waits


def test_a_process_that_is_stopped_is_named_by_one_of_the_others() -> None:
    watched = Watched(3)
    watched.come_to(70, 0, 1, 2, step=7)
    for lookout in watched.lookouts:
        lookout.look(0.0)
    watched.come_to(71, 0, 2, step=7)
    watched.until(int(LIMIT) + 10, dead=(1,))
    [said] = watched.said
    assert said.startswith("process 1 (")
    assert "gives no sign of life: the others wait for it since 40 s, at step 7" in said
    assert watched.left == [STALLED]


def test_a_process_that_is_busy_elsewhere_is_told_from_a_dead_one() -> None:
    watched = Watched(3)
    watched.come_to(71, 1, 2, step=7)
    watched.come_to(70, 0, step=6, waits=False)
    watched.until(int(LIMIT) + 10)
    [said] = watched.said
    assert "process 0 (" in said
    assert "is alive, but comes no further" in said
    assert said.endswith("at step 6")


def test_nobody_is_named_before_the_limit_nor_while_all_are_busy() -> None:
    watched = Watched(3)
    watched.come_to(71, 0, 1, step=7)
    watched.come_to(70, 2, step=7)
    watched.until(int(LIMIT) - 1)
    assert not watched.said

    busy = Watched(2)
    busy.come_to(70, 0, 1, step=7, waits=False)
    busy.until(10 * int(LIMIT))
    assert not busy.said


def test_processes_that_all_wait_have_lost_each_other() -> None:
    watched = Watched(2)
    watched.come_to(71, 0, 1, step=7)
    watched.until(int(LIMIT) + 10)
    assert watched.said == [
        "all processes wait for each other since 40 s, at step 7: the network between them may be down"
    ]


def test_the_count_of_exchanges_goes_on_before_the_others_are_waited_for() -> None:
    """Else the one that is waited for could not be told from those who wait."""
    world = Thread(0, Meeting(1))
    seen = []

    def look(tensor: torch.Tensor) -> torch.Tensor:
        seen.append((world.exchanges, world.waits))
        return tensor

    world._add_up = look  # type: ignore[method-assign]
    world.add_up(torch.zeros(2))
    assert seen == [(1, True)]
    assert not world.waits
