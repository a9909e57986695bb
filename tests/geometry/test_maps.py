"""Reflections, their count, blocks, boosts on the left, and the constraints on parameters."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from golde.errors import ConfigError
from golde.geometry import Grouping, Hyperbolic, present
from golde.geometry.constraints import POSITIVE_RANGE, positive
from golde.geometry.reflections import orth_apply, orth_matrix
from golde.geometry.rotation import Rotation
from oracles import block_one, boost_matrix, distances, normal, randomised, seeded, tangent_map

CHOICES = ("k", "k-1", "alternating")


def matrices(count: int, dimension: int, reflections: Any, block: int | None = None) -> Any:
    rotation = Rotation(2, count, dimension, reflections=reflections, block=block)
    return randomised(rotation, seed=0).matrices(torch.arange(2)).detach()


@pytest.mark.parametrize("K", [1, 3])
def test_hyperbolic_transport_is_the_matrix_between_exp_and_log(K: int) -> None:
    """Against the whole matrix of Proposition 3.4, each relation with its own β."""
    group = randomised(Hyperbolic(K + 1, 2, 2), seed=4)
    maps, heads = group.maps(torch.arange(2)), normal(2, 2, K, seed=5)
    moved = group.transport(heads, maps, Grouping(torch.arange(2), 2, K))
    for r in range(2):
        for m in range(2):
            G = block_one(maps.Q[r, m]) @ boost_matrix(maps.b[r, m])
            torch.testing.assert_close(moved[r, m], tangent_map(G, heads[r, m], maps.beta[r, m]))


@pytest.mark.parametrize("K", [1, 2, 3, 4])
@pytest.mark.parametrize("reflections", CHOICES)
def test_the_count_decides_the_determinant_of_each_component(reflections: str, K: int) -> None:
    used = {"k": [K] * 3, "k-1": [K - 1] * 3, "alternating": [K, K - 1, K]}[reflections]
    expected = torch.tensor([(-1.0) ** n for n in used], dtype=torch.float64).expand(2, 3)
    torch.testing.assert_close(torch.linalg.det(matrices(3, K, reflections)), expected)


@pytest.mark.parametrize("reflections", CHOICES)
def test_the_reflection_kept_apart_acts_last(reflections: Any) -> None:
    """U and, in even components, ``last`` are the rows of Eq. 17, in this order."""
    rotation = randomised(Rotation(1, 2, 3, reflections=reflections), seed=1)
    w = normal(1, 2, 3, seed=2).exp()
    rows = [[rotation.U[0, m, 0]] for m in range(2)]
    if rotation.last is not None:
        rows[0].append(rotation.last[0, 0, 0])
    x = normal(5, 3, seed=3)
    for m, G in enumerate(rotation.matrices(torch.tensor([0]), w)[0]):
        expected = orth_apply(x, torch.cat(rows[m]), w[0, m])
        torch.testing.assert_close(x @ G.T, expected)


@pytest.mark.parametrize("reflections", CHOICES)
def test_blocks_are_small_maps_along_the_diagonal(reflections: str) -> None:
    G = matrices(2, 6, reflections, block=2)
    blocks = G.unflatten(-2, (3, 2)).unflatten(-1, (3, 2)).transpose(-3, -2)  # (r, M, 3, 3, 2, 2)
    away = blocks[:, :, ~torch.eye(3, dtype=torch.bool)]
    assert (away == 0).all()
    odd = {"k": [False, False], "k-1": [True, True], "alternating": [False, True]}[reflections]
    sign = torch.where(torch.tensor(odd), -1.0, 1.0).double().view(1, 2, 1).expand(2, 2, 3)
    torch.testing.assert_close(
        torch.linalg.det(blocks.diagonal(dim1=2, dim2=3).movedim(-1, 2)), sign
    )


def test_a_block_must_divide_the_component() -> None:
    with pytest.raises(ConfigError, match="block = 4 does not divide a component's 6 numbers"):
        Rotation(1, 1, 6, block=4)


def test_boost_on_the_left_is_a_boost_after_the_rotation() -> None:
    """``Boost(b) Q = Q Boost(Qᵀ b)``: the map of RotH, measured by distances and by the matrix."""
    group = randomised(Hyperbolic(4, 1, 1, boost_left=True), seed=4)
    maps = group.maps(torch.tensor([0]))
    left = boost_matrix(group.b[0, 0]) @ block_one(maps.Q[0, 0])
    torch.testing.assert_close(block_one(maps.Q[0, 0]) @ boost_matrix(maps.b[0, 0]), left)
    head = normal(1, 1, 3, seed=5)
    moved = tangent_map(left, head[0, 0], maps.beta[0, 0]).view(1, 1, 3)
    assert distances(group, head, moved, 0) < 1e-4
    torch.testing.assert_close(
        distances(group, head, head, 0), distances(group, head, head, 0, back=True).T
    )


@given(
    sizes=st.lists(st.integers(0, 70), min_size=1, max_size=6).filter(any),
    K=st.sampled_from((1, 2, 3, 8)),
    M=st.integers(1, 2),
    fixed=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_grouped_queries_each_get_their_own_map(
    sizes: list[int], K: int, M: int, fixed: bool, seed: int
) -> None:
    """Relations without queries, full tiles, half-empty and empty ones: always ``G_r x_b``, gradients too."""
    index = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    index = index[torch.randperm(len(index), generator=seeded(seed))]
    G = normal(len(sizes), M, K, K, seed=seed + 1).requires_grad_()
    x = normal(len(index), M, K, seed=seed + 2).requires_grad_()
    actual = Grouping(index, len(sizes), K, fixed=fixed).apply(G, x)
    expected = torch.einsum("bmij,bmj->bmi", G[index], x)
    weight = normal(*x.shape, seed=seed + 3)
    torch.testing.assert_close(actual, expected)
    torch.testing.assert_close(
        torch.autograd.grad((weight * actual).sum(), (G, x)),
        torch.autograd.grad((weight * expected).sum(), (G, x)),
    )


@given(
    direction=st.lists(st.integers(0, 8), min_size=1, max_size=30),
    directions=st.integers(9, 40),
    fixed=st.booleans(),
)
def test_every_query_finds_its_direction_among_those_present(
    direction: list[int], directions: int, fixed: bool
) -> None:
    """More directions than queries and fewer; a fixed number depends on the sizes alone."""
    asked = torch.tensor(direction)
    found, which = present(asked, directions, fixed=fixed)
    if found is None:  # all of them
        assert fixed
        assert directions <= len(direction)
        found = torch.arange(directions)
    assert torch.equal(found[which], asked)
    count = min(directions, len(direction)) if fixed else len(set(direction))
    assert len(found) == count


def test_short_rows_stay_accurate_in_float32() -> None:
    """A map does not depend on the length of its rows; entities and rows may start very small."""
    U, ones = normal(8, 8, seed=6), torch.ones(8, dtype=torch.float64)
    expected = orth_matrix(U, ones).float()
    for scale in (1e-12, 1e-3, 1e6):
        actual = orth_matrix((scale * U).float(), ones.float())
        torch.testing.assert_close(actual, expected, rtol=0, atol=2e-6)


def test_a_zero_row_reflects_nothing() -> None:
    U = normal(3, 4, seed=7)
    U[1] = 0
    ones = torch.ones(4, dtype=torch.float64)
    torch.testing.assert_close(orth_matrix(U, ones), orth_matrix(U[[0, 2]], ones))


def test_positive_starts_at_one_with_slope_one_and_never_dies() -> None:
    free = torch.linspace(-12, 12, 97, dtype=torch.float64, requires_grad=True)
    value = positive(free)
    (slope,) = torch.autograd.grad(value.sum(), free)
    assert value[48] == 1
    assert slope[48] == 1
    assert (slope > 0).all()
    assert (value > 1 / POSITIVE_RANGE).all()
    assert (value < POSITIVE_RANGE).all()
