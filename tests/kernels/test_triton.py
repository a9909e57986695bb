"""The fused kernels against the plain form: on a GPU where there is one, else in Triton's interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, product
from math import log, log10
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from golde.kernels import Core, Finish, Geodesic, Root, pairwise_reference
from golde.kernels.triton import Blocks, Configuration, configuration, supports
from oracles import normal, seeded

if find_spec("triton") is None:
    pytest.skip("Triton is not installed (extra: kernels)", allow_module_level=True)

CUDA = torch.cuda.is_available()
FULL = CUDA or os.environ.get("GOLDE_FULL_GRID") == "1"  # the interpreter is slow
DEVICE = torch.device("cuda" if CUDA else "cpu")
EPS = torch.finfo(torch.float32).eps

with pytest.MonkeyPatch.context() as patch:
    if not CUDA:
        patch.setenv("TRITON_INTERPRET", "1")  # read when kernels are defined; see conftest
    distance: Any = import_module("golde.kernels.triton.distance")
    language: Any = import_module("golde.kernels.triton.language")
    pointwise: Any = import_module("golde.kernels.triton.pointwise")
    tl, one_minus_exp = language.tl, pointwise.one_minus_exp

    @language.jit
    def exp_kernel(b, out, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
        at = tl.arange(0, BLOCK)
        tl.store(out + at, one_minus_exp(tl.load(b + at)))


FINISHES: dict[str, Finish] = {"root": Root(), "geodesic": Geodesic()}
SMALL = Configuration(*[Blocks(16, 16)] * 3)  # several tiles either way even for little
UNEVEN = Configuration(Blocks(32, 16), Blocks(16, 32), Blocks(32, 16))
# The interpreter takes as long for any tile: a single one where borders are not what is tested.
FEW = SMALL if FULL else Configuration(*[Blocks(64, 64)] * 3)
PRECISIONS = ["ieee", "tf32x3"] if CUDA else ["ieee"]  # the interpreter multiplies in float32

SHAPES = [(1, 1, 1, 3), (5, 33, 3, 9), (17, 40, 2, 21), (33, 3, 1, 67)]  # B, N, M, C
if not FULL:
    SHAPES[1:3] = [(5, 33, 2, 9), (17, 40, 1, 21)]  # components come one after another
LARGER = [(65, 129, 4, 63), (1000, 999, 36, 21), (257, 1031, 36, 13), (129, 300, 1, 1601)]
CASES = [(shape, precision, UNEVEN) for shape in SHAPES for precision in PRECISIONS[-1:]]
CASES += [(shape, precision, None) for shape in SHAPES for precision in PRECISIONS]
if CUDA:  # a second or more to compile each
    CASES += [(shape, "tf32x3", None) for shape in LARGER]
elif FULL:
    more = [(1, 70, 2, 5), (70, 1, 2, 17), (40, 3, 1, 131), (17, 70, 2, 33), (65, 129, 2, 63)]
    CASES += [(shape, "ieee", blocks) for shape in more for blocks in (UNEVEN, None)]
CASES_BY_NORM = [  # either norm with every finish, short and long; nothing else depends on it
    (*case, norm)
    for i, case in enumerate(CASES)
    for norm in ((1, 2) if FULL else (1 + (i + i // len(SHAPES)) % 2,))
]
PATHS = list(product(FINISHES, (9, 67))) if FULL else [("geodesic", 9), ("root", 67)]

Outcome = tuple[Tensor, ...]
Distance = Callable[[Core, Core, Finish, int], Tensor]

finishes = pytest.mark.parametrize("finish", FINISHES.values(), ids=FINISHES)
norms = pytest.mark.parametrize("norm", [1, 2])
precisions = pytest.mark.parametrize("precision", PRECISIONS)
paths = pytest.mark.parametrize(  # of the backward pass: short core vectors and long ones
    ("finish", "C"),
    [(FINISHES[name], C) for name, C in PATHS],
    ids=[f"{C}-{name}" for name, C in PATHS],
)


pytestmark = pytest.mark.usefixtures("surroundings")


def uniform(low: float, high: float, *shape: int, seed: int) -> Tensor:
    return low + (high - low) * torch.rand(*shape, generator=seeded(seed), dtype=torch.float64)


def tangents(M: int, count: int, K: int, seed: int, low: float = 0.1, high: float = 1.5) -> Tensor:
    """Vectors in all directions, the logarithms of their norms spread evenly."""
    direction = normal(M, count, K, seed=seed)
    norm = torch.exp(uniform(log(low), log(high), M, count, 1, seed=seed + 1))
    return norm * direction / direction.norm(dim=-1, keepdim=True)


def cores(finish: Finish, x: Tensor, y: Tensor, weight: Tensor) -> tuple[Core, Core]:
    """Queries x (M, B, K), candidates y (M, N, K); the weight of a query is p for a root, else β."""
    if isinstance(finish, Root):
        p = weight.unsqueeze(-1).expand_as(x)
        xx = (p * x * x).sum(-1, keepdim=True)
        query = torch.cat((-2 * p * x, p, xx), -1)
        return Core(query, ()), Core(torch.cat((y, y * y, torch.ones_like(y[..., :1])), -1), ())
    root = weight.sqrt()
    norm, n = ((t.square().sum(-1) + 1e-30).sqrt() for t in (x, y))
    a = norm / root
    zeta = (-0.5 * torch.expm1(-2 * a) / norm).unsqueeze(-1) * x
    length = -0.5 * torch.expm1(-2 * a).unsqueeze(-1)
    query = torch.cat((-zeta, length), -1)
    return Core(query, (root, a)), Core(torch.cat((y, n.unsqueeze(-1)), -1), (n,))


def sides(
    finish: Finish, B: int, N: int, M: int, C: int, *, low: float = 0.1, high: float = 1.5,
    weights: tuple[float, float] = (0.3, 2.0),
) -> tuple[Core, Core]:  # fmt: skip
    """Float32 cores of C numbers at random points."""
    K = (C - 1) // 2 if isinstance(finish, Root) else C - 1
    x, y = tangents(M, B, K, 1, low, high), tangents(M, N, K, 3, low, high)
    weight = torch.exp(uniform(*(log(w) for w in weights), M, B, seed=5))
    query, candidate = cores(finish, x, y, weight)
    return rounded(query), rounded(candidate)


def tensors(query: Core, candidate: Core) -> list[Tensor]:
    return [query.vector, candidate.vector, *query.scalars, *candidate.scalars]


def changed(core: Core, change: Callable[[Tensor], Tensor]) -> Core:
    return Core(change(core.vector), tuple(change(s) for s in core.scalars))


def rounded(core: Core) -> Core:
    return changed(core, lambda t: t.float().to(DEVICE))


def outcome(
    of: Distance, query: Core, candidate: Core, finish: Finish, norm: int, dtype: torch.dtype
) -> Outcome:
    """The table, and the gradients of everything that goes in under a fixed incoming one."""
    query, candidate = (
        changed(core, lambda t: t.detach().to(dtype).requires_grad_())
        for core in (query, candidate)
    )
    table = of(query, candidate, finish, norm)
    incoming = normal(*table.shape, seed=9).to(table)
    return (
        table.detach(),
        *torch.autograd.grad(table, tensors(query, candidate), incoming, allow_unused=True),
    )


def nudged(core: Core, seed: int) -> Core:
    """Every number moved by at most one rounding."""
    return changed(
        core, lambda t: t.double() * (1 + EPS * uniform(-1, 1, *t.shape, seed=seed).to(DEVICE))
    )


def check(
    query: Core, candidate: Core, finish: Finish, norm: int, of: Distance
) -> list[tuple[float, float, float]]:
    """At most twice the error of plain float32, in max-norm, beside what one rounding of the inputs does.

    That floor is the one of every bilinear form (the design's ``2√β·√(ε·sinh a·sinh b)`` where it
    matters), taken from the function itself: near coincidence any rounding is magnified.
    """
    wide, narrow = torch.float64, torch.float32
    exact = outcome(pairwise_reference, query, candidate, finish, norm, wide)
    moved = nudged(query, 11), nudged(candidate, 12)
    near = outcome(pairwise_reference, *moved, finish, norm, wide)
    plain = outcome(pairwise_reference, query, candidate, finish, norm, narrow)
    found = outcome(of, query, candidate, finish, norm, narrow)
    figures = []
    for truth, beside, one, two in zip(exact, near, plain, found, strict=True):
        assert two.dtype == torch.float32
        assert two.isfinite().all()
        error, allowed, floor = (float((t - truth).abs().max()) for t in (two, one, beside))
        assert error <= 2 * allowed + floor + 4 * EPS * float(truth.abs().max())
        figures.append((error, allowed, floor))
    return figures


def fused(precision: str = "ieee", blocks: Configuration | None = FEW) -> Distance:
    run: Distance = partial(distance.fused_pairwise, precision=precision, blocks=blocks)
    return run


@finishes
@pytest.mark.parametrize(
    ("shape", "precision", "blocks", "norm"),
    CASES_BY_NORM,
    ids=[
        f"{shape}-{precision}-{'usual' if blocks is None else 'uneven'}-{norm}"
        for shape, precision, blocks, norm in CASES_BY_NORM
    ],
)
def test_it_is_the_plain_form(
    finish: Finish,
    shape: tuple[int, int, int, int],
    precision: str,
    blocks: Configuration | None,
    norm: int,
) -> None:
    """Blocks that do not divide anything, and those of a real run."""
    query, candidate = sides(finish, *shape)
    check(query, candidate, finish, norm, fused(precision, blocks))


@finishes
@pytest.mark.parametrize("C", [9, 67])
def test_tables_that_fill_their_blocks(finish: Finish, C: int) -> None:
    """Nothing is padded, and so the incoming gradient is taken as it is."""
    query, candidate = sides(finish, 16, 32, 2, C)
    check(query, candidate, finish, 1, fused(blocks=SMALL))
    grad = torch.rand(16, 32, device=DEVICE)
    assert distance.padded(grad, 16, 32) is grad
    assert torch.equal(distance.padded(grad.T, 32, 16), grad.T)
    more = distance.padded(grad, 17, 48)
    assert more.shape == (17, 48)
    assert torch.equal(more[:16, :32], grad)
    assert more.count_nonzero() == grad.count_nonzero()


@finishes
@pytest.mark.parametrize(
    ("C", "norm"), list(product((3, 21, 67), (1, 2))) if FULL else [(3, 1), (21, 2), (67, 1)]
)
def test_a_query_with_its_own_candidate(finish: Finish, C: int, norm: int) -> None:
    """The diagonal of the table, with the same gradients."""
    query, candidate = sides(finish, 37, 37, 3 if FULL else 2, C)

    def diagonal(query: Core, candidate: Core, finish: Finish, norm: int) -> Tensor:
        return pairwise_reference(query, candidate, finish, norm).diagonal()

    def own(query: Core, candidate: Core, finish: Finish, norm: int) -> Tensor:
        found: Tensor = distance.fused_paired(query, candidate, norm)
        return found

    exact = outcome(diagonal, query, candidate, finish, norm, torch.float64)
    plain = outcome(diagonal, query, candidate, finish, norm, torch.float32)
    found = outcome(own, query, candidate, finish, norm, torch.float32)
    for truth, one, two in zip(exact, plain, found, strict=True):
        error, allowed = (float((t - truth).abs().max()) for t in (two, one))
        assert error <= 2 * allowed + 4 * EPS * float(truth.abs().max())


@finishes
@norms
@precisions
def test_norms_and_curvatures_of_all_sizes(finish: Finish, norm: int, precision: str) -> None:
    """Tangent norms 1e-6 to 10 and β .05 to 20 reach rapidities of 45."""
    query, candidate = sides(finish, 20, 36, 2, 9, low=1e-6, high=10, weights=(0.05, 20))
    check(query, candidate, finish, norm, fused(precision))


@finishes
@precisions
@pytest.mark.parametrize(
    ("scale", "norm"),
    list(product((1e-6, 0.1, 1.0, 10.0), (1, 2)))
    if FULL
    else [(1e-6, 1), (1e-6, 2), (0.1, 1), (1.0, 2), (10.0, 1)],
)
def test_zero_vectors_and_coincident_points(
    finish: Finish, precision: str, scale: float, norm: int
) -> None:
    """The table is right to within the floor; gradients, which do not exist there, are finite."""
    points = normal(2, 18, 4, seed=3, scale=scale)
    points[:, 1], points[0, 2] = 0, 0
    weight = uniform(0.05, 2, 2, 18, seed=4)
    query, candidate = (rounded(core) for core in cores(finish, points, points, weight))
    found = outcome(fused(precision), query, candidate, finish, norm, torch.float32)
    assert all(t.isfinite().all() for t in found)
    plain = outcome(pairwise_reference, query, candidate, finish, norm, torch.float32)[0]
    exact = pairwise_reference(
        *(changed(core, Tensor.double) for core in (query, candidate)), finish, norm
    )
    near = pairwise_reference(nudged(query, 1), nudged(candidate, 2), finish, norm)
    error, allowed, floor = (float((t - exact).abs().max()) for t in (found[0], plain, near))
    assert error <= 2 * allowed + floor


@finishes
def test_where_rounding_made_the_square_negative_there_is_no_slope(finish: Finish) -> None:
    """As in the plain form: the value is the floor's, the gradient zero, not NaN."""
    query, candidate = sides(finish, 3, 4, 1, 5)
    below = Core(-query.vector.abs(), query.scalars)
    above = Core(100 * candidate.vector.abs(), candidate.scalars)
    expected, found = (
        outcome(of, below, above, finish, 1, torch.float32) for of in (pairwise_reference, fused())
    )
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    assert (found[1] == 0).all()


