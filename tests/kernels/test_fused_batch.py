"""The scores of a step as kernels, with all gradients, against the plain form in double precision."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from importlib import import_module
from itertools import product
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from golde.config import ModelConfig
from golde.geometry import present
from golde.kernels import Core
from golde.kernels.triton import Blocks, Configuration
from golde.kernels.triton.blocks import WHOLE
from golde.kernels.triton.support import KNOWN
from golde.models import GoldE, golde
from oracles import normal, randomised, seeded

pytest.importorskip("triton", reason="Triton is not installed (extra: kernels)")

CUDA = torch.cuda.is_available()
CPU, DEVICE = torch.device("cpu"), torch.device("cuda" if CUDA else "cpu")
EPS = torch.finfo(torch.float32).eps
PRECISIONS = ["ieee", "tf32x3"]

batch: Any = import_module("golde.kernels.triton.batch")
distance: Any = import_module("golde.kernels.triton.distance")
sorting: Any = import_module("golde.kernels.triton.sorting")

Scores = tuple[Tensor, Tensor | None, Tensor]
Outcome = dict[str, Tensor]
Scoring = Callable[[GoldE, Tensor], Scores]

LETTERS_BY_NORM = list(product(["E3x2", "P3x2", "Q4x2"], (1, 2)))
# E and P have the same finish: what one test leaves out of them the others have.
SOME, OTHERS = [("E3x2", 1), ("P3x2", 2)], [("E3x2", 2), ("P3x2", 1)]
HYPERBOLIC = [("Q4x2", 1), ("Q4x2", 2)]
FEW = 4 if CUDA else 2  # queries of different relations, each of which is a program
little_padding = pytest.mark.usefixtures("_little_padding")


class Compared(NamedTuple):
    """One tensor of an outcome."""

    found: Tensor
    truth: Tensor
    error: Tensor
    allowed: Tensor  # the error of the plain form in float32
    floor: Tensor  # what a rounding does, which any bilinear form magnifies where points nearly coincide,
    # and the gradients of maps where a reflection's vector is short


pytestmark = pytest.mark.usefixtures("surroundings")


@pytest.fixture
def _little_padding(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter takes as long for a tile of padding as for any: blocks that few queries fill."""
    if not CUDA:
        small = Configuration(*[Blocks(16, 16)] * 3)
        monkeypatch.setattr(batch, "configuration", lambda *_, **__: small)


def many(signature: str) -> str:
    """So many components on a GPU that the largest error of a form is no accident of a few numbers."""
    return re.sub(r"x\d+", "x16", signature) if CUDA else signature


def one(signature: str) -> str:
    """One component of each kind without a GPU, where two would show no more: each is a program."""
    return signature if CUDA else re.sub(r"x\d+", "x1", signature)


