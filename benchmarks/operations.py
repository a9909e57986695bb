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
    """``M`` components whose core vectors have ``C`` numbers."""

    M: int
    C: int
    geodesic: bool


class Shape(NamedTuple):
    """``B`` queries, ``N`` candidates and ``parameters`` of the model, all numbers of it together."""

    B: int
    N: int
    parameters: int
    groups: tuple[Group, ...]


def shape(signature: str, B: int, N: int, parameters: int) -> Shape:
    """The shape of a step in this space."""
    groups = []
    for term in Signature.parse(signature):
        geometry = GEOMETRIES[term.letter]
        core = geometry.candidate(torch.zeros(1, term.count, term.numbers))
        groups.append(
            Group(term.count, core.vector.shape[-1], isinstance(geometry.finish, Geodesic))
        )
    return Shape(B, N, parameters, tuple(groups))


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


def vectors(step: Shape, group: Group) -> int:
    """Numbers of the core vectors of both sides."""
    return group.M * (step.B + step.N) * group.C


def sides(step: Shape, group: Group, of_query: int, of_candidate: int) -> int:
    """Numbers of the scalars of both sides."""
    return group.geodesic * group.M * (of_query * step.B + of_candidate * step.N)


def distances(step: Shape) -> Operations:
    """Every query with every candidate: one product a component, then the finish."""
    total = Operations(bytes=NUMBER * step.B * step.N)  # the table
    for group in step.groups:
        pairs = group.M * step.B * step.N
        fp32, special = finish(group, backward=False)
        read = vectors(step, group) + sides(step, group, QUERY_SIDES, CANDIDATE_SIDES)
        tensor = TF32_PRODUCTS * 2 * group.C * pairs
        total += Operations(NUMBER * read, fp32 * pairs, special * pairs, tensor)
    return total


def distance_gradients(step: Shape) -> Operations:
    """The product again and two more, for the gradients of either side; the finish's derivatives."""
    total = Operations(bytes=NUMBER * step.B * step.N)  # the table's gradient
    for group in step.groups:
        pairs = group.M * step.B * step.N
        fp32, special = finish(group, backward=True)
        moved = 2 * vectors(step, group)
        moved += sides(step, group, QUERY_SIDES, CANDIDATE_SIDES)
        moved += sides(step, group, QUERY_SCALARS, CANDIDATE_SCALARS)
        tensor = 3 * TF32_PRODUCTS * 2 * group.C * pairs
        total += Operations(NUMBER * moved, fp32 * pairs, special * pairs, tensor)
    return total


def packing(step: Shape) -> Operations:
    """Core vectors and scalars of both sides, copied once."""
    total = Operations()
    for group in step.groups:
        moved = 2 * vectors(step, group)
        moved += sides(
            step, group, QUERY_SCALARS + QUERY_SIDES, CANDIDATE_SCALARS + CANDIDATE_SIDES
        )
        total += Operations(bytes=NUMBER * moved)
    return total


def own_pairs(step: Shape) -> Operations:
    """Queries with their answers and with themselves, forward and backward: 2B pairs, C products each."""
    total = Operations()
    for group in step.groups:
        pairs = group.M * 2 * step.B
        fp32 = special = 0
        for backward in (False, True):
            pointwise, instructions = finish(group, backward=backward)
            fp32 += group.C + pointwise + 2 * group.C * backward
            special += instructions
        moved = 2 * 2 * group.C + 2 * group.C  # both sides read twice, their gradients written
        moved += 9 * group.geodesic  # three scalars likewise
        total += Operations(NUMBER * moved * pairs, fp32 * pairs, special * pairs)
    return total


def mask(step: Shape) -> Operations:
    """A byte a pair; what is searched through stays in the cache."""
    return Operations(bytes=step.B * step.N)


def loss(step: Shape) -> Operations:
    """Forward the scores and the mask are read, backward as well, and a gradient is written.

    A pair takes two exponentials and a logarithm forward; two exponentials and two quotients backward;
    about fifteen and thirteen plain operations around them.
    """
    pairs = step.B * step.N
    return Operations((3 * NUMBER + 2) * pairs, (15 + 13) * pairs, (3 + 4) * pairs)


def adam(step: Shape) -> Operations:
    """Parameter, gradient and two moments read; parameter and moments written; about twelve operations."""
    n = step.parameters
    return Operations(7 * NUMBER * n, 12 * n, 2 * n)


def gradient_norm(step: Shape) -> Operations:
    """Every gradient read, squared and added."""
    return Operations(NUMBER * step.parameters, step.parameters)


COUNTED: dict[str, Callable[[Shape], Operations]] = {
    "pack_kernel": packing,
    "forward_kernel": distances,
    "backward_kernel": distance_gradients,
    "paired_kernel": own_pairs,
    "known_kernel": mask,
    "adversarial_kernel": loss,
    "FusedAdam": adam,
    "LpNorm": gradient_norm,
}
"""By the name of a kernel, or a part of it for a template; of others only the time is known."""


def named(kernel: str) -> str:
    """The part of a kernel's name to know it by: the function and, of a template, what it applies."""
    for part in COUNTED:
        if kernel == part or ("<" in kernel and part in kernel):
            return part
    text = kernel.removeprefix("void ").replace("(anonymous namespace)::", "")
    name = re.split(r"[<(]", text)[0].strip().rpartition("::")[2]
    applied = re.search(r"\w*Functor\w*|\w+_kernel_cuda|cutlass_\w+", text.partition("<")[2])
    return f"{name} {applied[0]}" if applied else name