@pytest.mark.parametrize("low", [1e-12, 0.9, 20.0])
def test_one_minus_exp(low: float) -> None:
    """Within a few roundings over twelve orders of magnitude, through a kernel of its own."""
    b = torch.logspace(log10(low), 2, 1024, dtype=torch.float64).float()
    b[0] = 0
    b, found = b.to(DEVICE), torch.empty(1024, device=DEVICE)
    exp_kernel[(1,)](b, found, BLOCK=1024)
    exact = -torch.expm1(-b.double())
    assert found[0] == 0
    assert ((found - exact).abs() <= 3 * EPS * exact).all()


@paths
def test_two_runs_agree_to_the_bit(finish: Finish, C: int) -> None:
    query, candidate = sides(finish, 18 if FULL else 5, 20, 2, C)
    run = fused(blocks=SMALL)
    one, two = (outcome(run, query, candidate, finish, 1, torch.float32) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


@paths
def test_layout_does_not_matter(finish: Finish, C: int) -> None:
    """Views of (B, M, C) and of (C, B, M), an expanded incoming gradient, and a strided one."""
    query, candidate = sides(finish, 5, 20, 2, C)

    def run(core: Core, other: Core) -> list[Tensor]:
        core, other = (changed(c, lambda t: t.detach().requires_grad_()) for c in (core, other))
        table = fused(blocks=SMALL)(core, other, finish, 1)
        weighted = (table * torch.arange(5.0, device=DEVICE)[:, None]).T.clone()
        inputs = tensors(core, other)
        gradients = [
            torch.autograd.grad(last.sum(), inputs, retain_graph=True) for last in (table, weighted)
        ]
        return [table, *chain.from_iterable(gradients)]

    def strided(t: Tensor) -> Tensor:
        order = (2, 1, 0)[-t.ndim :] if t.ndim == 3 else (1, 0)
        return t.permute(*order).contiguous().permute(*order)

    assert not strided(query.vector).is_contiguous()
    found = run(changed(query, strided), changed(candidate, strided))
    torch.testing.assert_close(found, run(query, candidate))


@paths
def test_each_input_alone(finish: Finish, C: int) -> None:
    """One input that needs a gradient among others that do not."""
    query, candidate = sides(finish, 3, 5, 1, C)
    incoming = normal(3, 5, seed=9).float().to(DEVICE)
    inputs = tensors(query, candidate)
    of_query = len(query.scalars)
    every = [t.detach().requires_grad_() for t in inputs]

    def table(inputs: list[Tensor]) -> Tensor:
        q, c, *scalars = inputs
        cores = Core(q, tuple(scalars[:of_query])), Core(c, tuple(scalars[of_query:]))
        return fused()(*cores, finish, 1)

    expected = torch.autograd.grad(table(every), every, incoming)
    for i in range(len(inputs)):
        some = [t.detach().requires_grad_(i == j) for j, t in enumerate(inputs)]
        (found,) = torch.autograd.grad(table(some), some[i], incoming)
        assert torch.equal(found, expected[i])
    assert not table([t.detach() for t in inputs]).requires_grad


@pytest.mark.parametrize(
    ("name", "N", "M", "numbers"),
    list(product(FINISHES, [70], [3], [1, 1 << 10, 5 << 9, 5 << 10, 1 << 26]))
    if FULL
    else [
        ("root", 33, 2, 1 << 10),
        *(("geodesic", 33, 2, numbers) for numbers in (1, 1 << 10, 3 << 9)),
        ("geodesic", 33, 3, 3 << 10),
    ],
)
def test_however_the_work_is_divided(
    name: str, N: int, M: int, numbers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs that own all candidates, some or one tile; components one by one, some or all together.

    There are 512 numbers to a part, and with memory for all of them one tile and all together, which is
    what other tests have.
    """
    finish = FINISHES[name]
    query, candidate = sides(finish, 20, N, M, 9)
    monkeypatch.setattr(import_module("golde.kernels.triton.blocks"), "PART_NUMBERS", numbers)
    check(query, candidate, finish, 1, fused(blocks=SMALL))


@pytest.mark.parametrize("tiles", [1, 47, 94, 640, 100_000])
@pytest.mark.parametrize("M", [1, 36, 50])
@pytest.mark.parametrize("numbers", [512, 1 << 15, 1 << 20])
def test_parts_stay_within_their_memory(tiles: int, M: int, numbers: int) -> None:
    blocks = import_module("golde.kernels.triton.blocks")
    each, together = blocks.division(tiles, M, numbers)
    assert 1 <= each <= tiles
    assert 1 <= together <= M
    parts = -(-tiles // each)
    assert parts * together * numbers <= max(blocks.PART_NUMBERS, numbers)
    if together > 1 and tiles * M <= blocks.PROGRAMS:
        assert each == 1  # nothing is read again while there is another way


@finishes
@pytest.mark.parametrize(("B", "N", "C"), [(0, 4, 9), (4, 0, 9), (4, 0, 67), (0, 0, 9)])
def test_nothing_to_score(finish: Finish, B: int, N: int, C: int) -> None:
    query, candidate = sides(finish, B, N, 2, C)
    table, *gradients = outcome(fused(), query, candidate, finish, 1, torch.float32)
    assert table.shape == (B, N)
    assert all((gradient == 0).all() for gradient in gradients)


@finishes
@norms
def test_nan_stays_nan(finish: Finish, norm: int) -> None:
    """A broken entity must not look like a near one; the others are not touched by it."""
    query, candidate = sides(finish, 3, 20, 2, 9)
    candidate.vector[1, 17] = float("nan")
    found = fused()(query, candidate, finish, norm)
    assert found[:, 17].isnan().all()
    assert found.isnan().sum() == 3


@paths
def test_wide_offsets(finish: Finish, C: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The 64-bit form, which only tables beyond 2³¹ numbers take, gives the same."""
    query, candidate = sides(finish, 5, 20, 2, C)
    run = fused(blocks=SMALL)
    expected = outcome(run, query, candidate, finish, 1, torch.float32)
    monkeypatch.setattr(distance, "NARROW", 0)
    found = outcome(run, query, candidate, finish, 1, torch.float32)
    torch.testing.assert_close(found, expected)


def test_where_it_can_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(Root):
        """Its value may be another."""

    cuda, cpu = torch.device("cuda"), torch.device("cpu")
    assert supports(Root(), torch.float32, cuda)
    assert supports(Geodesic(), torch.float32, cuda)
    assert not supports(Other(), torch.float32, cuda)
    assert not supports(Root(), torch.float64, cuda)
    assert not supports(Root(), torch.float32, cpu)
    monkeypatch.setenv("GOLDE_KERNELS", "plain")
    assert not supports(Root(), torch.float32, cuda)


def test_mistakes_are_named() -> None:
    query, candidate = sides(Root(), 3, 4, 2, 9)
    run = distance.fused_pairwise
    with pytest.raises(ValueError, match="float32 only"):
        run(changed(query, Tensor.double), candidate, Root(), 1)
    with pytest.raises(ValueError, match="must be 1 or 2"):
        run(query, candidate, Root(), 3)
    with pytest.raises(ValueError, match="one of ieee"):
        run(query, candidate, Root(), 1, precision="fp8")
    with pytest.raises(ValueError, match="queries are"):
        run(query, Core(candidate.vector[:1], ()), Root(), 1)


def test_without_triton_everything_imports() -> None:
    script = """
import sys
sys.modules["triton"] = None
import golde.kernels.triton.distance
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_kernels_compile_for_a_gpu(tmp_path: Path) -> None:
    """No GPU is needed for that; it shows what the interpreter lets pass and a GPU would not."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    script = Path(__file__).with_name("compile_kernels.py")
    done = subprocess.run(
        [sys.executable, script],
        env=environment | {"TRITON_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "62 kernels" in done.stdout


def test_the_benchmark_reports_nothing_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration that fails, and one that finds something else, have a reason and no time."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    benchmark = import_module("pairwise_kernels")
    job = benchmark.Job("Q4x2", 5, 7, "backward", "ieee", Blocks(16, 16))
    broken = job._replace(blocks=Blocks(16, 3))
    skipped = job._replace(kernel="forward")
    ((rows, about),) = benchmark.measure_all(
        [job, broken, skipped], {skipped: "too large"}, 1, DEVICE.type, float("inf")
    )
    assert rows[0]["ms"] > 0
    assert "ms" not in rows[1]
    assert "failed" in rows[1]
    assert rows[2]["failed"] == "too large"
    assert benchmark.best(rows) == rows[:1]
    assert any("failed" in line for line in benchmark.table(rows, about))
    monkeypatch.setattr(
        distance,
        "launch_backward",
        lambda q, c, *_, **__: distance.Gradients(q.vectors, c.vectors, *[q.vectors[:0]] * 2),
    )
    judge = benchmark.Judge(benchmark.sides("E3x1", 5, 7, DEVICE.type))
    row = benchmark.measure(job._replace(group="E3x1"), judge, 1, DEVICE.type)
    assert row["failed"].startswith("inexact")


def test_configurations_are_what_the_hardware_takes() -> None:
    for C in (1, 13, 21, 64, 65, 1601):
        every = (
            configuration(C, geodesic=geodesic, shared=shared)
            for geodesic in (True, False)
            for shared in (99_000, 232_448)
        )
        for blocks in chain.from_iterable(every):
            for side in blocks[:2]:
                assert side >= 16
                assert side & (side - 1) == 0