class Step:
    """A model with random parameters, the rows and directions of a step, and what comes back to its scores.

    All of it is in float32, so that every precision starts from the same numbers.
    """

    def __init__(
        self, signature: str, R: int, B: int, N: int, *, own: bool = True, **model: Any
    ) -> None:
        config = ModelConfig(signature=signature, weights={signature[0]: 0.5}, **model)
        self.model: GoldE = randomised(GoldE(config, 1, R), seed=1, scale=0.4).float()
        self.B, self.N, self.own = B, N, own
        numbers = self.model.signature.numbers
        self.rows = normal(2 * B + N, numbers, seed=2, scale=0.4).float()
        self.direction = torch.randint(2 * R, (B,), generator=seeded(3))
        self.incoming = [normal(B, seed=4), normal(B, seed=5), normal(B, N, seed=6)]

    @property
    def norm(self) -> int:
        return self.model.config.norm

    def plain(self, model: GoldE, rows: Tensor) -> Scores:
        nobody = torch.zeros(self.B + self.N, dtype=torch.int64)
        entity, candidates = nobody[: self.B], nobody[self.B :]
        return model.score_batch(rows, entity, self.direction, entity, candidates, own=self.own)

    def fused(self, model: GoldE, rows: Tensor, precision: str = "tf32x3") -> Scores:
        """As ``GoldE`` goes about it on a GPU."""
        direction = self.direction.to(rows.device)
        directions, which = present(direction, 2 * model.relations, fixed=True)
        maps = [model._directed_maps(group, directions) for group in model.geometries]
        found: Scores = batch.fused_batch(
            rows,
            which,
            model._fused_groups,
            maps,
            norm=self.norm,
            own=self.own,
            precision=precision,
        )
        return found

    def outcome(self, scoring: Scoring, dtype: torch.dtype, device: torch.device = CPU) -> Outcome:
        """The scores, and the gradients of rows and relations."""
        model = deepcopy(self.model).to(device, dtype)
        rows = self.rows.to(device, dtype).requires_grad_()
        leaves = {"rows": rows}
        leaves |= {name: p for name, p in model.named_parameters() if name != "entity"}
        scores = scoring(model, rows)
        assert (scores[1] is not None) == self.own
        pairs = [(s, g.to(s)) for s, g in zip(scores, self.incoming, strict=True) if s is not None]
        loss = torch.stack([(s * g).sum() for s, g in pairs]).sum()
        gradients = torch.autograd.grad(loss, list(leaves.values()))
        values = {f"scores {place}": s.detach() for place, (s, _) in enumerate(pairs)}
        found = values | dict(zip(leaves, gradients, strict=True))
        return {name: tensor.cpu() for name, tensor in found.items()}

    def nudged(self, model: GoldE, rows: Tensor, seed: int) -> Scores:
        """The plain form with every number of rows, maps and cores moved by at most one rounding.

        So are their gradients. It is what no form in float32 is spared, and does not hang on the luck of
        a few numbers as the error of one form does.
        """
        noise = seeded(seed)

        def moved(given: Tensor) -> Tensor:
            by = torch.rand(given.shape, generator=noise, dtype=torch.float64)
            return given * (1 + EPS * (2 * by - 1))

        def moved_maps(given: Any) -> Any:
            return type(given)(*(moved(each) for each in given))

        def nudging(form: Callable[..., list[Core]]) -> Callable[..., list[Core]]:
            return lambda *given: [
                Core(moved(core.vector), tuple(moved(s) for s in core.scalars))
                for core in form(*given)
            ]

        maps = model._directed_maps
        model._directed_maps = lambda *given: moved_maps(maps(*given))  # type: ignore[method-assign]
        model.queries = nudging(model.queries)  # type: ignore[method-assign]
        model.candidates = nudging(model.candidates)  # type: ignore[method-assign]
        return self.plain(model, moved(rows))

    def compared(self, precision: str = "tf32x3") -> Iterator[tuple[str, Compared]]:
        """Every outcome by its name, once it is known to be of its shape and finite."""
        wide, narrow = torch.float64, torch.float32
        exact, plain = (self.outcome(self.plain, dtype) for dtype in (wide, narrow))
        near = [self.outcome(partial(self.nudged, seed=seed), wide) for seed in (7, 8, 9)]
        found = self.outcome(partial(self.fused, precision=precision), narrow, DEVICE)
        assert found.keys() == exact.keys()
        for name, truth in exact.items():
            assert found[name].dtype == narrow
            assert found[name].shape == truth.shape
            assert found[name].isfinite().all(), name
            floor = torch.stack([(each[name] - truth).abs() for each in near]).amax(0)
            error, allowed = ((each[name] - truth).abs() for each in (found, plain))
            yield name, Compared(found[name], truth, error, allowed, floor)

    def check(self, precision: str = "tf32x3", floor_of_scores: float = 0.0) -> Outcome:
        """Errors are at most twice those of plain float32 and of a rounding, in max-norm."""
        outcome = {}
        for name, (found, truth, error, allowed, floor) in self.compared(precision):
            if error.numel():
                least = 2 * EPS * truth.abs().max()
                if name.startswith("scores"):
                    least += floor_of_scores
                else:  # it may have to be 0, where what comes in is about 1
                    least = least.clamp_min(2 * EPS)
                assert error.max() <= 2 * (allowed.max() + floor.max() + least), name
            outcome[name] = found
        return outcome


@little_padding
@pytest.mark.parametrize(("signature", "norm"), LETTERS_BY_NORM if CUDA else OTHERS + HYPERBOLIC)
@pytest.mark.parametrize("precision", PRECISIONS if CUDA else PRECISIONS[-1:])
def test_it_is_the_plain_form(signature: str, norm: int, precision: str) -> None:
    Step(signature, 1, 7, 9, norm=norm).check(precision)


VARIED = {"block": 2, "boost_left": True, "reflections": "alternating"}


