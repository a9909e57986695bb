"""What all processes have, told to the first portion by portion: it never holds more than one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch

from golde.distributed.world import World
from golde.runs.atomic import replacing

PORTION = 1 << 24
"""Bytes that are sent at once."""


Take = Callable[[bytes], object]
"""What is done with the next bytes of a file or of a digest."""


def told_first(portions: Iterable[bytes], world: World, take: Take) -> None:
    """Give ``take`` in the first process all portions: its own, then those of the second, and so on."""
    mine = iter(portions)
    for source in range(world.size):
        more = True
        while more:
            portion = next(mine, None) if source == world.rank else None
            more = bool(world.add_up(torch.tensor(portion is not None, dtype=torch.int64)))
            coded = torch.from_numpy(np.frombuffer(portion or b"", np.uint8).copy())
            parcels = [coded, *([coded.new_empty(0)] * (world.size - 1))]
            received = world.deliver(parcels)[source]
            if world.rank == 0:
                take(received.numpy().tobytes())


def written_by_first(path: Path, world: World, write: Callable[[Take], None]) -> None:
    """Replace ``path`` by what ``write`` gives in the first process; if that one fails, all do.

    Nobody waits for it meanwhile: what cannot be written is told at the end.
    """
    with world.all_or_none(), ExitStack() as stack:
        file: BinaryIO | None = None
        with world.all_or_none():
            if world.rank == 0:
                new = stack.enter_context(replacing(path))
                file = stack.enter_context(new.open("wb"))
        failed: list[OSError] = []

        def take(portion: bytes) -> None:
            if file is not None and not failed:
                try:
                    file.write(portion)
                except OSError as error:
                    failed.append(error)

        write(take)
        if failed:
            raise failed[0]  # which ``replacing`` tells with the path


def joined_texts(texts: Iterable[str], between: str, *, first: bool) -> Iterator[bytes]:
    """Texts with something between them, and before them unless they are the first, in portions."""
    left, some = iter(texts), 1 << 16
    while block := list(islice(left, some)):
        yield (("" if first else between) + between.join(block)).encode()
        first = False


def header(tensors: Mapping[str, tuple[str, list[int], int]]) -> bytes:
    """The head of a safetensors file: of each tensor its type, shape and bytes, in the order they follow."""
    entries: dict[str, object] = {"__metadata__": {"json": "{}"}}
    at = 0
    for name, (dtype, shape, size) in tensors.items():
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text
