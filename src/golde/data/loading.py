"""One door for every source of facts."""

from __future__ import annotations

from pathlib import Path

from golde.data.graph import SPLITS, KnowledgeGraph
from golde.data.numbering import NameIndex
from golde.data.text import read_tsv
from golde.errors import DataError
from golde.progress import Progress, silent


def load_graph(
    source: str | Path,
    *,
    data_dir: str | Path | None = None,
    columns: str | None = None,
    valid: float | int = 0.1,
    test: float | int = 0.1,
    seed: int = 0,
    progress: Progress = silent,
) -> KnowledgeGraph:
    """Read a graph from a folder with train, valid and test files."""
    path = Path(source)
    index = NameIndex()
    splits = []
    for split in SPLITS:
        found = [
            p for s in (".tsv", ".tsv.xz", ".tsv.gz", ".txt") if (p := path / (split + s)).exists()
        ]
        if len(found) != 1:
            raise DataError(path, f"no single {split} file")
        splits.append(read_tsv(found[0], index))
    return KnowledgeGraph.from_ids(index, *splits, name=path.name)
