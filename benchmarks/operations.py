"""What the kernels of a training step have to do, counted from the algorithm.

Bytes: every input read once, every output written once. FP32: additions, multiplications, comparisons and
selections, a multiplication with its addition being one. Special: exponentials, logarithms, reciprocal
roots and reciprocals, each one instruction of the hardware. Tensor: multiplications and additions of TF32
products, three for one of float32. What an implementation does beyond that (padding, splitting a number in
two, addresses, parts of sums) is not counted and shows as distance from the ceiling.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import NamedTuple, Self

import torch

from golde.geometry import GEOMETRIES, Signature
from golde.kernels import Geodesic

NUMBER = 4
"""Bytes of a float32."""

TF32_PRODUCTS = 3


@dataclass(frozen=True)
class Operations:
    """Of one step."""

    bytes: float = 0
    fp32: float = 0
    special: float = 0
    tensor: float = 0

    def __add__(self, other: Self) -> Operations:
        return Operations(
            *(getattr(self, f.name) + getattr(other, f.name) for f in fields(Operations))
        )


class Group(NamedTuple):
    """``M`` components of ``K`` numbers, whose core vectors have ``C``."""

    M: int
    K: int
    C: int
    geodesic: bool


class Shape(NamedTuple):
    """``B`` queries in ``directions`` of their own maps, ``N`` candidates, groups of components.

    ``dense`` is how many numbers the model has outside of its table of entities.
    """

    B: int
    N: int
    directions: int
    dense: int
    groups: tuple[Group, ...]

    @property
    def drawn(self) -> int:
        """Numbers of the rows that a step draws."""
        return (2 * self.B + self.N) * sum(group.M * group.K for group in self.groups)


def shape(signature: str, B: int, N: int, directions: int, dense: int) -> Shape:
    """The shape of a step in this space."""
    groups = []
    for term in Signature.parse(signature):
        geometry = GEOMETRIES[term.letter]
        core = geometry.candidate(torch.zeros(1, term.count, term.numbers))
        geodesic = isinstance(geometry.finish, Geodesic)
        groups.append(Group(term.count, term.numbers, core.vector.shape[-1], geodesic))
    return Shape(B, N, directions, dense, tuple(groups))


# The finishes of golde/kernels/triton/pointwise.py, a pair and a component: FP32, special.

ROOT_VALUE = 3, 1  # max, + floor, multiply with the reciprocal root into the sum
ROOT_GRADIENT = 6, 1  # max, + floor, ½ grad, times the reciprocal root; compare, select

PARTS = 23, 1
"""b 1, its exponent 1 and ex2; 1 − e^{−b} 10 (five steps of a polynomial, b², b + b² r, 1 − e^{−b},
compare, select); G 3, δ 1, δ² + xG 2, max and floor 2, E 1, σ(σ + 4E) 2."""

GEODESIC_VALUE = PARTS[0] + 6, PARTS[1] + 2
"""Q 1 and a reciprocal root; σ + Q, ½ · + E, a + b, LN_2 · + 4 and lg2; into the sum 1."""

GEODESIC_GRADIENT = PARTS[0] + 26, PARTS[1] + 2
"""Q 1, length 4, κ 2, κσ 1, compare and select 2, κG 1, κδ 1, x/n 1, ∂a 1, ∂b 4, ∂n 2, ∂√β 3; the three
sums over pairs 3; a reciprocal root and lg2."""

QUERY_SIDES, CANDIDATE_SIDES = 5, 2  # scalars that enter the finish
QUERY_SCALARS, CANDIDATE_SCALARS = 2, 1  # scalars that have a gradient


def finish(group: Group, *, backward: bool) -> tuple[int, int]:
    if group.geodesic:
        return GEODESIC_GRADIENT if backward else GEODESIC_VALUE
    return ROOT_GRADIENT if backward else ROOT_VALUE


def summed(step: Shape, count: Callable[[Group], Operations]) -> Operations:
    """Over all groups."""
    return sum(map(count, step.groups), Operations())


# The distance of every query to every candidate.


def vectors(step: Shape, group: Group) -> int:
    """Numbers of the core vectors of both sides."""
    return group.M * (step.B + step.N) * group.C


def sides(step: Shape, group: Group, of_query: int, of_candidate: int) -> int:
    """Numbers of the scalars of both sides."""
    return group.geodesic * group.M * (of_query * step.B + of_candidate * step.N)


def distances(step: Shape) -> Operations:
    """One product a component, from the halves of both core vectors, then the finish; the table."""

    def count(group: Group) -> Operations:
        pairs = group.M * step.B * step.N
        fp32, special = finish(group, backward=False)
        read = 2 * vectors(step, group) + sides(step, group, QUERY_SIDES, CANDIDATE_SIDES)
        tensor = TF32_PRODUCTS * 2 * group.C * pairs
        return Operations(NUMBER * read, fp32 * pairs, special * pairs, tensor)

    return summed(step, count) + Operations(bytes=NUMBER * step.B * step.N)


def distance_gradients(step: Shape) -> Operations:
    """The product again and two more, for the gradients of either side; the finish's derivatives."""

    def count(group: Group) -> Operations:
        pairs = group.M * step.B * step.N
        fp32, special = finish(group, backward=True)
        moved = 2 * vectors(step, group)
        moved += sides(step, group, QUERY_SIDES, CANDIDATE_SIDES)
        moved += sides(step, group, QUERY_SCALARS, CANDIDATE_SCALARS)
        tensor = 3 * TF32_PRODUCTS * 2 * group.C * pairs
        return Operations(NUMBER * moved, fp32 * pairs, special * pairs, tensor)

    return summed(step, count) + Operations(bytes=NUMBER * step.B * step.N)


