"""The component spaces: Claim 3.2, Propositions 3.3 and 3.4, isometries and inverses."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from golde.geometry import GEOMETRIES, Elliptic, Euclidean
from golde.geometry.hyperbolic import Hyperbolic, HyperbolicMap, boost, exp_map
from golde.geometry.reflections import orth_matrix
from oracles import (
    anisotropic,
    block_one,
    boost_matrix,
    cartan_dieudonne,
    distances,
    lorentz,
    normal,
    random_isometry,
    randomised,
)

seeds = st.integers(0, 2**32 - 1)


def close(actual: Tensor, expected: Tensor, atol: float = 1e-9) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-9, atol=atol)


def on_hyperboloid(K: int, *, seed: int, scale: float = 1.0, points: int = 3) -> Tensor:
    """Points of the unit hyperboloid in K spatial dimensions, (points, K + 1)."""
    z = normal(points, K, seed=seed, scale=scale)
    return torch.cat(((1 + z.square().sum(-1, keepdim=True)).sqrt(), z), -1)


@given(K=st.integers(1, 6), n=st.integers(0, 6), seed=seeds)
def test_elliptic_is_scaled_euclidean(K: int, n: int, seed: int) -> None:
    """Claim 3.2: ``d_p(Orth(U, p) h, t) = ‖Orth(√p∘U, 1) √p∘h − √p∘t‖``."""
    p = normal(K, seed=seed).exp()
    U, h, t = (normal(rows, K, seed=seed + 1 + i) for i, rows in enumerate((n, 3, 3)))
    moved = h @ orth_matrix(U, p).T - t
    elliptic = (moved.square() * p).sum(-1).sqrt()
    root, ones = p.sqrt(), torch.ones_like(p)
    euclidean = ((root * h) @ orth_matrix(root * U, ones).T - root * t).norm(dim=-1)
    close(elliptic, euclidean)


@given(K=st.integers(1, 5), n=st.integers(0, 6), scale=st.floats(0, 2), seed=seeds)
def test_lorentz_maps_keep_or_swap_the_sheets(K: int, n: int, scale: float, seed: int) -> None:
    """Proposition 3.3: ``|G₁₁| ≥ 1``, its sign decides the sheet, positive maps are closed."""
    q = lorentz(K + 1)
    G, other = (orth_matrix(anisotropic(n, q, seed=seed + i), q) for i in range(2))
    assert G[0, 0].abs() >= 1 - 1e-9
    x = on_hyperboloid(K, seed=seed + 2, scale=scale)
    assert ((x @ G.T)[:, 0].sign() == G[0, 0].sign()).all()
    assert (other @ G)[0, 0].sign() == other[0, 0].sign() * G[0, 0].sign()


@given(K=st.integers(1, 6), n=st.integers(0, 7), size=st.floats(0, 3), seed=seeds)
def test_boost_then_rotation_stays_on_the_upper_sheet(
    K: int, n: int, size: float, seed: int
) -> None:
    """Proposition 3.4: vector form = matrix form, ``Gᵀ diag(q) G = diag(q)``, ``G₁₁ ≥ 1``."""
    Q = orth_matrix(normal(n, K, seed=seed), torch.ones(K, dtype=torch.float64))
    b = normal(K, seed=seed + 1, scale=size)
    G = block_one(Q) @ boost_matrix(b)
    q = torch.diag(lorentz(K + 1))
    close(G.T @ q @ G, q, atol=1e-9 * (1 + size**2))
    assert G[0, 0] >= 1
    x = on_hyperboloid(K, seed=seed + 2)
    z0, z = boost(x[:, 0], x[:, 1:], b)
    close(torch.cat((z0.unsqueeze(1), z @ Q.T), 1), x @ G.T)
    assert (z0 > 0).all()


@given(K=st.integers(1, 4), seed=seeds, flip=st.sampled_from([-1.0, 1.0]))
def test_every_positive_lorentz_map_is_boost_then_rotation(K: int, seed: int, flip: float) -> None:
    """Proposition 3.4, onto: ``b`` is the first row of G and the rest is orthogonal."""
    flips = torch.ones(K + 1, dtype=torch.float64)
    flips[-1] = flip
    G = random_isometry(lorentz(K + 1), seed=seed, flips=flips)  # connected to I: positive
    b = G[0, 1:]
    rotation = G @ torch.linalg.inv(boost_matrix(b))
    Q = rotation[1:, 1:]
    close(rotation, block_one(Q), atol=1e-7)
    n = K if torch.linalg.det(Q) * (-1.0) ** K > 0 else K - 1
    U = cartan_dieudonne(Q, torch.ones(K, dtype=torch.float64), n)
    rebuilt = block_one(orth_matrix(U, torch.ones(K, dtype=torch.float64))) @ boost_matrix(b)
    close(rebuilt, G, atol=1e-6)


@given(K=st.integers(1, 5), n=st.integers(0, 6), size=st.floats(0, 2), seed=seeds)
def test_inverse_of_a_hyperbolic_map(K: int, n: int, size: float, seed: int) -> None:
    """``Orth_Q(U, b)⁻¹ = Orth_Q(reversed U, −Orth(U) b)``."""
    U, ones = normal(n, K, seed=seed), torch.ones(K, dtype=torch.float64)
    b = normal(K, seed=seed + 1, scale=size)
    Q = orth_matrix(U, ones)
    G = block_one(Q) @ boost_matrix(b)
    inverse = block_one(orth_matrix(U.flip(0), ones)) @ boost_matrix(-Q @ b)
    close(inverse @ G, torch.eye(K + 1, dtype=torch.float64), atol=1e-9 * (1 + size**4))
    maps = HyperbolicMap(Q[None, None], b[None, None], torch.ones(1, 1))
    back = Hyperbolic.inverse(maps)
    close(block_one(back.Q[0, 0]) @ boost_matrix(back.b[0, 0]), inverse)


@given(K=st.integers(1, 5), logs=st.floats(-3, 3), scale=st.floats(0, 3), seed=seeds)
def test_exp_map_lands_on_the_hyperboloid(K: int, logs: float, scale: float, seed: int) -> None:
    """Eq. 11: ``⟨g, g⟩_q = −β`` on the upper sheet, here divided by √β."""
    x = normal(3, K, seed=seed, scale=scale)
    root = torch.full((3,), logs, dtype=torch.float64).exp().sqrt()
    alpha, z0, z = exp_map(x, root)
    close(z0.square() - z.square().sum(-1), torch.exp(-2 * alpha))
    assert (z0 > 0).all()
    close(alpha * root, x.norm(dim=-1))


@pytest.mark.parametrize("kind", GEOMETRIES.values())
@given(K=st.integers(1, 4), count=st.integers(1, 2), seed=seeds)
def test_every_map_is_an_isometry_of_its_component(
    kind: type[Euclidean | Elliptic | Hyperbolic], K: int, count: int, seed: int
) -> None:
    """``d(G h, t) = d(h, G⁻¹ t)``: head queries take the fast path with the same parameters."""
    group = randomised(kind(K + kind.unstored, count, 1), seed=seed)
    h, t = (normal(3, count, K, seed=seed + i) for i in (1, 2))
    close(distances(group, h, t, 0), distances(group, t, h, 0, back=True).T, atol=1e-6)
