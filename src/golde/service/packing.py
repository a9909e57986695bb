"""Columns of numbers in one piece, for a page that draws them: no text to parse, nothing to copy.

    bytes 0–3    "GLD1"
    bytes 4–7    length h of the header, unsigned, little-endian; a multiple of 4
    8 … 8+h      the header as JSON in UTF-8, filled up with spaces
    then         the columns one after another, each n numbers of 4 bytes, little-endian

The header has ``count`` n and ``columns``, a list of ``{"name", "type"}`` with ``type`` "int32" or "float32".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

MAGIC = b"GLD1"
MEDIA_TYPE = "application/octet-stream"

_TYPES = {torch.int32: ("int32", "<i4"), torch.float32: ("float32", "<f4")}


def packed(header: Mapping[str, Any], columns: Mapping[str, Tensor]) -> bytes:
    """A header and equally long columns, (n,) each, of int32 or float32."""
    count = len(next(iter(columns.values())))
    about = {
        **header,
        "count": count,
        "columns": [
            {"name": name, "type": _TYPES[column.dtype][0]} for name, column in columns.items()
        ],
    }
    text = json.dumps(about, ensure_ascii=False).encode("utf-8", "replace")
    text += b" " * (-len(text) % 4)
    parts = [
        column.numpy().astype(_TYPES[column.dtype][1]).tobytes() for column in columns.values()
    ]
    return b"".join([MAGIC, len(text).to_bytes(4, "little"), text, *parts])
