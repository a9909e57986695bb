"""A checkpoint of several processes: what each owns by row range, what all have once, and an index.

    checkpoint.json                              progress, digest and row ranges of the newest
    checkpoint-STEP/shared.safetensors           relations, of which every process has the same
    checkpoint-STEP/rows-BEGIN-END.safetensors   entities BEGIN..END with biases, moments and the best so far

The index is written last, in one step: until then the checkpoint before counts. Who goes on, with however
many processes, reads the rows it owns out of the files that have them.
"""

from __future__ import annotations

import shutil
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from golde.distributed.world import World
from golde.errors import RunError
from golde.runs.atomic import read_json, read_tensors, write_json, write_tensors
from golde.training.checkpoint import FIX, Progress, progress_of


def save(
    index: Path,
    owned: dict[str, Tensor],
    shared: dict[str, Tensor],
    rows: range,
    progress: Progress,
    digest: str,
    world: World,
) -> None:
    """Write the tensors of all processes; ``owned`` have one row for each of ``rows``."""
    place = _place(index, progress)
    place.mkdir(exist_ok=True)
    write_tensors(place / _name(rows.start, rows.stop), owned)
    if world.rank == 0:
        write_tensors(place / "shared.safetensors", shared)
    edges = world.collect(torch.tensor([rows.start, rows.stop])).tolist()  # all have written theirs
    if world.rank == 0:
        content = {"progress": asdict(progress), "digest": digest, "rows": edges}
        write_json(index, content)
        drop_others(index.parent, place.name)
    world.collect(torch.zeros(()))  # nobody goes on before the index is there


def drop_others(folder: Path, kept: str = "") -> None:
    """Remove all checkpoints but the one that is kept."""
    for place in folder.glob("checkpoint-*"):
        if place.is_dir() and place.name != kept:
            shutil.rmtree(place, ignore_errors=True)


def load(
    index: Path, rows: range, digest: str, steps: int | None
) -> tuple[Progress, dict[str, Tensor]]:
    """Where training stood, the tensors of ``rows`` and those that all have."""
    content = read_json(index, fix=FIX)
    progress = progress_of(index, content, digest, steps)
    place = _place(index, progress)
    shared, _ = read_tensors(place / "shared.safetensors", fix=FIX)
    return progress, _rows(place, _edges(index, content), rows) | shared


def _rows(place: Path, edges: list[tuple[int, int]], rows: range) -> dict[str, Tensor]:
    """The tensors of some rows, put together from the files that have them."""
    found: dict[str, list[Tensor]] = {}
    for start, stop in edges:
        begin, end = max(start, rows.start), min(stop, rows.stop)
        if begin >= end and (start, stop) != edges[0]:  # of the first at least none, for the names
            continue
        path = place / _name(start, stop)
        try:
            with safe_open(path, "pt") as file:
                for name in file.keys():  # noqa: SIM118
                    part = file.get_slice(name)
                    if part.get_shape():
                        tensor = part[begin - start : max(end, begin) - start]
                    else:  # a count of steps
                        tensor = file.get_tensor(name)
                    found.setdefault(name, []).append(tensor)
        except (OSError, SafetensorError) as error:
            raise RunError(f"{path}: cannot be read: {error}; {FIX}") from None
    return {
        name: parts[0] if not parts[0].dim() else torch.cat(parts) for name, parts in found.items()
    }


def _edges(index: Path, content: dict[str, Any]) -> list[tuple[int, int]]:
    """The row ranges of the files, one after another from the first entity on."""
    edges = [tuple(pair) for pair in content.get("rows") or () if isinstance(pair, list)]
    sound = bool(edges) and all(len(pair) == 2 and {*map(type, pair)} == {int} for pair in edges)
    if not sound or any(before[1] != after[0] for before, after in pairwise([(0, 0), *edges])):
        raise RunError(f"{index}: does not say whose rows are where: the file is damaged; {FIX}")
    return [(start, stop) for start, stop in edges]


def _place(index: Path, progress: Progress) -> Path:
    return index.with_name(f"checkpoint-{progress.step}")


def _name(start: int, stop: int) -> str:
    return f"rows-{start:012d}-{stop:012d}.safetensors"
