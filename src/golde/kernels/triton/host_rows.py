"""Rows of a table in pinned host memory, read and written by the GPU where they are.

Which rows a step needs is known on the device alone. A kernel that goes to host memory by itself spares the
processor the ids and the copying, waits for nobody, and can be captured. A program moves one row; thousands
of them are on their way over the bus at a time. The reference is ``index_select`` and ``index_copy_``.
"""

from __future__ import annotations

from torch import Tensor

from golde.kernels.triton.language import kernel, tl

COLUMNS = 1024
"""Numbers of a row that are moved at once."""


@kernel
def move_kernel(ids, rows, table, E, D: tl.constexpr, BLOCK: tl.constexpr, TO_TABLE: tl.constexpr):
    """``rows[i] = table[ids[i]]`` or the other way, where there is such a row.

    Rows that go to the table have ids of which no two are the same.
    """
    i = tl.program_id(0).to(tl.int64)
    row = tl.load(ids + i)
    if row < E:
        for begin in range(0, D, BLOCK):
            column = begin + tl.arange(0, BLOCK)
            inside = column < D
            here, there = rows + i * D + column, table + row * D + column
            if TO_TABLE:
                tl.store(there, tl.load(here, mask=inside), mask=inside)
            else:
                tl.store(here, tl.load(there, mask=inside), mask=inside)


def read_rows(table: Tensor, ids: Tensor, rows: Tensor) -> None:
    """Rows ``ids`` (n,) of a pinned table (E, …) into those on the device; an id of E stands for none."""
    _move(table, ids, rows, to_table=False)


def write_rows(table: Tensor, ids: Tensor, rows: Tensor) -> None:
    """The other way."""
    _move(table, ids, rows, to_table=True)


def _move(table: Tensor, ids: Tensor, rows: Tensor, *, to_table: bool) -> None:
    D = rows[0].numel()
    block = min(COLUMNS, 1 << (D - 1).bit_length())
    warps = max(1, min(4, block // 128))
    move_kernel[(len(ids),)](
        ids, rows, table, len(table), D=D, BLOCK=block, TO_TABLE=to_table, num_warps=warps
    )
