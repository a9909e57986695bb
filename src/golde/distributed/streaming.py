"""What all processes have, told to the first portion by portion: it never holds more than one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import BinaryIO

import numpy as np
import torch

from golde.distributed.world import World
from golde.errors import GoldeError

PORTION = 1 << 24
"""Bytes that are sent at once."""


def told_first(portions: Iterable[bytes], world: World, take: Callable[[bytes], object]) -> None:
    """Give ``take`` in the first process all portions: its own, then those of the second, and so on.

    Where it fails, all processes do, once everything was sent.
    """
    mine, failed = iter(portions), None
    for source in range(world.size):
        more = True
        while more:
            portion = next(mine, None) if source == world.rank else None
            more = bool(world.add_up(torch.tensor(portion is not None, dtype=torch.int64)))
            coded = torch.from_numpy(np.frombuffer(portion or b"", np.uint8).copy())
            parcels = [coded, *([coded.new_empty(0)] * (world.size - 1))]
            received = world.deliver(parcels)[source]
            if world.rank == 0 and failed is None:
                try:
                    take(received.numpy().tobytes())
                except GoldeError as error:
                    failed = error
    with world.all_or_none():
        if failed is not None:
            raise failed


def joined_texts(texts: Iterable[str], between: str, *, first: bool) -> Iterator[bytes]:
    """Texts with something between them, and before them unless they are the first, in portions."""
    left, some = iter(texts), 1 << 16
    while block := list(islice(left, some)):
        yield (("" if first else between) + between.join(block)).encode()
        first = False


def write_header(file: BinaryIO, tensors: Mapping[str, tuple[str, list[int], int]]) -> None:
    """The head of a safetensors file: of each tensor its type, shape and bytes, in the order they follow."""
    header: dict[str, object] = {"__metadata__": {"json": "{}"}}
    at = 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
