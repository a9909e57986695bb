"""Files that are either the old ones or the new ones, never something in between."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from glob import escape
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from golde.errors import RunError
from golde.runs.lock import locked

RESTORE = "check its rights, restore it from a copy of the run, or train again with another --out"
"""What to do about a damaged file of a run."""

_LOCK = "lock"


def rooms(path: Path) -> set[Path]:
    """Folders in which the next content of ``path`` is being written, or was when its process was killed."""
    return set(path.parent.glob(f"{escape(path.name)}.????????.partial"))


def clear_leftovers(path: Path) -> None:
    """Remove what killed processes left of writing ``path``; what others are writing now stays."""
    for room in rooms(path):
        with suppress(OSError):  # not ours to remove, or gone by now
            with locked(room / _LOCK) as dead:
                if dead:
                    _empty(room)
            _remove_empty(room)


@contextmanager
def _room(path: Path) -> Iterator[Path]:
    """A new folder beside ``path``, locked by this write until it is over, then removed.

    Two processes never write to one name, and what safetensors leaves behind when it is killed is in it.
    """
    while True:
        room = Path(mkdtemp(".partial", f"{path.name}.", path.parent))
        with ExitStack() as stack:
            stack.callback(_remove_empty, room)
            try:
                mine = stack.enter_context(locked(room / _LOCK))
            except FileNotFoundError:
                mine = False
            if mine:
                stack.callback(_empty, room)  # it may fill the last of the disk
                yield room
                return
        # Another process took the room for a leftover before it was locked: the next will do.


def _empty(room: Path) -> None:
    """Remove all but the lock, which is open still."""
    for file in room.iterdir():
        if file.name != _LOCK:
            with suppress(OSError):
                file.unlink()


def _remove_empty(room: Path) -> None:
    with suppress(OSError):
        room.rmdir()


def refuse_what_is_no_file(path: Path) -> None:
    """An error if ``path`` is there and is a folder, a device or a pipe, which no file may replace."""
    if path.is_dir():
        raise RunError(f"{path}: cannot be written: it is a folder; remove it, or name a file")
    if path.exists() and not path.is_file():
        raise RunError(f"{path}: cannot be written: it is no ordinary file; name one")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file to write that takes the place of ``path`` once it is safely on disk, and else goes away."""
    refuse_what_is_no_file(path)
    path = path.resolve()  # of a link, the file it leads to
    try:
        clear_leftovers(path)
        with _room(path) as room:
            new = room / path.name
            yield new
            with new.open("rb+") as file:
                os.fsync(file.fileno())
            os.replace(new, path)
    except (OSError, SafetensorError, UnicodeEncodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise RunError(
            f"{path}: cannot be written: {why}; check the path, its rights and the space on the disk"
        ) from None


def write_text(path: Path, text: str) -> None:
    """Replace ``path`` by ``text`` in one step."""
    with replacing(path) as new:
        new.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Replace ``path`` by readable JSON in one step."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path, *, fix: str = RESTORE) -> dict[str, Any]:
    """JSON written by ``write_json``; ``fix`` is what the error advises if it cannot be read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {error.strerror or error}; {fix}") from None
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits
        raise RunError(f"{path}: cannot be read: {error}; {fix}") from None
    if not isinstance(content, dict):
        raise RunError(f"{path}: holds no JSON object; {fix}")
    return content


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, Any] | None = None
) -> None:
    """Replace ``path`` by a safetensors file, its metadata as one JSON text inside, in one step."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with replacing(path) as new:
        new.touch()
        mode = new.stat().st_mode  # safetensors' own would keep everyone else from reading it
        save_file(plain, new, {"json": json.dumps(metadata or {})})
        new.chmod(mode)


def read_tensors(path: Path, *, fix: str = RESTORE) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and metadata of a file written by ``write_tensors``, on the CPU; ``fix`` as for JSON."""
    try:
        with path.open("rb"):  # safetensors takes a file it may not read for a missing one
            pass
        with safe_open(path, "pt") as file:
            # Copies: what the file maps would keep it from being replaced on Windows.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
            metadata = json.loads((file.metadata() or {}).get("json", "{}"))
    except (OSError, SafetensorError, ValueError, RecursionError) as error:
        raise RunError(f"{path}: cannot be read: {error}; {fix}") from None
    if not isinstance(metadata, dict):
        raise RunError(f"{path}: its metadata is no JSON object; {fix}")
    return tensors, metadata
