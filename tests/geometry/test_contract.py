"""What every letter of a signature must do; a new geometry is tested by being in GEOMETRIES."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
import torch
from torch import Tensor

from golde.geometry import GEOMETRIES, Grouping, Term
from golde.kernels import paired, pairwise, pairwise_reference
from oracles import ask, distances, normal, randomised

SHAPES = [(1, 1), (2, 3), (5, 2)]  # numbers a component stores, components
RELATIONS = 3

contract = pytest.mark.parametrize("letter", GEOMETRIES)
shapes = pytest.mark.parametrize(("K", "M"), SHAPES, ids=lambda n: str(n))
dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


def build(letter: str, K: int, M: int, dtype: torch.dtype = torch.float64) -> Any:
    dimension = K + GEOMETRIES[letter].unstored
    group = randomised(GEOMETRIES[letter](dimension, M, RELATIONS), seed=7, scale=0.5)
    return group.to(dtype)


def identity(group: Any) -> Any:
    """A map of the group's own kind that moves nothing."""
    maps = group.maps(torch.tensor([0]))
    matrix = maps[0]
    eye = torch.eye(matrix.shape[-1], dtype=matrix.dtype).expand_as(matrix)
    still = {maps._fields[0]: eye} | ({"b": 0 * maps.b} if "b" in maps._fields else {})
    return maps._replace(**still)


@contract
@shapes
def test_stored_numbers(letter: str, K: int, M: int) -> None:
    group = build(letter, K, M)
    assert (group.letter, group.count, group.numbers) == (letter[0], M, K)
    assert Term(group.letter, group.dimension, M).numbers == K


@contract
@shapes
@dtypes
@pytest.mark.parametrize("norm", [1, 2])
def test_pairwise_is_paired_gathered(
    letter: str, K: int, M: int, dtype: torch.dtype, norm: int
) -> None:
    group = build(letter, K, M, dtype)
    query = ask(group, normal(6, M, K, seed=1).to(dtype), group.maps(torch.arange(RELATIONS)))
    tails = normal(6, M, K, seed=2).to(dtype)
    table = pairwise(query, group.candidate(tails), group.finish, norm)
    for n in range(6):
        one = group.candidate(tails[n].expand(6, M, K))
        rtol = 1e-5 if dtype == torch.float32 else 1e-12
        expected = paired(query, one, group.finish, norm)
        torch.testing.assert_close(table[:, n], expected, rtol=rtol, atol=rtol)


@contract
@shapes
@dtypes
def test_coincident_points_stay_at_the_floor(
    letter: str, K: int, M: int, dtype: torch.dtype
) -> None:
    """Both paths see a distance of about √ε at most, as any bilinear form must, never a NaN."""
    group = build(letter, K, M, dtype)
    points = normal(4, M, K, seed=3, scale=0.3).to(dtype)
    points[0] = 0
    query, candidate = ask(group, points, identity(group)), group.candidate(points)
    floor = M * (4 * torch.finfo(dtype).eps ** 0.5 + 1e-5)
    assert (paired(query, candidate, group.finish, 1) <= floor).all()
    assert (pairwise(query, candidate, group.finish, 1).diagonal() <= floor).all()


@contract
@shapes
@dtypes
@pytest.mark.parametrize("path", [pairwise, paired], ids=["pairwise", "paired"])
def test_gradients_are_finite_where_points_coincide(
    letter: str, K: int, M: int, dtype: torch.dtype, path: Any
) -> None:
    group = build(letter, K, M, dtype)
    points = normal(4, M, K, seed=3).to(dtype)
    points[0] = 0
    heads, tails = points.clone().requires_grad_(), points.clone().requires_grad_()
    for maps in (identity(group), group.maps(torch.tensor([0]))):
        d = path(ask(group, heads, maps), group.candidate(tails), group.finish, 1)
        d.sum().backward()
        for gradient in (heads.grad, tails.grad, *(p.grad for p in group.parameters())):
            assert gradient is None or gradient.isfinite().all()


