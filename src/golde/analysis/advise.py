"""A signature for a graph, from the shape of its relations.

The facts of a relation are shared out between geometries by what was measured of it:

    hyperbolic  Q = min(Krackhardt, 1 − cyclicity) · (1 − 2δ/diameter) · min(1, −3 · curvature), at least 0
    elliptic    P = 1 − Q if the relation is cyclic or has several answers, else 0
    Euclidean   E = 1 − Q − P

The more a relation is a tree (no way back, thin, branching), the larger is Q. It is cyclic if half of its
facts or more lie on directed cycles; symmetric ones do. It has several answers if a side of it is N: the
weights of an elliptic component can shrink the directions in which the answers differ. Chains, grids and
one-to-one links are left for Euclidean components. Over all facts the shares say how many of the components
of a signature belong to each geometry.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from golde.analysis.paths import LONGEST_PATH
from golde.analysis.structure import DRAWS, SOURCES, TOGETHER, Structure, measure
from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError
from golde.geometry import GEOMETRIES, Signature, Term
from golde.progress import Progress, silent

LEAST_SHARE = 0.1
"""A geometry that fewer of the facts call for has no component."""

BINARY_TREE = -1 / 3
"""Curvature of a tree in which every node has three neighbours; from there on a relation branches fully."""

CYCLIC = 0.5
"""A relation with this share of its facts on directed cycles is cyclic."""

COMPONENT = 8
"""Numbers of a component, or as near to it as divides the budget."""

FEWEST_COMPONENTS = 4
"""Components are smaller, down to 2 numbers, where there would be fewer."""

FACTS_OF = {
    "Q": "those of hierarchies",
    "P": "on directed cycles, or of queries with several answers",
    "E": "one-to-one links, chains and grids",
}
"""What calls for each geometry, in the order in which components are counted out."""


@dataclass(frozen=True)
class Shape:
    """One relation: what was measured, and what follows."""

    structure: Structure
    shares: dict[str, float]
    """Of its facts, by the letter of the geometry that suits them."""

    @property
    def word(self) -> str:
        """What it is most of all."""
        measured = self.structure
        best = max(self.shares, key=self.shares.__getitem__)
        if best == "Q":
            return "hierarchy"
        if best == "E":
            return "one-to-one"
        if measured.symmetry >= CYCLIC:
            return "symmetric"
        return "cyclic" if measured.cyclicity >= CYCLIC else "mesh"


@dataclass(frozen=True)
class Advice:
    """A proposed signature, and why."""

    signature: Signature
    numbers: int
    """The budget; the signature may need a few fewer."""
    shares: dict[str, float]
    """Of all facts, by geometry."""
    whole: Structure
    shapes: list[Shape]
    """In the order of the vocabulary."""
    reasons: list[str]
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {
            "graph": self.whole.name,
            "signature": str(self.signature),
            "numbers": self.signature.numbers,
            "budget": self.numbers,
            "shares": self.shares,
            "reasons": self.reasons,
            "overall": {k: v for k, v in asdict(self.whole).items() if k != "name"},
            "relations": [
                asdict(shape.structure) | {"shape": shape.word, "shares": shape.shares}
                for shape in self.shapes
            ],
            "sampling": {
                "sources": SOURCES,
                "sources_in_one_piece": TOGETHER,
                "draws_per_source": DRAWS,
                "longest_path": LONGEST_PATH,
            },
            "seed": self.seed,
        }


def advise(
    graph: KnowledgeGraph, numbers: int, *, seed: int = 0, progress: Progress = silent
) -> Advice:
    """A signature of at most ``numbers`` numbers an entity, from the training facts of a graph."""
    if numbers < 1:
        raise GoldeError(f"numbers is {numbers}; an entity needs at least 1")
    if not len(graph.train):
        raise GoldeError(f"{graph.name} has no training facts to measure; give it some")
    whole, relations = measure(graph, seed=seed, progress=progress)
    shapes = [Shape(one, fact_shares(one)) for one in relations]
    shares = {
        letter: sum(shape.shares[letter] * shape.structure.facts for shape in shapes) / whole.facts
        for letter in FACTS_OF
    }
    signature = propose(shares, numbers)
    reasons = _reasons(signature, numbers, shares, whole, shapes)
    return Advice(signature, numbers, shares, whole, shapes, reasons, seed)


def fact_shares(one: Structure) -> dict[str, float]:
    """The three equations above. A relation of which nothing could be measured does not branch."""
    directed = min(one.krackhardt or 0.0, 1 - one.cyclicity)
    thin = 1 - (one.delta_relative or 0.0)
    branching = min(1.0, max(0.0, (one.curvature or 0.0) / BINARY_TREE))
    hyperbolic = directed * thin * branching
    repeats = one.cyclicity >= CYCLIC or one.category != "1-1"
    rest = 1 - hyperbolic
    return {"Q": hyperbolic, "P": rest if repeats else 0.0, "E": 0.0 if repeats else rest}


def propose(shares: dict[str, float], numbers: int) -> Signature:
    """Components in proportion to the shares, of the size that fills the budget best.

    How many are hyperbolic depends on Q alone and never falls as it grows; P and E divide the rest.
    """
    size = component_size(numbers)
    count = numbers // size
    hyperbolic = _part(count, shares["Q"])
    flat = shares["P"] + shares["E"]
    small = min(shares["P"], shares["E"]) < LEAST_SHARE  # then the other one has all
    elliptic = round(shares["P"] >= shares["E"]) if small or not flat else shares["P"] / flat
    counts = {"Q": hyperbolic, "P": _part(count - hyperbolic, elliptic)}
    counts["E"] = count - sum(counts.values())
    terms = [
        Term(letter, size + GEOMETRIES[letter].unstored, counts[letter])
        for letter in GEOMETRIES
        if counts.get(letter)
    ]
    return Signature(tuple(terms))


def _part(count: int, share: float) -> int:
    """A share of so many components: none of a small share, all for nearly all, else at least one of each."""
    if share < LEAST_SHARE:
        return 0
    if share > 1 - LEAST_SHARE:
        return count
    return min(max(1, round(count * share)), count - 1) if count > 1 else round(count * share)


def component_size(numbers: int) -> int:
    """Numbers of a component: the divisor of the budget nearest to ``COMPONENT``, not far from it."""
    largest = max(min(2, numbers), numbers // FEWEST_COMPONENTS)
    near = [
        size
        for size in range(COMPONENT // 2, 2 * COMPONENT + 1)
        if numbers % size == 0 and size <= largest
    ]
    return min(near, key=lambda size: abs(size - COMPONENT), default=min(COMPONENT, largest))


def _reasons(
    signature: Signature,
    numbers: int,
    shares: dict[str, float],
    whole: Structure,
    shapes: list[Shape],
) -> list[str]:
    """Why there is so much of each geometry, and what the graph as a whole is like."""
    terms = {term.letter: term for term in signature}
    reasons = []
    for letter, share in sorted(shares.items(), key=lambda item: -item[1]):
        if letter in terms:
            term = terms[letter]
            part = f"{term.numbers * term.count} numbers ({term})"
        elif share < 0.005:
            continue
        else:
            small = share < LEAST_SHARE
            part = f"none, {f'below {LEAST_SHARE:.0%}' if small else 'no room in the budget'}"
        reasons.append(
            f"{GEOMETRIES[letter].word}, {part}: {share:.0%} of the facts are {FACTS_OF[letter]}"
            f"{_examples(letter, shapes)}"
        )
    if unused := numbers - signature.numbers:
        reasons.append(f"left over, {unused} of {numbers} numbers: too few for one more component")
    return [*reasons, _as_a_whole(whole)]


def _examples(letter: str, shapes: list[Shape], most: int = 2) -> str:
    """The largest relations that belong to a geometry, with the measures that say so."""
    clear = [shape.structure for shape in shapes if shape.shares[letter] >= 0.5]
    named = []
    for one in sorted(clear, key=lambda one: -one.facts)[:most]:
        figures = {
            "Q": f"Krackhardt {signed(one.krackhardt or 0)}, curvature {signed(one.curvature or 0)}",
            "P": f"{one.cyclicity:.0%} on cycles, {one.symmetry:.0%} symmetric",
            "E": f"{one.cyclicity:.0%} on cycles, curvature {signed(one.curvature or 0)}",
        }
        named.append(f"{one.name} ({one.facts:,} facts, {one.category}, {figures[letter]})")
    return f", such as {' and '.join(named)}" if named else ""


def _as_a_whole(whole: Structure) -> str:
    figures = [f"{whole.cyclicity:.0%} of the facts on cycles, {whole.symmetry:.0%} symmetric"]
    measured = {
        "Krackhardt": whole.krackhardt,
        "2δ/diameter": whole.delta_relative,
        "curvature": whole.curvature,
    }
    figures += [f"{name} {signed(x)}" for name, x in measured.items() if x is not None]
    return f"all relations together: {', '.join(figures)}"


def signed(value: float) -> str:
    """Two digits, with a minus sign that is one."""
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")
