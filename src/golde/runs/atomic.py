"""Files that are either the old ones or the new ones, never something in between."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from golde.errors import RunError

RESTORE = "check its rights, restore it from a copy of the run, or train again with another --out"
"""What to do about a damaged file of a run."""

_TEMPORARY = ".tmp??????"
"""Where safetensors writes what it then moves to ``partial``, in the same folder; a kill leaves it behind."""


def partial(path: Path) -> Path:
    """Where the next content of ``path`` is written until it is complete."""
    return path.with_name(path.name + ".partial")


def leftovers(folder: Path) -> set[Path]:
    """Files that a library was writing in a folder when its process was killed."""
    return {path for path in folder.glob(_TEMPORARY) if path.is_file()}


def refuse_what_is_no_file(path: Path) -> None:
    """An error if ``path`` is there and is a folder, a device or a pipe, which no file may replace."""
    if path.is_dir():
        raise RunError(f"{path}: cannot be written: it is a folder; name a file in it")
    if path.exists() and not path.is_file():
        raise RunError(f"{path}: cannot be written: it is no ordinary file; name one")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file to write that takes the place of ``path`` once it is safely on disk, and else goes away."""
    refuse_what_is_no_file(path)
    path = path.resolve()  # of a link, the file it leads to
    new = partial(path)
    try:
        yield new
        with new.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(new, path)
    except (OSError, SafetensorError, UnicodeEncodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise RunError(
            f"{path}: cannot be written: {why}; check the path, its rights and the space on the disk"
        ) from None
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)  # it may fill the last of the disk


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
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
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
        new.unlink(missing_ok=True)
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
    except (OSError, SafetensorError, json.JSONDecodeError) as error:
        raise RunError(f"{path}: cannot be read: {error}; {fix}") from None
    if not isinstance(metadata, dict):
        raise RunError(f"{path}: its metadata is no JSON object; {fix}")
    return tensors, metadata
