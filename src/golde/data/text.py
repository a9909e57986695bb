"""Facts from tab-separated text."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from golde.data.files import opened
from golde.data.numbering import Ids, NameIndex
from golde.errors import DataError

BLOCK = 1 << 22  # bytes read at a time


def read_tsv(path: Path, index: NameIndex) -> Ids:
    blocks = [np.empty((0, 3), dtype=np.int64)]
    with opened(path) as stream:
        for number, line in enumerate(stream, 1):
            names = line.decode().rstrip("\r\n").split("\t")
            if len(names) != 3:
                raise DataError(path, "expected 3 columns", line=number, text=line.decode())
            head, relation, tail = names
            blocks.append(index.number([head], [relation], [tail]))
    return np.concatenate(blocks)