@little_padding
@pytest.mark.parametrize(
    ("signature", "R", "B", "N", "more"),
    [
        (many("P2x2 Q2x2"), 1, 1, 1, {}),
        ("Q4x1 Q3x1 E3x1 P2x1", 1, 5, 7, {"norm": 2, "own": False}),
        (many(one("E1x1 P1x2 Q2x1")), 1, 9, 12, {}),  # the smallest components there are
        ("P3x1 Q4x1 E2x1", 1, 6, 0, {}),
        ("P3x1 Q4x1", 30, FEW, 6, {}),  # more relations than queries
        ("P3x2 Q4x1 E2x1", 1, 9, 5, {"reciprocal": False}),
        (one("P3x1 Q4x2"), 9, FEW, 5, {"reciprocal": False}),
        (one("P4x2 Q5x2"), 1, 6, 5, VARIED),
    ],
)
def test_every_kind_of_step(signature: str, R: int, B: int, N: int, more: dict[str, Any]) -> None:
    Step(signature, R, B, N, **more).check()


@pytest.mark.parametrize(
    ("signature", "R", "B", "N", "more"),
    [
        ("P31x1", 1, 3, 4, {}),  # the largest components that the kernels take
        ("Q64x1", 1, 3, 4, {}),
        ("E62x1", 1, 3, 4, {}),
        ("P3x1 Q4x1" if CUDA else "Q4x1", 1, 70, 70, {}),  # more than a block, tiles of 32
        (*(("E3x1 Q4x1", 2, 40) if CUDA else ("E3x1", 1, 20)), 3, {"own": False}),  # tiles of 16
    ],
)
def test_the_usual_blocks(signature: str, R: int, B: int, N: int, more: dict[str, Any]) -> None:
    Step(signature, R, B, N, **more).check()


def test_where_blocks_have_to_be_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """With less shared memory; the padded rows are then no multiple of what a program packs."""
    monkeypatch.setattr(batch, "shared_memory", lambda device: 99_000)
    Step("P3x1 Q4x1" if CUDA else "Q4x1", 1, 5, 65).check()


@pytest.mark.parametrize(
    ("signature", "R"),
    [("P3x1 Q4x1", 1), ("P3x1 Q4x1", 2)] if CUDA else [("Q4x1", 1), ("P3x1", 2)],
)
def test_one_relation_with_all_queries(signature: str, R: int) -> None:
    """Two tiles of 32, or three of 16; the maps of the others have no gradient."""
    step = Step(signature, R, 40, 3)
    step.direction.fill_(2 * R - 1)
    found = step.check()
    of_relations = [gradient for name, gradient in found.items() if name.startswith("groups")]
    assert all((gradient[:-1] == 0).all() for gradient in of_relations)
    assert all((gradient[-1] != 0).all() for gradient in of_relations)


@little_padding
@pytest.mark.parametrize(("signature", "norm"), LETTERS_BY_NORM if CUDA else SOME + HYPERBOLIC[1:])
def test_norms_and_curvatures_of_all_sizes(signature: str, norm: int) -> None:
    """Tangent norms 1e-6 to 10, and p and β .05, 1 and 20, reach rapidities of 45."""
    step = Step(many(signature), 1, 12, 16, norm=norm)
    direction = step.rows / step.rows.norm(dim=1, keepdim=True)
    step.rows = direction * torch.logspace(-6, 1, len(direction)).roll(5)[:, None]
    with torch.no_grad():
        for name, parameter in step.model.named_parameters():
            if "free_" in name:
                parameter.copy_(6.0 * (torch.arange(parameter.numel()).view_as(parameter) % 3 - 1))
    step.check()


@little_padding
def test_points_next_to_the_origin_keep_their_digits() -> None:
    """Rapidities of 1e-4, next to which a rounding of 1 would be large.

    Scores are right to within the floor of a bilinear form, ``2 √(ε sinh a sinh b)`` a component.
    """
    step = Step(many(one("Q4x2")), 1, 7, 9)
    step.rows *= 1e-4
    with torch.no_grad():
        for name, parameter in step.model.groups.named_parameters():
            if name.endswith(".b"):
                parameter *= 1e-4
    longest = step.rows.unflatten(1, (-1, 3)).norm(dim=-1).max(0).values
    step.check(floor_of_scores=2 * math.sqrt(EPS) * float(longest.sum()))


