"""The blocked pairwise distance against the plain form: values, gradients, odd shapes, edges."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

import pytest
import torch
from torch import Tensor

from golde.geometry import GEOMETRIES
from golde.kernels import (
    Core,
    Finish,
    Geodesic,
    Root,
    can_compile,
    paired,
    pairwise,
    pairwise_reference,
)
from golde.kernels.finish import _complement
from oracles import ask, normal, randomised, seeded

# The package's name ``pairwise`` is the function, so the module is looked up.
module = import_module("golde.kernels.pairwise")

WIDTH = 4
FINISHES = {"root": Root(), "geodesic": Geodesic()}
Distance = Callable[[Core, Core, Finish, int], Tensor]

finishes = pytest.mark.parametrize("finish", FINISHES.values(), ids=FINISHES)
norms = pytest.mark.parametrize("norm", [1, 2])
dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["f32", "f64"])
letters = pytest.mark.parametrize("letter", GEOMETRIES)


@pytest.fixture(autouse=True)
def _poisoned_memory() -> Iterator[None]:
    """Memory that is not written to reads as NaN."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def in_tiles(monkeypatch: pytest.MonkeyPatch, count: int, side: int) -> None:
    """Of so many elements at most, or one pair, and of about so many queries and candidates."""
    for name, value in {"BLOCK_ELEMENTS": count, "TILE_SIDE": side, "LEAST_PAIRS": 1}.items():
        monkeypatch.setattr(module, name, value)


def uniform(*shape: int, low: float, high: float, seed: int) -> Tensor:
    return low + (high - low) * torch.rand(*shape, generator=seeded(seed), dtype=torch.float64)


def sides(finish: Finish, M: int, B: int, N: int, *, spread: float = 0.1) -> tuple[Core, Core]:
    """Cores whose products lie about one: away from zero for a small spread, also below for a large."""
    query, candidate = (normal(M, n, WIDTH, seed=n + M, scale=spread) for n in (B, N))
    query[..., 0], candidate[..., 0] = query[..., 0] + 1, candidate[..., 0] + 1
    if isinstance(finish, Root):
        return Core(query, ()), Core(candidate, ())
    root, a = (uniform(M, B, low=low, high=high, seed=1) for low, high in ((0.3, 2), (0, 3)))
    return Core(query, (root, a)), Core(candidate, (uniform(M, N, low=0.05, high=3, seed=2),))


def leaves(core: Core, dtype: torch.dtype = torch.float64) -> Core:
    vector, *scalars = (t.detach().to(dtype).requires_grad_() for t in (core.vector, *core.scalars))
    return Core(vector, tuple(scalars))


def outcome(
    distance: Distance, query: Core, candidate: Core, finish: Finish, norm: int
) -> tuple[Tensor, ...]:
    """The table, and the gradients of everything that goes in under a fixed incoming one."""
    table = distance(query, candidate, finish, norm)
    incoming = normal(*table.shape, seed=9).to(table.dtype)
    inputs = (query.vector, candidate.vector, *query.scalars, *candidate.scalars)
    return (table.detach(), *torch.autograd.grad(table, inputs, incoming))


