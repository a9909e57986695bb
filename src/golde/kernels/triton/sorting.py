"""A few thousand numbers in order, on a GPU, in one short kernel.

A general sort takes several passes with little to do in each. Where numbers are few it is quicker to
count, for each, how many come before it: that is its place.
"""

from __future__ import annotations

import torch
from torch import Tensor

from golde.kernels.triton.language import kernel, tl

FEW = 1 << 14
"""Numbers up to which counting, whose work grows with their square, is the quicker way."""

ROWS, COLUMNS = 32, 256


@kernel
def sort_kernel(values, ordered, order, count, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Each of some values to its place: behind all smaller ones, and equal ones that come before it."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    own = tl.load(values + i, mask=i < count, other=0)
    narrow = own.to(tl.int32)[:, None]
    place = tl.zeros((ROWS,), tl.int32)
    for start in range(0, count, COLUMNS):
        j = start + tl.arange(0, COLUMNS)
        # The largest number stands for those past the end, where nothing is behind it.
        other = tl.load(values + j, mask=j < count, other=2**31 - 1).to(tl.int32)[None, :]
        before = (other < narrow) | ((other == narrow) & (j[None, :] < i[:, None]))
        place += tl.sum(before.to(tl.int32), 1)
    tl.store(ordered + place, own, mask=i < count)
    tl.store(order + place, i.to(tl.int64), mask=i < count)


def launch_sort(values: Tensor, ordered: Tensor, order: Tensor) -> None:
    """Write ``values`` (n,), from 0 to 2³¹ − 1, in order, and where each came from; all are int64."""
    sort_kernel[(-(-len(values) // ROWS),)](
        values, ordered, order, len(values), ROWS=ROWS, COLUMNS=COLUMNS, num_warps=4
    )


def sorted_few(values: Tensor, ordered: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """``torch.sort(values, stable=True)`` of numbers from 0 to 2³¹ − 1 (int64); into ``ordered`` if given."""
    ordered = torch.empty_like(values) if ordered is None else ordered
    order = torch.empty_like(values)
    if len(values) > FEW:
        torch.sort(values, stable=True, out=(ordered, order))
    else:
        launch_sort(values.contiguous(), ordered, order)
    return ordered, order
