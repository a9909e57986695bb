"""Holding facts out of a graph that comes in one piece."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from golde.data.numbering import Ids
from golde.errors import GoldeError


def split_facts(
    triples: Ids, *, valid: float | int = 0.1, test: float | int = 0.1, seed: int = 0
) -> tuple[dict[str, Ids], list[str]]:
    """Train, valid and test facts, drawn at random, and notes about the draw.

    Sizes are fractions of all facts (floats) or counts (ints). Every entity and relation keeps at
    least one fact in train: of the facts in random order, those with a name that occurs only once
    set in front, the first of each entity and of each relation stays, and the held-out ones are
    taken from the others. Where these are too few, fractions shrink in proportion and a note says
    so; counts are an error, and so are fractions that leave nothing. A fraction that comes to nothing
    has a note as well.
    """
    total = len(triples)
    order = np.random.default_rng(seed).permutation(total)
    order = order[np.argsort(~_irreplaceable(triples)[order], kind="stable")]
    shuffled = triples[order]
    stays = np.zeros(total, dtype=bool)
    stays[np.unique(shuffled[:, [0, 2]], return_index=True)[1] // 2] = True
    stays[np.unique(shuffled[:, 1], return_index=True)[1]] = True
    free = order[~stays]

    wanted, notes = sizes_held_out(total, len(free), valid=valid, test=test)
    cut = np.cumsum(list(wanted.values()))
    held = dict(zip(wanted, np.split(free[: cut[-1]], cut[:-1]), strict=True))
    train = np.ones(total, dtype=bool)
    train[free[: cut[-1]]] = False
    return {
        "train": triples[train],
        **{s: triples[np.sort(rows)] for s, rows in held.items()},
    }, notes


def sizes_held_out(
    total: int, free: int, *, valid: float | int, test: float | int
) -> tuple[dict[str, int], list[str]]:
    """How many of ``total`` facts, ``free`` of which may go, become valid and test, and notes about it."""
    wanted = {"valid": _size("valid", valid, total), "test": _size("test", test, total)}
    if isinstance(valid, float) and isinstance(test, float) and valid + test >= 1:
        raise GoldeError(
            f"valid={valid} and test={test} leave nothing to train on; give fractions that add up to less "
            "than 1"
        )
    notes, asked = [], sum(wanted.values())
    if asked > free:
        found = f"{free} of {total} facts can be held out with every name left in train"
        if any(size and isinstance(size, int) for size in (valid, test)):
            raise GoldeError(f"only {found}; {asked} are asked for (valid={valid}, test={test})")
        wanted["valid"] = wanted["valid"] * free // asked
        wanted["test"] = free - wanted["valid"]
        notes.append(f"only {found}, not the {asked} asked for")
    elif none := [
        split for split, size in (("valid", valid), ("test", test)) if size and not wanted[split]
    ]:
        notes.append(
            f"{total} fact{'s are' if total != 1 else ' is'} too few for the fractions held out, so "
            f"{' and '.join(none)} "
            f"{'is' if len(none) == 1 else 'are'} empty"
        )
    return wanted, notes


def _irreplaceable(triples: Ids) -> NDArray[np.bool_]:
    """Whether a fact is the only one of its head, tail or relation."""
    ends, relation = triples[:, [0, 2]], triples[:, 1]
    once = np.bincount(ends.ravel())[ends] == 1  # (n, 2)
    alone: NDArray[np.bool_] = once.any(axis=1) | (np.bincount(relation)[relation] == 1)
    return alone


def _size(split: str, size: float | int, total: int) -> int:
    fits = 0 <= size < (total if isinstance(size, int) else 1)
    if not fits:
        raise GoldeError(
            f"{split} size is {size}; give a fraction such as 0.1 or a count below {total} facts"
        )
    return size if isinstance(size, int) else round(size * total)
