"""Claim 3.5: which logical patterns relation maps can express, and where composition stops.

Everything goes through the model without reciprocals, so that what is shown holds for scores.
"""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from golde.config import ModelConfig
from golde.geometry.reflections import orth_matrix
from golde.kernels.finish import DISTANCE_FLOOR
from golde.models import GoldE
from oracles import (
    block_one,
    boost_matrix,
    cartan_dieudonne,
    geodesic,
    normal,
    random_isometry,
    randomised,
    seeded,
    set_rows,
    tangent_map,
)

seeds = st.integers(0, 2**32 - 1)
SPACES = ("E4x2", "P4x2", "Q5x2")
ENTITIES = 5


def build(signature: str, relations: int, seed: int, reflections: str = "k") -> GoldE:
    """A model with random maps whose relations share the first one's p and β."""
    config = ModelConfig(signature=signature, reciprocal=False, reflections=reflections)
    model: GoldE = randomised(GoldE(config, ENTITIES, relations), seed=seed)
    with torch.no_grad():
        for group in model.groups:
            for name in ("free_p", "free_beta"):
                if hasattr(group, name):
                    getattr(group, name)[1:] = getattr(group, name)[:1]
    return model


def scores(model: GoldE, relation: int) -> Tensor:
    """``s(h, r, t)`` for every head and tail."""
    return model.score(torch.arange(ENTITIES), torch.full((ENTITIES,), relation)).detach()


def matrices(model: GoldE, relation: int) -> list[Tensor]:
    """The relation's map in each component: K×K, or (K+1)×(K+1) on a hyperboloid."""
    group = model.geometries[0]
    maps = group.maps(torch.tensor([relation]))
    if group.letter != "Q":
        return [G.detach() for G in maps.G[0]]
    return [
        (block_one(Q) @ boost_matrix(b)).detach() for Q, b in zip(maps.Q[0], maps.b[0], strict=True)
    ]


def taken(model: GoldE, relation: int, entity: int) -> Tensor:
    """The row of the point where the relation takes an entity."""
    group = model.geometries[0]
    maps = group.maps(torch.tensor([relation]))
    parts = model.entity[entity].view(group.count, group.numbers)
    if group.letter != "Q":
        return torch.cat([G @ e for G, e in zip(matrices(model, relation), parts, strict=True)])
    moved = zip(matrices(model, relation), parts, maps.beta[0], strict=True)
    return torch.cat([tangent_map(G, e, beta) for G, e, beta in moved])


def store(model: GoldE, relation: int, component: int, G: Tensor) -> None:
    """Find parameters of the relation that give the map G in one component."""
    group = model.groups[0]
    if group.letter == "Q":
        b = G[0, 1:]
        with torch.no_grad():
            group.b[relation, component] = b
        G, w = (G @ torch.linalg.inv(boost_matrix(b)))[1:, 1:], torch.ones(len(b)).double()
    else:
        p = group.maps(torch.tensor([relation])).p[0, component] if group.letter == "P" else None
        w = torch.ones(len(G)).double() if p is None else p.detach()
    rows = group.rotation.U.shape[3]
    set_rows(group.rotation, relation, component, cartan_dieudonne(G, w, rows))


@pytest.mark.parametrize("signature", SPACES)
@given(seed=seeds)
def test_symmetry(signature: str, seed: int) -> None:
    """An involution ``G² = I`` scores both directions alike: here commuting reflections, no boost."""
    model = build(signature, 1, seed)
    group = model.groups[0]
    for component in range(2):
        w = torch.ones(4, dtype=torch.float64)
        if group.letter == "P":
            w = group.maps(torch.tensor([0])).p[0, component].detach()
        # Rows orthogonal for w: columns of a map of O_w, each a reflection that commutes.
        rows = random_isometry(w, seed=seed + component, flips=torch.ones_like(w)).T
        set_rows(group.rotation, 0, component, torch.stack((rows[0], rows[1], rows[2], rows[2])))
    if group.letter == "Q":
        torch.nn.init.zeros_(group.b)
    torch.testing.assert_close(scores(model, 0), scores(model, 0).T, rtol=1e-9, atol=1e-5)


def least_distance(model: GoldE, point: Tensor) -> float:
    """What ``DISTANCE_FLOOR`` leaves of a distance of zero, ``σ = 4 s e^{−a−b}``: more the farther out."""
    (group,) = model.geometries
    if group.letter != "Q":
        return 0.0
    root = group.maps(torch.tensor([0])).beta[0].sqrt()  # (M,)
    rapidity = point.view(group.count, -1).norm(dim=-1) / root
    floor = (DISTANCE_FLOOR / 4) ** 0.5 * rapidity.exp()
    return float((2 * root * floor.asinh()).sum().detach())