# What leads up to it: maps, queries, candidates.

FORMS = 3
"""A packed core vector is written as it is and in two halves."""


def map_numbers(step: Shape, group: Group) -> int:
    """Of all maps: a matrix, weights or a boost, a curvature."""
    return step.directions * group.M * (group.K**2 + group.K + 1)


def maps(step: Shape) -> Operations:
    """K reflections of a K×K matrix, two multiply-adds a number each; a root and a quotient for each.

    Reflections and weights are read, the map and the rows that its gradient needs are written.
    """

    def count(group: Group) -> Operations:
        each = step.directions * group.M
        moved = 3 * group.K**2 + group.K
        return Operations(NUMBER * each * moved, each * 2 * group.K**3, each * 2 * group.K)

    return summed(step, count)


def map_gradients(step: Shape) -> Operations:
    """Five products of K×K matrices, about eight operations a number around them, a quotient a weight.

    Reflections, rows, map and its gradient are read, with the weights; two gradients are written.
    """

    def count(group: Group) -> Operations:
        each = step.directions * group.M
        moved = 5 * group.K**2 + 2 * group.K
        tensor = 5 * TF32_PRODUCTS * 2 * group.K**3
        return Operations(
            NUMBER * each * moved, each * 8 * group.K**2, each * group.K, each * tensor
        )

    return summed(step, count)


def queries(step: Shape) -> Operations:
    """Heads through their maps, packed; their distances to their answers and to themselves.

    About twelve operations a number beside the map, which is one product.
    """

    def count(group: Group) -> Operations:
        each = group.M * step.B
        fp32, special = finish(group, backward=False)
        moved = 2 * group.K + FORMS * group.C + QUERY_SIDES * group.geodesic + 2
        return Operations(
            NUMBER * (each * moved + map_numbers(step, group)),
            each * (12 * group.K + 2 * fp32),
            each * (2 * special + 4 * group.geodesic),
            each * TF32_PRODUCTS * 2 * group.K**2,
        )

    return summed(step, count)


