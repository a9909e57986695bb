"""Adam for the rows of a table that a step drew: gather them, add up their gradients, move them."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from golde.kernels.adam import NEVER
from golde.kernels.triton.dense_adam import CORRECTED, bias_corrections
from golde.kernels.triton.row_adam_kernels import (
    fold_kernel,
    gather_kernel,
    settle_kernel,
    square_kernel,
    update_kernel,
)

COLUMNS = 1024


class Drawn(NamedTuple):
    """The rows of a turn, position by position."""

    ids: Tensor  # (n,)
    rows: Tensor  # (n, D)
    exp_avg: Tensor  # (n, D); of lazy rows the table's own, (E, D)
    exp_avg_sq: Tensor  # the same


class Table(NamedTuple):
    """Parameters with their moments, and the steps they have been through.

    A *turn* is a step that was tried since ``taken`` and ``coefficients`` began, which have room for so
    many. Who uses it sets ``turn`` and ``rate``; all else is done by the kernels, in tensors of fixed shape
    and place, so that a step can be captured and replayed.
    """

    parameter: Tensor  # (E, D)
    exp_avg: Tensor  # (E, D)
    exp_avg_sq: Tensor  # (E, D)
    last: Tensor  # (E,) int32: how many of the steps taken the row has been through, or NEVER
    stamp: Tensor  # (E,) int64: turn and position at which the row was last drawn
    turn: Tensor  # () int64: the one under way, or the last one; −1 before the first
    taken: Tensor  # (turns + 1,) int32: steps taken before each turn
    coefficients: Tensor  # (turns, 2): step size and scale of √v of the steps taken
    corrections: Tensor  # (CORRECTED, 2)
    rate: Tensor  # (): the learning rate of the turn
    pull: float  # towards the origin, on every row at every step; 0: none

    @classmethod
    def of(cls, parameter: Tensor, turns: int, pull: float = 0.0) -> Table:
        """A table that has seen no step; ``parameter`` is moved in place."""
        shape, dtype = parameter.shape, parameter.dtype
        if dtype != torch.float32 or len(shape) != 2 or not parameter.is_contiguous():
            raise ValueError(
                f"the table is {dtype} of shape {tuple(shape)}; the kernels move rows of contiguous "
                "float32 tables of shape (E, D)"
            )

        def full(shape: tuple[int, ...], value: int, dtype: torch.dtype) -> Tensor:
            return torch.full(shape, value, dtype=dtype, device=parameter.device)

        return cls(
            parameter=parameter,
            exp_avg=torch.zeros_like(parameter),
            exp_avg_sq=torch.zeros_like(parameter),
            last=full((shape[0],), 0 if pull else NEVER, torch.int32),
            stamp=full((shape[0],), -1, torch.int64),
            turn=full((), -1, torch.int64),
            taken=full((turns + 1,), 0, torch.int32),
            coefficients=full((turns, 2), 0, torch.float32),
            corrections=bias_corrections(parameter.device),
            rate=full((), 0, torch.float32),
            pull=pull,
        )

    def gather(self, ids: Tensor, *, lazy: bool) -> Drawn:
        """Rows ``ids`` (n,), the steps they missed made up for unless ``lazy``; stamps them."""
        n, D = len(ids), self.parameter.shape[1]
        rows = self.parameter.new_empty(n, D)
        m_rows = self.exp_avg if lazy else torch.empty_like(rows)
        v_rows = self.exp_avg_sq if lazy else torch.empty_like(rows)
        gather_kernel[(n,)](
            self.parameter, self.exp_avg, self.exp_avg_sq, self.last, self.stamp, self.turn, self.taken,
            self.coefficients, self.pull, ids, rows, m_rows, v_rows, LAZY=lazy, **self._options(),
        )  # fmt: skip
        return Drawn(ids, rows, m_rows, v_rows)

    def fold(self, ids: Tensor, grad: Tensor) -> Tensor:
        """Adds up, in place, the gradients (n, D) of positions with one id; squares (n,) of what comes out.

        The order in which three or more are added up is not fixed.
        """
        n, D = grad.shape
        squares = grad.new_empty(n)
        fold_kernel[(n,)](grad, self.stamp, self.turn, ids, **_options(D))
        square_kernel[(n,)](grad, self.stamp, self.turn, ids, squares, **_options(D))
        return squares

    def update(
        self, drawn: Drawn, grad: Tensor, scale: Tensor, found_inf: Tensor, *, lazy: bool
    ) -> None:
        """Adam's step with what ``fold`` made of the gradients, divided by ``scale`` ().

        Where ``found_inf`` () is not zero it is skipped.
        """
        update_kernel[(len(grad),)](
            self.parameter, self.exp_avg, self.exp_avg_sq, self.last, self.stamp, self.turn, self.taken,
            self.coefficients, self.corrections, self.rate, self.pull, *drawn, grad, scale, found_inf,
            CORRECTED=CORRECTED, LAZY=lazy, **self._options(),
        )  # fmt: skip

    def settle(self) -> None:
        """Brings every row up to date, after the turn's step."""
        settle_kernel[(len(self.parameter),)](
            self.parameter, self.exp_avg, self.exp_avg_sq, self.last, self.turn, self.taken,
            self.coefficients, self.pull, **self._options(),
        )  # fmt: skip

    def _options(self) -> dict[str, Any]:
        """Of the kernels that move rows: a row that is pulled has to lie in one block."""
        pulled = self.pull != 0
        return {"PULLED": pulled, **_options(self.parameter.shape[1], whole=pulled)}


def _options(D: int, *, whole: bool = False) -> dict[str, Any]:
    """A block as wide as a row if that goes or must be, and warps to match; all kernels round alike."""
    row = 1 << (D - 1).bit_length()
    block = row if whole else min(COLUMNS, row)
    warps = max(1, min(4, block // 128), min(16, block // 256))
    return {"D": D, "BLOCK": block, "num_warps": warps, "enable_fp_fusion": False}
