"""Rows that kernels read and write in host memory; in the interpreter all memory is."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
import torch
from torch import Tensor

from golde.training import row_adam
from golde.training.host_table import HostTable
from golde.training.row_adam import DenseRowAdam, DrawnRowsAdam, FusedRowAdam, RowAdam
from golde.training.staging import Staging
from oracles import normal, seeded

pytest.importorskip("triton", reason="Triton is not installed (extra: kernels)")
launchers: Any = import_module("golde.kernels.triton.host_rows")

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
pytestmark = pytest.mark.usefixtures("surroundings")


def pinned(tensor: Tensor) -> Tensor:
    return tensor.pin_memory() if CUDA else tensor


@pytest.mark.parametrize("shape", [(9, 5), (9, 70), (9,)], ids=["short", "in blocks", "counts"])
def test_rows_are_read_and_written_where_they_are(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids past the end stand for no row: neither side of them is touched."""
    monkeypatch.setattr(launchers, "COLUMNS", 32)
    table = pinned(torch.randint(1000, shape, generator=seeded(1), dtype=torch.int32))
    before = table.clone()
    ids = torch.tensor([1, 4, 8, 9, 9], device=DEVICE)
    rows = torch.full((5, *shape[1:]), -1, dtype=torch.int32, device=DEVICE)
    launchers.read_rows(table, ids, rows)
    assert torch.equal(rows[:3].cpu(), before[[1, 4, 8]])
    assert (rows[3:] == -1).all()
    launchers.write_rows(table, ids, rows + 1)
    if CUDA:
        torch.cuda.synchronize()
    before[[1, 4, 8]] += 1
    assert torch.equal(table, before)


@pytest.mark.parametrize("large", [False, True], ids=["a few rows", "pinned in place"])
@pytest.mark.skipif(not CUDA, reason="only where there is a GPU memory is pinned")
def test_memory_is_pinned_and_given_back(large: bool) -> None:
    rows = (1 << 26) // 64 + 1 if large else 3
    for _ in range(2):  # the second time the memory may well be the same
        table = HostTable([torch.zeros(rows, 16)], DEVICE, by_kernels=True)
        assert table.tensors[0].is_pinned()
        here = torch.empty(1, 16, device=DEVICE)
        table.write(torch.tensor([rows - 1], device=DEVICE), [here.fill_(7)])
        torch.cuda.synchronize()
        assert table.tensors[0].sum() == 7 * 16


@pytest.mark.parametrize("pull", [0.0, 0.3], ids=["plain", "pulled"])
def test_staged_rows_are_moved_as_the_whole_table_would_be(
    pull: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that come, stay and go while other steps are made, and records that begin anew."""
    monkeypatch.setattr(row_adam, "TURNS", 3)
    E, D, n, count = 8, 3, 3, 7
    start, draws = normal(E, D, seed=7, scale=0.1).float(), seeded(0)
    ids = [torch.randint(E, (n,), generator=draws).to(DEVICE) for _ in range(count + 1)]
    expected = start.to(DEVICE, copy=True)
    whole = DenseRowAdam(expected, capture=False, pull=pull)
    staged = FusedRowAdam(torch.zeros(n, D, device=DEVICE), lazy=False, pull=pull)
    beside = (one[:1].cpu().expand(E, *one.shape[1:]).contiguous() for one in staged.kept[1:])
    host = HostTable([start.clone(), *beside], DEVICE, by_kernels=True)
    staging = Staging(host, staged, n)

    def make(adam: RowAdam, places: Tensor, k: int) -> None:
        adam.advance(0.05)
        adam.rows(places)
        adam.fold(normal(n, D, seed=k).float().to(DEVICE))
        adam.step(torch.ones((), device=DEVICE), torch.zeros((), device=DEVICE))

    def prepare(k: int, adam: DrawnRowsAdam) -> None:
        if adam.full:
            staging.settle()
            adam.begin(adam.taken)
            staging.read_ahead(ids[k])
            staging.move_up()

    staging.read_ahead(ids[0])
    staging.move_up()
    for k in range(count):
        make(whole, ids[k], k)
        prepare(k, staged)
        staging.write_back()
        staging.read_ahead(ids[k + 1])
        make(staged, staging.slot, k)
        staging.moved()
        staging.move_up()
    staging.settle()
    wanted = [expected, *(whole.state()[name] for name in ("exp_avg", "exp_avg_sq"))]
    found = [tensor.to(DEVICE) for tensor in host.tensors[:3]]
    torch.testing.assert_close(found, wanted, rtol=2e-5, atol=2e-6)