@finishes
@norms
@pytest.mark.parametrize(
    ("M", "B", "N"), [(1, 1, 1), (3, 1, 5), (3, 7, 1), (1, 7, 5), (3, 7, 5), (5, 13, 11)]
)
@pytest.mark.parametrize(
    ("block", "side"), [(1, 64), (40, 2), (40, 64), (150, 1), (150, 4), (1 << 17, 64)]
)
def test_tiles_are_the_plain_form(
    finish: Finish,
    norm: int,
    M: int,
    B: int,
    N: int,
    block: int,
    side: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tiles of one pair, of rows or columns alone, that divide neither side, and of all; also clamped x."""
    in_tiles(monkeypatch, block, side)
    for spread in (0.1, 2.0):
        query, candidate = (leaves(core) for core in sides(finish, M, B, N, spread=spread))
        expected = outcome(pairwise_reference, query, candidate, finish, norm)
        found = outcome(pairwise, query, candidate, finish, norm)
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("M", "B", "N"),
    [
        (28, 1500, 2000),
        (72, 1000, 40_943),
        (1, 3, 200_000),
        (5000, 70, 90),
        (16, 1024, 64),
        (2, 1500, 14_529),
        (2, 0, 9),
        (2, 9, 0),
        (0, 9, 9),
    ],
)
def test_tiles_are_compact_and_fit(M: int, B: int, N: int, compiled: bool) -> None:
    """Each pair is in one of them, and they are neither too large, nor thin, nor more than need be."""
    query, candidate = (torch.empty(M, n, 1, device="cpu") for n in (B, N))
    down, over = module._tiles(query, candidate, compiled)
    for spans, length in ((down, B), (over, N)):
        assert [i for span in spans for i in range(length)[span]] == list(range(length))
        assert len(spans) == 1 or min(s.stop - s.start for s in spans) > 1
    rows, columns = (max(s.stop - s.start for s in spans) for spans in (down, over))
    room = module.BLOCK_ELEMENTS * (module.COMPILED_BLOCKS if compiled else 1) // max(1, M)
    room = max(room, module.LEAST_PAIRS)
    assert rows * columns <= room
    side = min(module.TILE_SIDE, int(room**0.5))
    assert rows >= min(B, side) / 2
    assert columns >= min(N, side) / 2
    assert len(down) * len(over) == 1 or rows * columns >= room / 2
    for longest, length in ((rows, B), (columns, N)):
        assert longest == length or longest % module.LANES == 0


def test_the_large_spread_reaches_the_clamp() -> None:
    query, candidate = sides(Root(), 3, 7, 5, spread=2.0)
    assert (torch.bmm(query.vector, candidate.vector.mT) < 0).any()


@finishes
@norms
def test_float32_errs_at_most_twice_as_much_as_the_plain_form(finish: Finish, norm: int) -> None:
    """Against float64, in max-norm, tensor by tensor."""
    exact, plain, blocked = (
        outcome(distance, *(leaves(core, dtype) for core in sides(finish, 6, 40, 30)), finish, norm)
        for distance, dtype in (
            (pairwise_reference, torch.float64),
            (pairwise_reference, torch.float32),
            (pairwise, torch.float32),
        )
    )
    for truth, one, two in zip(exact, plain, blocked, strict=True):
        assert two.dtype == torch.float32
        floor = 4 * torch.finfo(torch.float32).eps * truth.abs().max()
        assert (two - truth).abs().max() <= 2 * (one - truth).abs().max() + floor


@finishes
@norms
def test_gradients_are_the_derivatives(finish: Finish, norm: int) -> None:
    """Finite differences know nothing of either form."""
    query, candidate = (leaves(core) for core in sides(finish, 2, 3, 4))
    count = len(query.scalars)

    def table(q: Tensor, c: Tensor, *scalars: Tensor) -> Tensor:
        return pairwise(Core(q, scalars[:count]), Core(c, scalars[count:]), finish, norm)

    inputs = (query.vector, candidate.vector, *query.scalars, *candidate.scalars)
    assert torch.autograd.gradcheck(table, inputs)


@letters
@norms
@dtypes
@pytest.mark.parametrize("block", [7, 1 << 17])
def test_zero_vectors_and_coincident_points(
    letter: str, norm: int, dtype: torch.dtype, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through the geometry, where the terms that blow up cancel: both forms agree and are finite."""
    in_tiles(monkeypatch, block, 2)
    M, K = 2, 3
    dimension = K + GEOMETRIES[letter].unstored
    group = randomised(GEOMETRIES[letter](dimension, M, 1), seed=3, scale=0.4).to(dtype)
    maps = group.maps(torch.tensor([0]))
    eye = torch.eye(K, dtype=dtype).expand_as(maps[0])
    maps = maps._replace(**{maps._fields[0]: eye})
    if "b" in maps._fields:
        maps = maps._replace(b=0 * maps.b)
    points = normal(5, M, K, seed=4, scale=0.5).to(dtype)
    points[1], points[2, 0] = 0, 0
    results = []
    for distance in (pairwise_reference, pairwise):
        heads, tails = points.clone().requires_grad_(), points.clone().requires_grad_()
        query, candidate = ask(group, heads, maps), group.candidate(tails)
        table = distance(query, candidate, group.finish, norm)
        results.append((table.detach(), *torch.autograd.grad(table.sum(), (heads, tails))))
    for plain, blocked in zip(*results, strict=True):
        assert plain.isfinite().all()
        assert blocked.isfinite().all()
        # At coincident points 1/2√x turns rounding errors of the product into 5·10⁵ times as much.
        slack = 4e6 * torch.finfo(dtype).eps
        torch.testing.assert_close(blocked, plain, rtol=1e-3, atol=slack)


@finishes
def test_one_side_alone_and_expanded_gradients(finish: Finish) -> None:
    """Ranking-like and frozen uses: some inputs need no gradient, the incoming one is a constant."""
    query, candidate = sides(finish, 3, 7, 5)
    free = Core(query.vector.clone().requires_grad_(), query.scalars)
    pairwise(free, candidate, finish, 1).sum().backward()
    other = Core(query.vector.clone().requires_grad_(), query.scalars)
    pairwise_reference(other, candidate, finish, 1).sum().backward()
    torch.testing.assert_close(free.vector.grad, other.vector.grad)


@finishes
def test_layout_does_not_matter(finish: Finish) -> None:
    """Components come as transposed views of (B, M, K)."""
    query, candidate = sides(finish, 3, 7, 5)
    expected = pairwise(query, candidate, finish, 1)

    def strided(core: Core) -> Core:
        vector, *scalars = (
            t.transpose(0, 1).contiguous().transpose(0, 1) for t in (core.vector, *core.scalars)
        )
        assert not vector.is_contiguous()
        return Core(vector, tuple(scalars))

    found = pairwise(strided(query), strided(candidate), finish, 1)
    torch.testing.assert_close(found, expected)
    one_row = Core(query.vector[:, :5], tuple(s[:, :5] for s in query.scalars))
    torch.testing.assert_close(paired(one_row, candidate, finish, 1), expected[:5].diagonal())


@finishes
@norms
@pytest.mark.parametrize(("B", "N"), [(0, 4), (4, 0)])
def test_nothing_to_score(finish: Finish, norm: int, B: int, N: int) -> None:
    query, candidate = (leaves(core) for core in sides(finish, 2, B, N))
    table, *gradients = outcome(pairwise, query, candidate, finish, norm)
    assert table.shape == (B, N)
    assert all((gradient == 0).all() for gradient in gradients)


@letters
def test_far_out_nothing_overflows(letter: str) -> None:
    """Tangent norms up to 30 at the smallest β there is reach rapidities of 130."""
    group: Any = GEOMETRIES[letter](4, 2, 1)
    with torch.no_grad():
        for name, parameter in group.named_parameters():
            if name.startswith("free"):
                parameter.fill_(-1e3)
    K = group.numbers
    points = (normal(6, 2, K, seed=5) * torch.linspace(0, 10, 6)[:, None, None]).float()
    heads = points.clone().requires_grad_()
    tails = points.flip(0).clone().requires_grad_()
    table = pairwise(
        ask(group, heads, group.maps(torch.tensor([0]))), group.candidate(tails), group.finish, 1
    )
    table.sum().backward()
    for tensor in (table, heads.grad, tails.grad):
        assert tensor is not None
        assert tensor.isfinite().all()


@pytest.mark.parametrize(  # a second each; norm and finish are looked at one after the other
    ("name", "norm"), [("root", 2), ("geodesic", 1)]
)
def test_the_compiled_loop_is_the_chain_of_operations(
    name: str, norm: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one tile and in several, of whatever number; another number is not compiled anew to score."""
    if not can_compile():
        pytest.skip("torch.compile does not work here, and the eager version is used")
    finish = FINISHES[name]
    compiled: Distance = partial(pairwise, compiled=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the compiler's own, about versions of itself
        for B, N, tiles in ((7, 5, (1, 1)), (9, 6, (3, 2)), (9, 4, (3, 1)), (3, 8, (1, 2))):
            query, candidate = (leaves(core) for core in sides(finish, 3, B, N))
            assert tuple(map(len, module._tiles(query.vector, candidate.vector, True))) == tiles
            if tiles != (1, 1):
                with torch.compiler.set_stance("fail_on_recompile"), torch.no_grad():
                    compiled(query, candidate, finish, norm)
            expected = outcome(pairwise_reference, query, candidate, finish, norm)
            found = outcome(compiled, query, candidate, finish, norm)
            torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
            in_tiles(monkeypatch, 9, 3)


@pytest.mark.skipif(not can_compile(), reason="torch.compile does not work here")
def test_compiled_code_is_exact_near_the_origin() -> None:
    """``1 − e^{−b}`` to a few roundings at any b; what the compiler makes of expm1 is 20% off at 1e-7."""
    b = torch.logspace(-7, 2, 4000)
    truth = -torch.expm1(-b.double())
    for complement in (_complement, torch.compile(_complement)):
        assert ((complement(b) - truth) / truth).abs().max() < 3e-7
