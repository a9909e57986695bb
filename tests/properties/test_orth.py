"""Orth for any weighting w: Eq. 4–8, 17 and Theorem 3.1 with its parity caveat."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from golde.geometry.reflections import orth_apply, orth_inverse, orth_matrix
from oracles import anisotropic, cartan_dieudonne, householder, normal, random_isometry

seeds = st.integers(0, 2**32 - 1)


@st.composite
def weightings(draw: st.DrawFn, smallest: int = 1, largest: int = 6) -> Tensor:
    """Any w without zeros: definite or indefinite, entries from 0.2 to 5 in size."""
    k = draw(st.integers(smallest, largest))
    size = draw(st.lists(st.floats(-1.6, 1.6), min_size=k, max_size=k))
    sign = draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=k, max_size=k))
    return torch.tensor(size, dtype=torch.float64).exp() * torch.tensor(sign, dtype=torch.float64)


def rounding(U: Tensor, w: Tensor) -> float:
    """Float64 rounding, grown by each reflection's norm: indefinite reflections stretch."""
    norms = [torch.linalg.matrix_norm(householder(u, w), 2) for u in U]
    return 1e-13 * float(torch.stack(norms).prod()) if norms else 1e-13


@given(w=weightings(), n=st.integers(0, 7), seed=seeds)
def test_inner_products_are_invariant(w: Tensor, n: int, seed: int) -> None:
    """Eq. 4: ``Gᵀ W G = W`` for any number of reflections and any w."""
    U = anisotropic(n, w, seed=seed)
    G, W = orth_matrix(U, w), torch.diag(w)
    size = torch.linalg.matrix_norm(G, 2).square() * w.abs().max()
    torch.testing.assert_close(G.T @ W @ G, W, rtol=0, atol=float(size) * rounding(U, w))


@given(w=weightings(), n=st.integers(0, 7), seed=seeds)
def test_compact_form_is_the_loop_and_the_product_of_matrices(w: Tensor, n: int, seed: int) -> None:
    """Row 0 acts first: ``H(u_n) ⋯ H(u_1)``, by matrices, by the loop (Eq. 17) and by WY."""
    U = anisotropic(n, w, seed=seed)
    product = torch.eye(len(w), dtype=torch.float64)
    for u in U:
        product = householder(u, w) @ product
    x = normal(4, len(w), seed=seed + 1)
    atol = 10 * rounding(U, w)
    torch.testing.assert_close(orth_matrix(U, w), product, rtol=0, atol=atol)
    torch.testing.assert_close(orth_apply(x, U, w), x @ product.T, rtol=0, atol=5 * atol)


@given(w=weightings(), n=st.integers(1, 7), seed=seeds)
def test_gradients_are_those_of_the_loop(w: Tensor, n: int, seed: int) -> None:
    """The compact form's own backward against autograd through Eq. 17, for U and for w."""
    U, w = anisotropic(n, w, seed=seed).requires_grad_(), w.requires_grad_()
    x, weight = (normal(len(w), len(w), seed=seed + i) for i in (1, 2))
    loop = torch.autograd.grad((weight * orth_apply(x, U, w)).sum(), (U, w))
    compact = torch.autograd.grad((weight * (x @ orth_matrix(U, w).mT)).sum(), (U, w))
    for actual, expected in zip(compact, loop, strict=True):
        steep = float(expected.abs().max()) + 1
        atol = 1e3 * steep * rounding(U.detach(), w.detach())
        torch.testing.assert_close(actual, expected, rtol=0, atol=atol)


@pytest.mark.parametrize("first", [1.0, -1.0])
def test_gradients_are_finite_differences(first: float) -> None:
    """Definite and indefinite, batched, with one w for the whole batch and with one for each map."""
    w = torch.tensor([first, 0.5, 2.0, 1.5], dtype=torch.float64)
    U = torch.stack([anisotropic(3, w, seed=i) for i in range(2)]).requires_grad_()
    for weights in (w, torch.stack((w, w))):
        assert torch.autograd.gradcheck(orth_matrix, (U, weights.clone().requires_grad_()))


@given(w=weightings(), n=st.integers(0, 7), seed=seeds)
def test_determinant_is_minus_one_to_the_count(w: Tensor, n: int, seed: int) -> None:
    """Each reflection turns the orientation over, so the count fixes which half is reached."""
    U = anisotropic(n, w, seed=seed)
    torch.testing.assert_close(
        torch.linalg.det(orth_matrix(U, w)),
        torch.tensor((-1.0) ** n, dtype=torch.float64),
        rtol=0,
        atol=100 * rounding(U, w),
    )


@given(w=weightings(), n=st.integers(0, 7), seed=seeds)
def test_inverse_is_the_reversed_rows(w: Tensor, n: int, seed: int) -> None:
    """``Orth(U, w)⁻¹ = Orth(reversed U, w) = W⁻¹ Gᵀ W``."""
    U = anisotropic(n, w, seed=seed)
    G = orth_matrix(U, w)
    backwards = orth_matrix(U.flip(0), w)
    atol = 30 * rounding(U, w) * float(w.abs().max() / w.abs().min())
    torch.testing.assert_close(backwards, orth_inverse(G, w), rtol=0, atol=atol)
    identity = torch.eye(len(w), dtype=torch.float64)
    size = float(torch.linalg.matrix_norm(G, 2))
    torch.testing.assert_close(backwards @ G, identity, rtol=0, atol=atol * size)


def test_transpose_is_not_the_inverse_off_the_sphere() -> None:
    """App. D writes ``G_{r1} = G_{r2}ᵀ``; that holds for p = 1 only."""
    w = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    G = orth_matrix(normal(3, 3, seed=0), w)
    assert torch.linalg.matrix_norm(G.T @ G - torch.eye(3)) > 0.1


@st.composite
def group_elements(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """A weighting of up to four dimensions and an element of its group, both halves of it."""
    w = draw(weightings(largest=4))
    k = len(w)
    flips = draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=k, max_size=k))
    flips = torch.tensor(flips, dtype=torch.float64)
    return w, random_isometry(w, seed=draw(seeds), flips=flips)


@given(group_elements())
def test_reflections_cover_the_group_up_to_parity(element: tuple[Tensor, Tensor]) -> None:
    """Theorem 3.1: k reflections reach every G of determinant (−1)^k, k−1 every other one."""
    w, G = element
    k = len(w)
    reaches = torch.linalg.det(G) * (-1.0) ** k > 0
    U = cartan_dieudonne(G, w, k if reaches else k - 1)
    torch.testing.assert_close(orth_matrix(U, w), G, rtol=0, atol=1e-6)
    with pytest.raises(ValueError, match="cannot be written"):
        cartan_dieudonne(G, w, k - 1 if reaches else k)


@given(k=st.integers(1, 6), pairs=st.integers(0, 2), seed=seeds)
def test_an_odd_number_of_reflections_stays_away_from_the_identity(
    k: int, pairs: int, seed: int
) -> None:
    """The proof of Theorem 3.1 takes I to be in the image for any n; for odd n it is at distance ≥ 2."""
    ones = torch.ones(k, dtype=torch.float64)
    U = normal(2 * pairs + 1, k, seed=seed)
    identity = torch.eye(k, dtype=torch.float64)
    assert torch.linalg.matrix_norm(orth_matrix(U, ones) - identity, 2) >= 2 - 1e-12
    even = U[:1].expand(2 * pairs, k)  # the same row an even number of times is the identity
    torch.testing.assert_close(orth_matrix(even, ones), identity, rtol=0, atol=1e-12)