@pytest.mark.parametrize("signature", SPACES)
@given(seed=seeds)
def test_antisymmetry(signature: str, seed: int) -> None:
    """With ``e_t = G e_h`` the fact is as close as can be, and its reverse is not, unless G² = I."""
    model = build(signature, 1, seed)
    with torch.no_grad():
        model.entity[1] = taken(model, 0, 0)
    forward, reverse = scores(model, 0)[0, 1], scores(model, 0)[1, 0]
    assert forward > -1e-4 - 2 * least_distance(model, model.entity[1])
    assert reverse < -1e-2


@pytest.mark.parametrize("signature", SPACES)
@given(seed=seeds)
def test_inversion(signature: str, seed: int) -> None:
    """The inverse map is a relation of its own: ``s(h, r₁, t) = s(t, r₂, h)``."""
    model = build(signature, 2, seed)
    for component, G in enumerate(matrices(model, 0)):
        store(model, 1, component, torch.linalg.inv(G))
    torch.testing.assert_close(scores(model, 0), scores(model, 1).T, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("signature", SPACES)
@given(seed=seeds)
def test_composition_under_shared_p_and_beta(signature: str, seed: int) -> None:
    """``G₁ = G₃ G₂`` is a relation map: going through both is as good as going straight."""
    model = build(signature, 3, seed)
    straight = [G3 @ G2 for G2, G3 in zip(matrices(model, 1), matrices(model, 2), strict=True)]
    for component, G in enumerate(straight):
        store(model, 0, component, G)
    with torch.no_grad():
        model.entity[1] = taken(model, 1, 0)
    torch.testing.assert_close(scores(model, 0)[0], scores(model, 2)[1], rtol=1e-5, atol=1e-5)


def test_composition_needs_an_even_number_of_reflections() -> None:
    """K = 3 reflections everywhere: every map has determinant −1, no product of two does.

    Theorem 3.1 and with it Claim 3.5 need the parity caveat; K−1 = 2 reflections compose.
    """
    product = torch.matmul(
        matrices(build("E3", 2, 0), 1)[0],
        matrices(build("E3", 2, 0), 0)[0],
    )
    with pytest.raises(ValueError, match="cannot be written"):
        store(build("E3", 2, 0), 0, 0, product)
    model = build("E3", 2, 0, reflections="k-1")
    G0, G1 = matrices(model, 0)[0], matrices(model, 1)[0]
    store(model, 0, 0, G1 @ G0)
    torch.testing.assert_close(matrices(model, 0)[0], G1 @ G0)


def preserved_weightings(G: Tensor) -> Tensor:
    """Singular values of ``w ↦ Gᵀ diag(w) G − diag(w)``: a zero for every w that G preserves."""
    k = len(G)
    columns = [
        (torch.outer(row, row) - torch.diag(e)).flatten()
        for row, e in zip(G, torch.eye(k), strict=True)
    ]
    return torch.linalg.svdvals(torch.stack(columns, 1))


def test_composition_fails_across_different_weights() -> None:
    """The limit of Claim 3.5: the product of maps of two ellipsoids preserves no ellipsoid at all."""
    U = [normal(4, 4, seed=i) for i in range(2)]
    p = [normal(4, seed=2 + i).exp() for i in range(2)]
    shared = orth_matrix(U[0], p[0]) @ orth_matrix(U[1], p[0])
    mixed = orth_matrix(U[0], p[0]) @ orth_matrix(U[1], p[1])
    assert preserved_weightings(shared)[-1] < 1e-12
    assert preserved_weightings(mixed)[-1] > 0.05


def test_composition_fails_across_different_curvatures() -> None:
    """Boosts of two hyperboloids, one after the other, are an isometry of neither."""
    boost = boost_matrix(torch.tensor([1.0, 0.5], dtype=torch.float64))
    x, y = torch.rand(2, 2, generator=seeded(0), dtype=torch.float64)
    low, high = torch.tensor([0.5, 2.0], dtype=torch.float64)

    def stretch(first: Tensor, second: Tensor, beta: Tensor) -> Tensor:
        """How much both maps in turn change the distance measured at β."""
        u, v = (tangent_map(boost, tangent_map(boost, e, first), second) for e in (x, y))
        return (geodesic(u, v, beta) - geodesic(x, y, beta)).abs()

    for beta in (low, high):
        assert stretch(beta, beta, beta) < 1e-9
        assert stretch(low, high, beta) > 0.02
