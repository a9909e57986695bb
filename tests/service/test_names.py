"""Names are found as people type them, and slips are counted as a plain table counts them."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from golde.service.names import NameIndex, plainly, slips

NAMES = [
    "Latvia",
    "Latvian",
    "Lithuania",
    "United States",
    "United Kingdom",
    "Côte d’Ivoire",
    "Georgia (US state)",
    "Georgia",
    "C++",
    "+",
    "日本",
    "/m/0abc_12",
    "",
]


@pytest.fixture(scope="module")
def index() -> NameIndex:
    weight = np.arange(len(NAMES))
    weight[NAMES.index("Latvian")] = 100
    return NameIndex(NAMES, weight)


def found(index: NameIndex, asked: str, limit: int = 5) -> list[tuple[str, str]]:
    return [(NAMES[match.id], match.how) for match in index.search(asked, limit)]


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ("latvia", [("Latvia", "exact"), ("Latvian", "start")]),
        ("LATV", [("Latvian", "start"), ("Latvia", "start")]),  # the weightier first
        ("kingd", [("United Kingdom", "word")]),
        ("united s", [("United States", "start")]),
        ("us state", [("Georgia (US state)", "word")]),
        ("cote", [("Côte d’Ivoire", "start")]),
        ("huan", [("Lithuania", "inside")]),
        ("Lithaunia", [("Lithuania", "similar")]),  # two letters swapped
        ("Kingdon", [("United Kingdom", "similar")]),  # in a later word, unfinished
        ("untied staes", [("United States", "similar")]),
        ("日", [("日本", "start")]),
        ("0ABC", [("/m/0abc_12", "word")]),
        ("+", [("+", "exact")]),
        ("xq", []),
    ],
)
def test_names_are_found_as_they_are_typed(
    index: NameIndex, asked: str, wanted: list[tuple[str, str]]
) -> None:
    assert found(index, asked) == wanted


def test_nothing_asked_finds_the_weightiest_and_limits_are_kept(index: NameIndex) -> None:
    assert found(index, " ", 2) == [("Latvian", "start"), ("", "start")]
    assert len(index.search("l", 1)) == 1
    assert index.closest("?!") == []
    assert NameIndex([], np.zeros(0, np.int64)).search("a", 5) == []


def test_one_slip_is_forgiven_among_many_names() -> None:
    """A letter left out, doubled, wrong or swapped, in one of five thousand names that look alike."""
    rng = random.Random(0)
    parts = ["ka", "ro", "mi", "te", "lan", "ber", "gu", "sto", "vi", "na"]
    names = sorted({"".join(rng.choices(parts, k=rng.randint(3, 5))) for _ in range(5000)})
    index = NameIndex(names, np.zeros(len(names), np.int64))
    missed = []
    for number, name in enumerate(rng.sample(names, 200)):
        at = rng.randint(1, len(name) - 2)
        typed = (
            name[:at] + name[at + 1 :],
            name[:at] + name[at] + name[at:],
            name[:at] + "x" + name[at + 1 :],
            name[:at] + name[at + 1] + name[at] + name[at + 2 :],
        )[number % 4]
        if name not in [names[match.id] for match in index.search(typed, 10)]:
            missed.append((typed, name))
    assert len(missed) <= 4, missed  # a slip may make another name, or the beginning of one


def plain_slips(asked: str, name: str) -> int:
    """By the book: a table of every beginning of the one with every stretch of the other."""
    starts = [i for i in range(len(name)) if i == 0 or name[i - 1] == " "]
    return min(
        _edits(asked, name[start:end]) for start in starts for end in range(start, len(name) + 1)
    )


def _edits(a: str, b: str) -> int:
    table = {(i, 0): i for i in range(len(a) + 1)} | {(0, j): j for j in range(len(b) + 1)}
    for i, j in product(range(1, len(a) + 1), range(1, len(b) + 1)):
        table[i, j] = min(
            table[i - 1, j] + 1,
            table[i, j - 1] + 1,
            table[i - 1, j - 1] + (a[i - 1] != b[j - 1]),
        )
        if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
            table[i, j] = min(table[i, j], table[i - 2, j - 2] + 1)
    return table[len(a), len(b)]


def test_slips_are_those_of_a_plain_table() -> None:
    rng = random.Random(1)
    names = ["".join(rng.choices("ab c", k=9)).strip().replace("  ", " ") for _ in range(60)]
    names = [name or "a" for name in names]
    width = max(map(len, names))
    letters = np.array([[ord(c) for c in name.ljust(width, "\n")] for name in names], np.uint32)
    for asked in ("a", "ab", "ba c", "abcab", "ccc a b"):
        assert slips(asked, letters).tolist() == [plain_slips(asked, name) for name in names]


def test_plain_names_keep_what_tells_them_apart() -> None:
    assert plainly("São_Tomé & Príncipe") == "sao tome principe"
    assert plainly("+") == "+"
