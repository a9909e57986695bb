"""What is to be served, and to whom: small enough to be handed from one process to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os.path import abspath
from pathlib import Path

from golde.errors import GoldeError
from golde.service.guard import Access
from golde.service.limits import Limits


@dataclass(frozen=True)
class Settings:
    """All that the process that answers needs to know."""

    folders: Mapping[str, Path]
    device: str
    access: Access
    limits: Limits


def named_folders(paths: Iterable[Path]) -> dict[str, Path]:
    """Runs by the names of their folders, with a number where two are alike."""
    found: dict[str, Path] = {}
    places: dict[Path, Path] = {}
    for path in paths:
        place = path.resolve()
        if place in places:
            raise GoldeError(f"{path}: is the same run as {places[place]}; name different ones")
        places[place] = path
        # That of a link to a run, not of what it leads to now: addresses must outlast the next model.
        base = Path(abspath(path)).name or "run"
        number = 1
        name = base
        while name in found:
            number += 1
            name = f"{base}-{number}"
        found[name] = path
    return found