@little_padding
@pytest.mark.parametrize(("signature", "norm"), LETTERS_BY_NORM if CUDA else SOME + HYPERBOLIC)
def test_coincident_points_and_zero_rows(signature: str, norm: int) -> None:
    """Under maps that move nothing; scores are right to within the floor, gradients are finite.

    That of a bilinear form: 2 √ε times the length of a component's vector, or sinh of it.
    """
    step = Step(one(signature), 1, 7, 7, norm=norm)
    with torch.no_grad():
        for parameter in step.model.groups.parameters():
            parameter.zero_()
    scale = torch.tensor([1e-6, 1e-6, 0.3, 0.3, 10.0, 10.0, 0.0])
    step.rows = (scale[:, None] * step.rows[:7]).repeat(3, 1)  # answer and candidate are the query
    lengths = step.rows[:7].unflatten(1, (-1, 3)).norm(dim=-1)  # (7, M)
    if signature.startswith("Q"):
        lengths = lengths.sinh()
    floors = 0.5 * (2 * math.sqrt(EPS) * lengths).pow(norm).sum(1)
    for name, compared in step.compared():
        if name.startswith("scores"):
            for start in range(0, 7, 2):  # points of one scale at a time
                _, truth, error, allowed, _ = (t[start : start + 2].abs().max() for t in compared)
                floor = floors[start : start + 2].max()
                assert error <= 2 * (allowed + floor + 2 * EPS * truth), name


@little_padding
def test_what_is_broken_stays_apart() -> None:
    """A row that is not a number makes its own scores so, and no others."""
    step = Step("P3x1 Q4x1 E2x1", 1, 5, 6)
    model = step.model.to(DEVICE)
    clean = step.fused(model, step.rows.to(DEVICE))
    rows = step.rows.to(DEVICE, copy=True)
    rows[[1, 5 + 2, 10 + 3]] = torch.nan  # a query, the answer of another, a candidate
    answers, own, shared = (torch.zeros(shape, dtype=torch.bool) for shape in (5, 5, (5, 6)))
    answers[[1, 2]] = own[1] = shared[1] = shared[:, 3] = True
    for value, before, broken in zip(
        step.fused(model, rows), clean, (answers, own, shared), strict=True
    ):
        assert value is not None
        assert before is not None
        assert torch.equal(value.isnan().cpu(), broken)
        assert torch.equal(value[~value.isnan()], before[~value.isnan()])


def leaves(step: Step) -> tuple[Tensor, Tensor, list[list[Tensor]]]:
    """The rows, which maps they use, and the maps of all directions, by themselves."""
    model = deepcopy(step.model).to(DEVICE)
    maps = [
        [given.detach().requires_grad_() for given in model._directed_maps(group, None)]
        for group in model.geometries
    ]
    return step.rows.to(DEVICE).requires_grad_(), step.direction.to(DEVICE), maps


def run(step: Step, rows: Tensor, which: Tensor, maps: list[list[Tensor]]) -> list[Tensor]:
    scores = batch.fused_batch(
        rows, which, step.model._fused_groups, maps, norm=step.norm, own=step.own
    )
    return [s for s in scores if s is not None]


@little_padding
@pytest.mark.parametrize(("B", "N"), [(0, 7), (0, 0)] + ([(5, 0)] if CUDA else []))
def test_nothing_to_score(B: int, N: int) -> None:
    """No queries, or no candidates: the rows and maps that are there have the gradients of the rest."""
    step = Step("P3x1 Q4x1", 2, B, N)
    exact = step.outcome(step.plain, torch.float64)
    found = step.outcome(step.fused, torch.float32, DEVICE)
    for name, truth in exact.items():
        torch.testing.assert_close(found[name].double(), truth, rtol=1e-4, atol=1e-5)


@little_padding
def test_two_runs_agree_to_the_bit() -> None:
    step = Step("Q4x1", 1, 20, 70) if CUDA else Step("E3x1", 1, 5, 20)
    rows, which, maps = leaves(step)
    every = [rows, *(given for of_group in maps for given in of_group)]
    incoming = [g.float().to(DEVICE) for g in step.incoming]
    runs = []
    for _ in range(2):
        scores = run(step, rows, which, maps)
        runs.append([*scores, *torch.autograd.grad(scores, every, incoming)])
    assert all(torch.equal(one, two) for one, two in zip(*runs, strict=True))