def query_gradients(step: Shape) -> Operations:
    """The same again and back: two products more, gradients of heads, answers and maps."""

    def count(group: Group) -> Operations:
        each = group.M * step.B
        fp32, special = finish(group, backward=True)
        moved = 4 * group.K + group.C + QUERY_SCALARS * group.geodesic
        return Operations(
            NUMBER * (each * moved + 2 * map_numbers(step, group) + 2 * step.B),
            each * (30 * group.K + 2 * fp32),
            each * (2 * special + 8 * group.geodesic),
            each * 3 * TF32_PRODUCTS * 2 * group.K**2,
        )

    return summed(step, count)


def candidates(step: Shape) -> Operations:
    """Rows, packed with squares or norms."""

    def count(group: Group) -> Operations:
        each = group.M * step.N
        moved = group.K + FORMS * group.C + CANDIDATE_SIDES * group.geodesic
        return Operations(NUMBER * each * moved, each * group.K, each * 2 * group.geodesic)

    return summed(step, count)


def candidate_gradients(step: Shape) -> Operations:
    def count(group: Group) -> Operations:
        each = group.M * step.N
        moved = 2 * group.K + group.C + CANDIDATE_SCALARS * group.geodesic
        return Operations(NUMBER * each * moved, each * 3 * group.K, each * 2 * group.geodesic)

    return summed(step, count)


def shares(step: Shape) -> Operations:
    """Each map's gradient, read and written."""
    return summed(step, lambda group: Operations(bytes=2 * NUMBER * map_numbers(step, group)))


# The table of scores.


def mask(step: Shape) -> Operations:
    """A byte a pair; what is searched through stays in the cache."""
    return Operations(bytes=step.B * step.N)


def loss(step: Shape) -> Operations:
    """Scores and mask read, gradients written: three exponentials for a pair's weight and its logarithm,
    two more and a quotient for its gradient; about 34 operations around them, eight of a polynomial."""
    pairs = step.B * step.N
    return Operations((2 * NUMBER + 1) * pairs, 34 * pairs, 5 * pairs)


# The optimiser; of rows that make up for missed steps, what those take is not counted.


def gathered_rows(step: Shape) -> Operations:
    """Drawn rows and both moments read, and written beside the table."""
    return Operations(bytes=6 * NUMBER * step.drawn)


def row_squares(step: Shape) -> Operations:
    return Operations(NUMBER * step.drawn, step.drawn)


def updated_rows(step: Shape) -> Operations:
    """As ``adam``, of the rows drawn."""
    return adam(step._replace(dense=step.drawn))


def adam(step: Shape) -> Operations:
    """Parameter, gradient and two moments read; parameter and moments written; about twelve operations,
    a root and a quotient."""
    n = step.dense
    return Operations(7 * NUMBER * n, 12 * n, 2 * n)


def gradient_norm(step: Shape) -> Operations:
    """Every gradient read, squared and added."""
    return Operations(NUMBER * step.dense, step.dense)


COUNTED: dict[str, Callable[[Shape], Operations]] = {
    "forward_kernel": distances,
    "backward_kernel": distance_gradients,
    "orth_kernel": maps,
    "orth_backward_kernel": map_gradients,
    "query_kernel": queries,
    "query_backward_kernel": query_gradients,
    "candidate_kernel": candidates,
    "candidate_backward_kernel": candidate_gradients,
    "shares_kernel": shares,
    "known_kernel": mask,
    "adversarial_kernel": loss,
    "gather_kernel": gathered_rows,
    "square_kernel": row_squares,
    "update_kernel": updated_rows,
    "squares_kernel": gradient_norm,
    "adam_kernel": adam,
}
"""By the name of a kernel; of others only the time is known."""


def named(kernel: str) -> str:
    """The part of a kernel's name to know it by: the function and, of a template, what it applies."""
    text = kernel.removeprefix("void ").replace("(anonymous namespace)::", "")
    name, _, arguments = text.partition("<")
    name = name.partition("(")[0].strip().rpartition("::")[2]
    applied = re.search(r"\w*Functor\w*|\w+_kernel_cuda|cutlass_\w+", arguments)
    return f"{name} {applied[0]}" if applied else name
