"""Files that are either the old ones or the new ones, never something in between."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from golde.errors import RunError


def write_text(path: Path, text: str) -> None:
    """Replace ``path`` by ``text`` in one step."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("w", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


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
    partial = path.with_name(path.name + ".partial")
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    save_file(plain, partial, {"json": json.dumps(metadata or {})})
    with partial.open("rb+") as file:
        os.fsync(file.fileno())
    os.replace(partial, path)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and metadata of a file written by ``write_tensors``, on the CPU."""
    try:
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            metadata = json.loads((file.metadata() or {}).get("json", "{}"))
    except (OSError, SafetensorError, json.JSONDecodeError) as error:
        raise RunError(f"{path}: cannot be read: {error}") from None
    return tensors, metadata
