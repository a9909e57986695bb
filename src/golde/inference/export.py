"""Embeddings and relation maps for other tools, with their names.

safetensors, npz   everything: ``entity`` (E, numbers), and for the i-th group of the signature the
                   maps of all relations as ``relation.i.NAME``, with the constraints applied, ready
                   for use: orthogonal matrices ``G`` or ``Q``, weights ``p``, boosts ``b``, ``beta``.
                   Of a baseline the vectors of all relations as ``relation``; complex rows hold all
                   real parts, then all imaginary ones.
                   With reciprocal relations, row r + R belongs to head queries of relation r.
parquet            the entity table, for vector stores: ``id``, ``name``, and ``embedding`` (a list of
                   fixed size); the signature, or the kind of a baseline, in the metadata of the schema.
csv                the entity table under a header row: ``name``, then its numbers ``x1``, ``x2``, …
tsv                the same rows between tabs, without a header.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError
from golde.inference.tables import pyarrow, tsv_line
from golde.models import GoldE, Model
from golde.runs.atomic import replacing, write_tensors

_ROWS = 1 << 14  # of the entity table turned into text or Parquet at a time
_HEADER_LIMIT = 90_000_000  # bytes; readers of safetensors refuse headers above 100 MB


def export(model: Model, graph: KnowledgeGraph, path: Path, format: str) -> None:
    """Write the model to ``path`` in one of ``FORMATS``."""
    if format not in FORMATS:
        raise GoldeError(f"unknown export format {format!r}; use one of {', '.join(FORMATS)}")
    model.refuse_divergence()
    FORMATS[format](model, graph, path)


@torch.no_grad()
def tensors(model: Model) -> dict[str, Tensor]:
    """All that scores depend on, by name, on the CPU."""
    return {name: value.cpu() for name, value in model.tensors().items()}


def _space(model: Model) -> dict[str, str]:
    """What the tensors are of: a signature, or the kind of a baseline."""
    kind = model.config.kind
    return {"signature": str(model.signature)} if isinstance(model, GoldE) else {"kind": kind}


def _safetensors(model: Model, graph: KnowledgeGraph, path: Path) -> None:
    about = {
        **_space(model),
        "reciprocal": model.config.reciprocal,
        "entities": graph.entities.names,
        "relations": graph.relations.names,
    }
    if len(json.dumps(about)) > _HEADER_LIMIT:
        raise GoldeError(
            f"the names of {len(graph.entities)} entities do not fit the header of a safetensors "
            "file; export npz or parquet"
        )
    write_tensors(path, tensors(model), about)


def _npz(model: Model, graph: KnowledgeGraph, path: Path) -> None:
    arrays = {name: value.numpy() for name, value in tensors(model).items()}
    arrays["entities"] = np.array(graph.entities.names, dtype=np.str_)
    arrays["relations"] = np.array(graph.relations.names, dtype=np.str_)
    arrays |= {name: np.array(value) for name, value in _space(model).items()}
    with replacing(path) as partial, partial.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def _parquet(model: Model, graph: KnowledgeGraph, path: Path) -> None:
    arrow = pyarrow("exporting Parquet")
    table = model.entity.detach().cpu().numpy()
    size, number = table.shape[1], arrow.from_numpy_dtype(table.dtype)
    columns = [
        ("id", arrow.int64()),
        ("name", arrow.string()),
        ("embedding", arrow.list_(number, size)),
    ]
    schema = arrow.schema(columns, metadata=_space(model))
    with replacing(path) as partial, arrow.parquet.ParquetWriter(partial, schema) as writer:
        for start in range(0, len(table), _ROWS):
            rows = table[start : start + _ROWS]
            ids = arrow.array(np.arange(start, start + len(rows)))
            names = arrow.array(graph.entities[start : start + _ROWS], arrow.string())
            lists = arrow.FixedSizeListArray.from_arrays(rows.ravel(), size)
            writer.write_batch(arrow.record_batch([ids, names, lists], schema))


def _csv(model: Model, graph: KnowledgeGraph, path: Path) -> None:
    table = model.entity.detach().cpu().numpy()
    with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["name", *(f"x{i}" for i in range(1, table.shape[1] + 1))])
        for name, row in zip(graph.entities, table, strict=True):
            writer.writerow([name, *row])  # numpy prints the shortest text that reads back


def _tsv(model: Model, graph: KnowledgeGraph, path: Path) -> None:
    table = model.entity.detach().cpu().numpy()
    with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
        for name, row in zip(graph.entities, table, strict=True):
            file.write(tsv_line((name, *row)))


FORMATS: dict[str, Callable[[Model, KnowledgeGraph, Path], None]] = {
    "safetensors": _safetensors,
    "npz": _npz,
    "parquet": _parquet,
    "csv": _csv,
    "tsv": _tsv,
}