@little_padding
def test_layout_does_not_matter() -> None:
    """Strided rows and maps, an expanded incoming gradient, scores that nobody uses."""
    step = Step("Q4x1" if CUDA else "P3x1", 1, 5, 6)
    rows, which, maps = leaves(step)
    every = [rows, *maps[0]]
    strided = [[given.mT.contiguous().mT for given in maps[0]]]
    assert not strided[0][0].is_contiguous()
    expected, found = (
        run(step, rows, which, maps),
        run(step, rows.T.contiguous().T, which, strided),
    )
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))
    for used in ([0, 1, 2], [2]):
        ones = [torch.ones_like(expected[place]) for place in used]
        gradients = torch.autograd.grad(
            [expected[place] for place in used], every, ones, retain_graph=True
        )
        others = torch.autograd.grad(
            sum(found[place].sum() for place in used), every, retain_graph=True
        )
        assert all(torch.equal(a, b) for a, b in zip(gradients, others, strict=True))


@little_padding
def test_each_input_alone() -> None:
    """One input that needs a gradient among others that do not."""
    step = Step("P2x1", 1, 3, 2)
    rows, which, maps = leaves(step)
    every = [rows, *maps[0]]
    expected = torch.autograd.grad(run(step, rows, which, maps)[2].sum(), every)
    for alone, gradient in zip(every, expected, strict=True):
        for tensor in every:
            tensor.requires_grad_(tensor is alone)
        (found,) = torch.autograd.grad(run(step, rows, which, maps)[2].sum(), [alone])
        assert torch.equal(found, gradient)
    every[-1].requires_grad_(False)
    assert not any(scores.requires_grad for scores in run(step, rows, which, maps))


def grouped(
    which: list[int], count: int, size: int
) -> tuple[list[tuple[int, int, int]], list[int]]:
    """Relation, begin and end of every tile, and the first tile of each relation, by hand."""
    tiles: list[tuple[int, int, int]] = []
    first, begin = [0], 0
    for relation in range(count):
        end = begin + which.count(relation)
        tiles += [(relation, at, min(at + size, end)) for at in range(begin, end, size)]
        first.append(len(tiles))
        begin = end
    return tiles, first


TILED = [(1, 1), (7, 3), (32, 2), (33, 1), (40, 4), (100, 6), (5, 2100), (16, 1), (64, 1)]


@pytest.mark.parametrize(
    ("B", "count", "counted"),
    [(*tiled, True) for tiled in TILED]
    + [(*tiled, False) for tiled in (TILED if CUDA else TILED[1:2])],
)
def test_tiles_share_a_relation(
    B: int, count: int, counted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every query is in one tile, in the order of its relation; tiles that are left over are empty."""
    if not counted:
        monkeypatch.setattr(sorting, "FEW", 0)
    for which in (
        torch.randint(count, (B,), generator=seeded(B)),
        torch.full((B,), count - 1),
        torch.arange(B) % count,
    ):
        tiles = batch.launch_tiles(which.to(DEVICE), count)
        assert tiles.size == (32 if 16 * count <= B else 16)
        assert torch.equal(tiles.order.cpu(), which.argsort(stable=True))
        expected, first = grouped(which.tolist(), count, tiles.size)
        found = list(zip(*(t.tolist() for t in tiles[2:5]), strict=True))
        assert found[: len(expected)] == expected
        assert all(begin == end for _, begin, end in found[len(expected) :])
        assert all(0 <= relation < count for relation, _, _ in found)
        assert tiles.first.tolist() == first


@pytest.mark.parametrize(
    ("signature", "known"),
    [
        ("P31x1", True),
        ("P32x1", False),
        ("E62x1", True),
        ("E63x1", False),
        ("Q64x1", True),
        ("Q65x1", False),
        ("P3x1 Q4x1", True),
        ("P3x1 E63x1", False),
    ],
)
def test_long_components_take_the_plain_path(
    signature: str, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All groups or none."""
    step = Step(signature, 1, 2, 3)
    groups = step.model._fused_groups
    assert all(group.known for group in groups) == known
    assert all(group.known == (group.core <= WHOLE) for group in groups)
    calls = []

    def fused(rows: Tensor, direction: Tensor, own: bool) -> Scores:
        calls.append(own)
        return rows.new_zeros(2), rows.new_zeros(2), rows.new_zeros(2, 3)

    monkeypatch.setattr(step.model, "_fused_scores", fused)
    monkeypatch.setattr(golde, "supports", lambda finish, dtype, device: type(finish) in KNOWN)
    step.plain(step.model, step.rows)
    assert calls == [True] * known
