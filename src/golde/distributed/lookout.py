"""Which process keeps the others waiting: each publishes how far it is, and who waits too long looks.

A process that others wait for has come to fewer exchanges than they have. It may be alive, and busy with
something else, or give no sign of life. One of those who wait says so and ends, since what it waits for
cannot be called off; whoever started the processes may then start all of them again.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from threading import Event, Thread
from typing import NamedTuple

from torch.distributed.distributed_c10d import Store

from golde.distributed.world import World
from golde.words import duration

STALLED = 75
"""Exit code of a process that gave up waiting."""

LOOKS = 10
"""How often a process publishes where it is, and looks, within the time limit."""

MOST_SECONDS = 5.0
"""Between two looks."""


class Place(NamedTuple):
    """How far a process is."""

    beat: int  # goes up for as long as the process lives
    exchanges: int
    step: int
    waits: bool
    who: str

    def __str__(self) -> str:
        return f"{self.beat} {self.exchanges} {self.step} {self.waits:d} {self.who}"

    @classmethod
    def read(cls, text: str) -> Place:
        beat, exchanges, step, waits, who = text.split(" ", 4)
        return cls(int(beat), int(exchanges), int(step), waits == "1", who)


class Lookout:
    """Watches, from a thread of its own, whether a world gets on."""

    def __init__(
        self,
        world: World,
        store: Store,
        limit: float,
        tell: Callable[[str], None],
        leave: Callable[[int], object] = os._exit,
    ) -> None:
        self.world, self.store, self.limit = world, store, limit
        self.tell, self.leave = tell, leave
        self._who = f"{platform.node()}, process id {os.getpid()}"
        self._beat, self._moved, self._seen = 0, 0.0, -1
        self._alive: dict[int, tuple[int, float]] = {}  # beat, and when it was first seen
        self._over = Event()
        self._thread = Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Lookout:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join(timeout=MOST_SECONDS)

    def _watch(self) -> None:
        while not self._over.wait(min(self.limit / LOOKS, MOST_SECONDS)):
            try:
                self.look(time.monotonic())
            except RuntimeError:  # the store is gone, and with it whoever started the processes
                return

    def look(self, now: float) -> None:
        """Publish where this process is; if it has waited too long, say for whom, and leave."""
        world = self.world
        self._beat += 1
        mine = Place(self._beat, world.exchanges, world.step, world.waits, self._who)
        self.store.set(_key(world.rank), str(mine))
        if mine.exchanges != self._seen:
            self._seen, self._moved = mine.exchanges, now
            self._alive.clear()
        elif now - self._moved >= self.limit / 2:
            places = self._places(now)
            if now - self._moved >= self.limit and places is not None:
                self._judge(places, now)

    def _places(self, now: float) -> list[Place] | None:
        """How far each process is; nothing until all have said so once."""
        keys = [_key(rank) for rank in range(self.world.size)]
        if not self.store.check(keys):
            return None
        places = [Place.read(text.decode()) for text in self.store.multi_get(keys)]
        for rank, place in enumerate(places):
            if self._alive.get(rank, (-1, now))[0] != place.beat:
                self._alive[rank] = place.beat, now
        return places

    def _judge(self, places: list[Place], now: float) -> None:
        most = max(place.exchanges for place in places)
        ahead = [rank for rank, place in enumerate(places) if place.exchanges == most]
        if self.world.rank != ahead[0]:
            return  # it is waited for, or leaves it to another to say so
        waited = duration(round(now - self._moved))
        behind = [rank for rank in range(len(places)) if rank not in ahead]
        if behind:
            lines = [self._line(rank, places[rank], waited, now) for rank in behind]
        elif all(place.waits for place in places):
            lines = [
                f"all processes wait for each other since {waited}, at step {places[0].step}: the network "
                "between them may be down"
            ]
        else:
            return
        for line in lines:
            self.tell(line)
        self.leave(STALLED)

    def _line(self, rank: int, place: Place, waited: str, now: float) -> str:
        silent = now - self._alive[rank][1] >= self.limit / 4
        how = "gives no sign of life" if silent else "is alive, but comes no further"
        return (
            f"process {rank} ({place.who}) {how}: the others wait for it since {waited}, at step "
            f"{place.step}"
        )


def _key(rank: int) -> str:
    return f"golde place {rank}"
