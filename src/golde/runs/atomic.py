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


def partial(path: Path) -> Path:
    """Where the next content of ``path`` is written until it is complete."""
    return path.with_name(path.name + ".partial")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file to write that takes the place of ``path`` once it is safely on disk, and else goes away."""
    if path.is_dir():
        raise RunError(f"{path}: cannot be written: it is a folder; name a file in it")
    if path.exists() and not path.is_file():  # a device or a pipe must not be replaced by a file
        raise RunError(f"{path}: cannot be written: it is no ordinary file; name one")
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


def read_json(path: Path) -> dict[str, Any]:
    """JSON written by ``write_json``."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise RunError(f"{path}: cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise RunError(f"{path}: holds no JSON object; the run folder is damaged")
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


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and metadata of a file written by ``write_tensors``, on the CPU."""
    try:
        with path.open("rb"):  # safetensors takes a file it may not read for a missing one
            pass
        with safe_open(path, "pt") as file:
            # Copies: what the file maps would keep it from being replaced on Windows.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
            metadata = json.loads((file.metadata() or {}).get("json", "{}"))
    except (OSError, SafetensorError, json.JSONDecodeError) as error:
        raise RunError(f"{path}: cannot be read: {error}") from None
    if not isinstance(metadata, dict):
        raise RunError(f"{path}: its metadata is no JSON object; the file is damaged")
    return tensors, metadata
