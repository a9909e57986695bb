"""The parameters of all processes as one file, written as the rows come in.

What was trained by many is then a run like any other. The first process writes; it never holds more than a
portion of the table. The layout is that of safetensors: the length of a header, the header, then the numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from golde.distributed.streaming import PORTION, Take, header, written_by_first
from golde.distributed.update import OWNED
from golde.distributed.world import World
from golde.models import Model
from golde.runs import RunFolder

_TYPES = {torch.float32: "F32", torch.float64: "F64"}


def write_model(folder: RunFolder, model: Model, entities: int, world: World) -> None:
    """Write ``model.safetensors``; every process gives its rows."""
    tensors = {name: tensor.detach() for name, tensor in sorted(model.state_dict().items())}

    def write(take: Take) -> None:
        take(header({name: _written_as(name, t, entities) for name, t in tensors.items()}))
        for portion in _portions(tensors, entities, world):
            if world.rank == 0:
                take(portion.cpu().numpy().tobytes())

    written_by_first(folder.path / "model.safetensors", world, write)


def _portions(tensors: dict[str, Tensor], entities: int, world: World) -> Iterator[Tensor]:
    """All numbers in order; what one process owns is told to the others portion by portion."""
    owned = world.share(entities)
    for name, tensor in tensors.items():
        if name not in OWNED:
            yield tensor
            continue
        few = max(1, PORTION // (tensor.element_size() * max(1, tensor.shape[1:].numel())))
        for start in range(0, entities, few):
            stop = min(start + few, entities)
            portion = tensor.new_zeros(stop - start, *tensor.shape[1:])
            begin, end = max(start, owned.start), min(stop, owned.stop)
            if begin < end:
                portion[begin - start : end - start] = tensor[
                    begin - owned.start : end - owned.start
                ]
            yield world.add_up(portion)


def _written_as(name: str, tensor: Tensor, entities: int) -> tuple[str, list[int], int]:
    """Type, shape and bytes of a parameter in the file."""
    shape = [entities, *tensor.shape[1:]] if name in OWNED else list(tensor.shape)
    return _TYPES[tensor.dtype], shape, tensor.element_size() * torch.Size(shape).numel()
