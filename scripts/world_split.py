"""Choose the fixed splits of ``world`` so that no held-out fact has its answer lying in train."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator

Fact = tuple[str, str, str]
Row = tuple[str, str, str, str]  # split, head, relation, tail

HELD_OUT = 0.13  # share of the open facts that goes to valid, and again to test
PATTERN_SIZE = 60  # facts held out for each way of recovering them
WITHIN_HEADS = 350  # places whose farther ancestors are spelt out
SUPPORT = 2  # train facts that every entity, and every held-out answer to its relation, keeps

# One to one, or nearly constant: nothing else in the graph tells the answer.
CLOSED = {("has capital", None), ("capital of", None), ("member of", "United Nations")}
SYMMETRIC = ("borders", "near")
INVERSES = (("contains", "located in"), ("capital of", "has capital"))

# What the demonstration asks about is kept out of train whatever its hash.
ASKED = {
    ("Latvia", "uses currency", "Euro"),
    ("Uruguay", "official language", "Spanish"),
    ("Brazil", "borders", "Peru"),
    ("Chad", "located in", "Middle Africa"),
    ("Osaka", "located in", "Japan"),
    ("Ukrainian", "in family", "East Slavic languages"),
    ("Bulgarian", "written in", "Cyrillic script"),
    ("Kraków", "in time zone", "Central European Time"),
}


def order(*words: str) -> bytes:
    """A place in a fixed shuffle that depends on the words alone."""
    return hashlib.sha256("\t".join(("world 1", *words)).encode("utf-8")).digest()


def split(facts: set[Fact]) -> list[Row]:
    """Rows of train, valid, test and the four patterns, sorted."""
    missing = ASKED - facts
    if missing:
        raise SystemExit(f"the demonstration asks about facts that are not there: {missing}")
    parts = _hold_out(facts)
    train = {fact for fact, part in parts.items() if part == "train"}
    for fact, pattern in _one_of_two(train):
        parts[fact] = pattern
    for fact, part in _ancestors(train):
        parts[fact] = part
    return sorted((part, *fact) for fact, part in parts.items())


def _hold_out(facts: set[Fact]) -> dict[Fact, str]:
    """Move pairs of entities, with every fact between the two, into valid and test.

    Mirror, inverse and broader relations always join the same two entities, so a pair that moves
    whole leaves none of them behind. It moves only if its entities, and each answer among the
    answers to its relation, keep ``SUPPORT`` facts in train.
    """
    pairs: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    for fact in sorted(facts):
        pairs[min(fact[0], fact[2]), max(fact[0], fact[2])].append(fact)
    strata: dict[tuple[str, ...], list[tuple[str, str]]] = defaultdict(list)
    for pair, between in pairs.items():
        if not any({(r, None), (r, t)} & CLOSED for _, r, t in between):
            strata[tuple(sorted(r for _, r, _ in between))].append(pair)

    degree = Counter(entity for h, _, t in facts for entity in (h, t))
    answers = Counter((r, t) for _, r, t in facts)
    parts = dict.fromkeys(facts, "train")
    for stratum in sorted(strata):
        members = strata[stratum]
        quota = {"test": round(HELD_OUT * len(members)), "valid": round(HELD_OUT * len(members))}
        asked = {pair for pair in members if ASKED & set(pairs[pair])}
        for pair in sorted(members, key=lambda pair: (pair not in asked, order(*pair))):
            between = pairs[pair]
            part = "test" if quota["test"] >= quota["valid"] or pair in asked else "valid"
            if quota[part] <= 0:
                break
            lost = Counter(entity for h, _, t in between for entity in (h, t))
            unanswered = Counter((r, t) for _, r, t in between if r != "contains")
            if any(degree[entity] - n < SUPPORT for entity, n in lost.items()) or any(
                answers[answer] - n < SUPPORT for answer, n in unanswered.items()
            ):
                if pair in asked:
                    raise SystemExit(f"too few facts stay in train to ask about {pair}")
                continue
            degree -= lost
            answers -= unanswered
            quota[part] -= 1
            for fact in between:
                parts[fact] = part
    return parts


def _one_of_two(train: set[Fact]) -> Iterator[tuple[Fact, str]]:
    """Facts to be recovered from their mirror or their inverse, which stays in train."""
    for relation in SYMMETRIC:
        mirrored = [f for f in train if f[1] == relation and _mirror(f) in train]
        answers = Counter(t for _, _, t in mirrored)
        moved: set[Fact] = set()
        for fact in sorted(mirrored, key=lambda fact: order(*fact)):
            if len(moved) == PATTERN_SIZE // len(SYMMETRIC):
                break
            if _mirror(fact) not in moved and answers[fact[2]] > SUPPORT:
                answers[fact[2]] -= 1
                moved.add(fact)
        yield from ((fact, "symmetry") for fact in moved)
    for relation, inverse in INVERSES:
        inverted = [f for f in train if f[1] == relation and (f[2], inverse, f[0]) in train]
        inverted.sort(key=lambda fact: order(*fact))
        yield from ((fact, "inversion") for fact in inverted[: PATTERN_SIZE // len(INVERSES)])


def _ancestors(train: set[Fact]) -> Iterator[tuple[Fact, str]]:
    """``within``: every ancestor beyond the first, where the whole chain is in train.

    For some places none of these facts is in train: the second step up tests composition, the
    farther ones hierarchy.
    """
    parent = {h: t for h, r, t in train if r == "located in"}
    above = {place: _climb(place, parent) for place in parent}
    complete = sorted(
        (place for place, chain in above.items() if chain[-1] == "World" and len(chain) > 2),
        key=order,
    )
    for position, place in enumerate(complete[:WITHIN_HEADS]):
        for step, ancestor in enumerate(above[place][1:-1]):  # all are in the world
            pattern = "hierarchy" if step else "composition"
            held = position < PATTERN_SIZE
            yield (place, "within", ancestor), (pattern if held else "train")


def _climb(place: str, parent: dict[str, str]) -> list[str]:
    chain = [parent[place]]
    while chain[-1] in parent:
        chain.append(parent[chain[-1]])
    return chain


def _mirror(fact: Fact) -> Fact:
    return fact[2], fact[1], fact[0]