@contract
@shapes
@pytest.mark.parametrize("norm", [1, 2])
def test_gradients_are_the_derivatives(letter: str, K: int, M: int, norm: int) -> None:
    """Closed-form gradients of the blocked path and autograd of the paired one, by finite differences."""
    group = build(letter, K, M)
    relation = torch.tensor([0, 2, 1])
    heads, tails = (normal(3, M, K, seed=i).requires_grad_() for i in (4, 5))

    def both(heads: Tensor, tails: Tensor, *parameters: Tensor) -> tuple[Tensor, Tensor]:
        query, candidate = ask(group, heads, group.maps(relation)), group.candidate(tails)
        return (
            pairwise(query, candidate, group.finish, norm),
            paired(query, candidate, group.finish, norm),
        )

    parameters = tuple(p for p in group.parameters() if p.numel())
    assert torch.autograd.gradcheck(both, (heads, tails, *parameters), atol=1e-6)


@contract
@pytest.mark.parametrize("norm", [1, 2])
@dtypes
def test_tiles_do_not_show(
    letter: str, norm: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Odd shapes in tiles of a few queries and candidates: values and gradients of the plain form."""
    # The package's name ``pairwise`` is the function, so the module is looked up.
    module = import_module("golde.kernels.pairwise")
    monkeypatch.setattr(module, "BLOCK_ELEMENTS", 50)
    monkeypatch.setattr(module, "TILE_SIDE", 3)
    monkeypatch.setattr(module, "LEAST_PAIRS", 1)
    group = build(letter, 3, 3, dtype)
    heads, tails = (normal(n, 3, 3, seed=n).to(dtype) for n in (7, 11))
    weight = normal(7, 11, seed=6).to(dtype)
    results = []
    for path in (pairwise, pairwise_reference):
        leaves = [heads.clone().requires_grad_(), tails.clone().requires_grad_()]
        query = ask(group, leaves[0], group.maps(torch.arange(RELATIONS)))
        value = path(query, group.candidate(leaves[1]), group.finish, norm)
        every = [*leaves, *group.parameters()]
        results.append((value, *torch.autograd.grad((weight * value).sum(), every)))
    rtol = 1e-4 if dtype == torch.float32 else 1e-10
    torch.testing.assert_close(*results, rtol=rtol, atol=rtol)


@contract
@shapes
@pytest.mark.parametrize("reflections", ["k", "k-1", "alternating"])
def test_head_queries_go_through_the_inverse(letter: str, K: int, M: int, reflections: Any) -> None:
    """``d(G h, t) = d(h, G⁻¹ t)`` and ``(G⁻¹)⁻¹ = G``."""
    geometry = GEOMETRIES[letter]
    group = geometry(K + geometry.unstored, M, RELATIONS, reflections=reflections)
    randomised(group, seed=8, scale=0.5)
    h, t = (normal(4, M, K, seed=i) for i in (9, 10))
    forward, back = distances(group, h, t, 1), distances(group, t, h, 1, back=True).T
    torch.testing.assert_close(forward, back, rtol=1e-8, atol=1e-8)
    maps = group.maps(torch.arange(RELATIONS))
    torch.testing.assert_close(tuple(group.inverse(group.inverse(maps))), tuple(maps))


@contract
@shapes
@dtypes
def test_transport_leads_to_where_the_distance_is_zero(
    letter: str, K: int, M: int, dtype: torch.dtype
) -> None:
    """In stored coordinates: ``d(G h, transport h) = 0``, and the inverse leads back to h."""
    group = build(letter, K, M, dtype)
    maps, groups = group.maps(torch.arange(RELATIONS)), Grouping(torch.arange(6) % 3, 3, K)
    heads = normal(6, M, K, seed=11).to(dtype)
    heads[0] = 0
    moved = group.transport(heads, maps, groups)
    distance = paired(group.query(heads, maps, groups), group.candidate(moved), group.finish, 1)
    root = torch.finfo(dtype).eps ** 0.5
    assert (distance <= M * (50 * root + 1e-4)).all()  # the floor grows with β and the norms
    back = group.transport(moved, group.inverse(maps), groups)
    torch.testing.assert_close(back, heads, rtol=50 * root**2, atol=100 * root**2)


@contract
def test_transport_has_finite_gradients_and_bounded_norms(letter: str) -> None:
    """Far out too, where hyperbolic coordinates themselves overflow."""
    group = build(letter, 3, 2, torch.float32)
    heads = (100 * normal(4, 2, 3, seed=12)).float().requires_grad_()
    groups = Grouping(torch.arange(4) % 3, 3, 3)
    moved = group.transport(heads, group.maps(torch.arange(RELATIONS)), groups)
    moved.sum().backward()
    assert moved.isfinite().all()
    assert heads.grad is not None
    assert heads.grad.isfinite().all()
