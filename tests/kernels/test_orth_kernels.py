"""``Orth(U, w)`` and its gradients as kernels, against the plain form in double precision."""

from __future__ import annotations

from importlib import import_module
from math import log
from typing import Any

import pytest
import torch
from torch import Tensor

from golde.geometry.constraints import POSITIVE_RANGE
from golde.geometry.reflections import orth_matrix
from oracles import normal, seeded

pytest.importorskip("triton", reason="Triton is not installed (extra: kernels)")

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
EPS = torch.finfo(torch.float32).eps

SIZES = [(1, 2), (3, 3), (4, 5), (1, 7), (10, 10), (16, 16), (16, 17), (32, 33)]
SIZES += [(22, 22)] if CUDA else []
SIZES += [(5, 3), (20, 14), (63, 64)]  # more reflections than dimensions, and the largest
LENGTHS = {"short": 1e-12, "long": 1e6} | ({"usual": 1.0} if CUDA else {})

kernels: Any = import_module("golde.kernels.triton.orth")


pytestmark = pytest.mark.usefixtures("surroundings")


def reflections(maps: int, rows: int, K: int) -> Tensor:
    return normal(maps, rows, K, seed=1).float()


def weights(maps: int, K: int) -> Tensor:
    """As unequal as ``positive`` lets them be."""
    exponent = 2 * torch.rand(maps, K, generator=seeded(2), dtype=torch.float64) - 1
    return torch.exp(log(POSITIVE_RANGE) * exponent).float()


def outcome(
    of: Any, U: Tensor, w: Tensor, dtype: torch.dtype, device: torch.device
) -> list[Tensor]:
    """The maps and the gradients of U and w under a fixed incoming one, on the CPU.

    The gradient of a row is as large as the row is short; times its length, all rows count.
    """
    U, w = (t.detach().to(device, dtype).requires_grad_() for t in (U, w))
    G = of(U, w)
    to_U, to_w = torch.autograd.grad(G, (U, w), normal(*G.shape, seed=3).to(G))
    return [t.detach().cpu() for t in (G, to_U * U.norm(dim=-1, keepdim=True), to_w)]


def nudged(x: Tensor, seed: int) -> Tensor:
    """Every number moved by at most one rounding."""
    share = 2 * torch.rand(x.shape, generator=seeded(seed), dtype=torch.float64) - 1
    return x * (1 + EPS * share)


def check(U: Tensor, w: Tensor) -> list[Tensor]:
    """At most twice the error of plain float32, in max-norm, beside what one rounding of the inputs does.

    A few roundings more are allowed where there are so few numbers that the plain form may be lucky.
    """
    cpu = torch.device("cpu")
    exact = outcome(orth_matrix, U, w, torch.float64, cpu)
    near = outcome(orth_matrix, nudged(U, 7), nudged(w, 8), torch.float64, cpu)
    plain = outcome(orth_matrix, U, w, torch.float32, cpu)
    found = outcome(kernels.fused_orth, U, w, torch.float32, DEVICE)
    for truth, beside, one, two in zip(exact, near, plain, found, strict=True):
        assert two.dtype == torch.float32
        assert two.isfinite().all()
        if truth.numel():
            error, allowed, floor = (float((t - truth).abs().max()) for t in (two, one, beside))
            assert error <= 2 * allowed + floor + 8 * EPS * float(truth.abs().max())
    return found


@pytest.mark.parametrize(("rows", "K"), SIZES)
def test_it_is_the_plain_form(rows: int, K: int) -> None:
    maps = 2 + 40 // K if CUDA else 2  # each is a program of its own
    check(reflections(maps, rows, K), weights(maps, K))
    maps = maps if CUDA else 1
    check(reflections(maps, rows, K), torch.ones(maps, K))


def test_in_one_dimension_nothing_turns() -> None:
    """The map is −1 whatever u and w are, so gradients vanish, but for a few roundings."""
    U, w = reflections(9, 1, 1), weights(9, 1)
    G, to_U, to_w = outcome(kernels.fused_orth, U, w, torch.float32, DEVICE)
    torch.testing.assert_close(G, -torch.ones(9, 1, 1), rtol=0, atol=4 * EPS)
    assert to_U.abs().max() < 32 * EPS
    assert (to_w * w).abs().max() < 32 * EPS


@pytest.mark.parametrize("length", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize(("rows", "K"), [(3, 3), (21, 22)] + ([(10, 10)] if CUDA else []))
def test_the_length_of_a_row_does_not_matter(rows: int, K: int, length: float) -> None:
    check(length * reflections(2, rows, K), weights(2, K))


def test_rows_of_all_lengths_in_one_map() -> None:
    check(torch.logspace(-12, 6, 12)[:, None] * reflections(2, 12, 12), weights(2, 12))


def test_nearly_parallel_rows() -> None:
    U = normal(2, 1, 22, seed=4) + 0.05 * normal(2, 22, 22, seed=5)
    check(U.float(), torch.ones(2, 22))


@pytest.mark.parametrize("length", [0.0, 1e-30])
def test_a_zero_row_reflects_nothing_and_has_no_gradient(length: float) -> None:
    U, w = reflections(2, 6, 5), weights(2, 5)
    U[0, 0] = U[1, 3] = U[1, 5] = 0
    others = check(U, w)
    U[0, 0] = U[1, 3] = U[1, 5] = length
    for found, expected in zip(
        outcome(kernels.fused_orth, U, w, torch.float32, DEVICE), others, strict=True
    ):
        assert torch.equal(found, expected)
    assert (others[1][0, 0] == 0).all()
    assert (others[1][1, [3, 5]] == 0).all()


@pytest.mark.parametrize("rows", [0, 3])
def test_without_reflections_it_is_the_identity(rows: int) -> None:
    G, to_U, to_w = check(torch.zeros(2, rows, 4), weights(2, 4))
    torch.testing.assert_close(G, torch.eye(4).expand(2, 4, 4), rtol=0, atol=2 * EPS)
    assert (to_U == 0).all()
    assert (to_w == 0).all()


def test_no_maps() -> None:
    G, to_U, to_w = check(torch.zeros(0, 3, 4), torch.ones(0, 4))
    assert G.shape == (0, 4, 4)
    assert to_U.shape == (0, 3, 4)
    assert to_w.shape == (0, 4)


def test_layout_does_not_matter() -> None:
    """Several leading axes, weights shared by maps, and views of everything."""
    U = reflections(6, 4, 5).view(2, 3, 4, 5).transpose(-1, -2).contiguous().transpose(-1, -2)
    U, w = U.to(DEVICE).requires_grad_(), weights(3, 5).to(DEVICE).requires_grad_()
    incoming = normal(5, 5, seed=6).float().to(DEVICE).T.expand(2, 3, 5, 5)
    found = kernels.fused_orth(U, w)
    expected = orth_matrix(U.cpu(), w.cpu())
    torch.testing.assert_close(found.cpu(), expected)
    gradients, wanted = (
        torch.autograd.grad(G, (U, w), incoming.to(G.device)) for G in (found, expected)
    )
    torch.testing.assert_close(gradients, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(not CUDA, reason="too many maps for the interpreter")
@pytest.mark.parametrize(("maps", "K"), [(792, 10), (792, 12), (13_272, 22), (500, 64)])
def test_as_many_as_in_a_run(maps: int, K: int) -> None:
    check(reflections(maps, K, K), weights(maps, K))
