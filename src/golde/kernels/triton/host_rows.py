"""Rows of a table in pinned host memory, read and written by the GPU where they are.

Which rows a step needs is known on the device alone. A kernel that goes to host memory by itself spares the
processor the ids and the copying, waits for nobody, and can be captured. A program moves one row; thousands
of them are on their way over the bus at a time. The reference is ``index_select`` and ``index_copy_``.
"""

from __future__ import annotations

from torch import Tensor

from golde.kernels.triton.language import kernel, tl
from golde.kernels.triton.rehearsal import Kernel

COLUMNS = 1024
"""Numbers of a row that are moved at once."""


@kernel
def read_kernel(ids, rows, table, E, D: tl.constexpr, BLOCK: tl.constexpr):
    """``rows[i] = table[ids[i]]`` where there is such a row."""
    i = tl.program_id(0).to(tl.int64)
    row = tl.load(ids + i)
    if row < E:
        for begin in range(0, D, BLOCK):
            column = begin + tl.arange(0, BLOCK)
            inside = column < D
            tl.store(
                rows + i * D + column, tl.load(table + row * D + column, mask=inside), mask=inside
            )


@kernel
def write_kernel(ids, rows, table, E, D: tl.constexpr, BLOCK: tl.constexpr):
    """``table[ids[i]] = rows[i]`` where there is such a row; no two ids are the same."""
    i = tl.program_id(0).to(tl.int64)
    row = tl.load(ids + i)
    if row < E:
        for begin in range(0, D, BLOCK):
            column = begin + tl.arange(0, BLOCK)
            inside = column < D
            tl.store(
                table + row * D + column, tl.load(rows + i * D + column, mask=inside), mask=inside
            )


def read_rows(table: Tensor, ids: Tensor, rows: Tensor) -> None:
    """Rows ``ids`` (n,) of a pinned table (E, …) into those on the device; an id of E stands for none."""
    _launch(read_kernel, table, ids, rows)


def write_rows(table: Tensor, ids: Tensor, rows: Tensor) -> None:
    """The other way."""
    _launch(write_kernel, table, ids, rows)


def _launch(function: Kernel, table: Tensor, ids: Tensor, rows: Tensor) -> None:
    D = rows[0].numel()
    block = min(COLUMNS, 1 << (D - 1).bit_length())
    function[(len(ids),)](
        ids, rows, table, len(table), D=D, BLOCK=block, num_warps=max(1, min(4, block // 128))
    )
