"""Finding names as they are typed: beginnings, words, pieces, and with slips.

Names are compared without case, accents and punctuation. They lie in one text, one after another, with

* the places where words begin, sorted by what follows: a binary search finds every name, or word of one,
  that begins as asked;
* the names that hold each pair of neighbouring letters: those that share most pairs with what was asked are
  compared with it letter by letter, all at once (see ``slips``).
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

MATCHES = ("exact", "start", "word", "inside", "similar")
"""How a name can match, the best first."""

LONGEST = 64
"""Letters of what is asked, and of what follows the start of a word, that are compared."""
INSIDE = 2000
"""Places looked at where words hold what is asked."""
COMPARED = 512
"""Names that share the most pairs of letters, compared letter by letter."""

_FOUND_BY = 200  # letters of a name; the rest hardly tells it apart
_PAUSE, _SPACE = "\n", " "  # the first stands between names, and never in one
_LETTERS = 0x110000
_APART = re.compile(r"[\W_]+")


class Match(NamedTuple):
    """A name found, by its id, and how it matches."""

    id: int
    how: str


class NameIndex:
    """Names to be found; ``weight`` (n,) puts the more important of equal matches first."""

    def __init__(self, names: Sequence[str], weight: Ints) -> None:
        self.names, self.weight = names, weight
        plain = [plainly(name)[:_FOUND_BY] for name in names]
        self.text = "".join(name + _PAUSE for name in plain)
        self.lengths = np.array([len(name) for name in plain], dtype=np.int64)
        self.starts = np.cumsum(self.lengths + 1) - self.lengths - 1
        self.letters = np.frombuffer(self.text.encode("utf-32-le", "surrogatepass"), np.uint32)
        apart = (self.letters == ord(_PAUSE)) | (self.letters == ord(_SPACE))
        begins = ~apart
        begins[1:] &= apart[:-1]
        words = sorted(np.flatnonzero(begins).tolist(), key=self._follows)
        self.words = np.array(words, dtype=np.int64)
        self._index_pairs()

    def search(self, asked: str, limit: int) -> list[Match]:
        """The names that match best, best first; where nothing is asked, those of most weight.

        Names with slips are looked for only where no name matches otherwise.
        """
        asked = plainly(asked)[:LONGEST].strip()
        if not asked:
            everything = np.arange(len(self.lengths))
            return [Match(i, "start") for i in self._heaviest(everything, limit).tolist()]
        places = self._beginning(asked)
        owners = self._owners(places)
        first = self.starts[owners] == places
        whole = first & (self.lengths[owners] == len(asked))
        found: dict[int, str] = {}
        for how, find in (
            ("exact", lambda: owners[whole]),
            ("start", lambda: owners[first & ~whole]),
            ("word", lambda: np.unique(owners[~first])),
            ("inside", lambda: self._inside(asked)),
        ):
            if len(found) < limit:
                for i in self._heaviest(find(), limit + len(found)).tolist():
                    found.setdefault(i, how)
        if not found:
            found = dict.fromkeys(self._similar(asked)[:limit].tolist(), "similar")
        return [Match(i, how) for i, how in list(found.items())[:limit]]

    def closest(self, asked: str, limit: int = 3) -> list[str]:
        """Names that may have been meant by one that is not there."""
        if not plainly(asked):
            return []
        return [self.names[match.id] for match in self.search(asked, limit)]

    def _index_pairs(self) -> None:
        """The names that hold each pair of neighbouring letters, once each; a name begins with a space."""
        count = max(1, len(self.lengths))
        letters = np.where(self.letters == ord(_PAUSE), ord(_SPACE), self.letters)
        present = np.flatnonzero(np.bincount(letters, minlength=_LETTERS))
        self.alphabet = np.full(_LETTERS, -1)
        self.alphabet[present] = np.arange(len(present))
        pair = self._pairs(np.concatenate(([ord(_SPACE)], letters)))
        owner = np.repeat(np.arange(len(self.lengths)), self.lengths + 1)
        codes = _distinct(pair * count + owner)
        pair, self.holders = codes // count, (codes % count).astype(np.int32)
        self.pairs = _distinct(pair)
        self.bounds = np.searchsorted(pair, np.append(self.pairs, _LETTERS**2))

    def _pairs(self, letters: NDArray[np.uint32]) -> Ints:
        """Each letter with the next, numbered; below 0 where the names lack one of them."""
        number = self.alphabet[letters]
        pair = number[:-1] * (self.alphabet.max() + 1) + number[1:]
        return np.where((number[:-1] < 0) | (number[1:] < 0), -1, pair)

    def _follows(self, place: int) -> str:
        end = self.text.index(_PAUSE, place)
        return self.text[place : min(end, place + LONGEST)]

    def _beginning(self, asked: str) -> Ints:
        """Places of words from which on the text begins as asked."""
        first, last = (
            bisect_left(self.words, text, key=lambda place: self._follows(int(place)))
            for text in (asked, asked + chr(_LETTERS - 1))
        )
        return self.words[first:last]

    def _owners(self, places: Ints) -> Ints:
        return np.searchsorted(self.starts, places, side="right") - 1

    def _inside(self, asked: str) -> Ints:
        places, at = list[int](), self.text.find(asked)
        while at >= 0 and len(places) < INSIDE:
            places.append(at)
            at = self.text.find(asked, at + 1)
        return np.unique(self._owners(np.array(places, dtype=np.int64)))

    def _similar(self, asked: str) -> Ints:
        """Names with a slip for every four letters at most; those with the fewest first."""
        allowed = len(asked) // 4
        ids = self._sharing(asked)
        if not allowed or not len(ids):
            return np.empty(0, np.int64)
        missed = slips(asked, self._letters_of(ids))
        near = missed <= allowed
        ids, missed = ids[near], missed[near]
        apart = np.abs(self.lengths[ids] - len(asked))
        return ids[np.lexsort((ids, -self.weight[ids], apart, missed))]

    def _sharing(self, asked: str) -> Ints:
        """The names that share the most pairs of letters with what is asked, the shorter among equals."""
        letters = np.frombuffer((_SPACE + asked).encode("utf-32-le", "surrogatepass"), np.uint32)
        _, at, _ = np.intersect1d(self.pairs, self._pairs(letters), return_indices=True)
        holders = [self.holders[self.bounds[i] : self.bounds[i + 1]] for i in at.tolist()]
        if not holders:
            return np.empty(0, np.int64)
        shared = np.bincount(np.concatenate(holders), minlength=len(self.lengths))
        worth = shared - self.lengths / (2 * _FOUND_BY)
        best = np.argpartition(-worth, min(COMPARED, len(worth)) - 1)[:COMPARED]
        return best[shared[best] > 0]

    def _letters_of(self, ids: Ints) -> NDArray[np.uint32]:
        """The first letters of names, (n, L), filled up with pauses."""
        offset = np.arange(min(int(self.lengths[ids].max()), LONGEST))
        there = offset < self.lengths[ids][:, None]
        places = np.where(there, self.starts[ids][:, None] + offset, 0)
        return np.where(there, self.letters[places], np.uint32(ord(_PAUSE)))

    def _heaviest(self, ids: Ints, limit: int) -> Ints:
        """Those of most weight, the shorter and then the earlier among equals."""
        if len(ids) > limit:
            weight = self.weight[ids]
            ids = ids[weight >= np.partition(weight, len(ids) - limit)[len(ids) - limit]]
        return ids[np.lexsort((ids, self.lengths[ids], -self.weight[ids]))][:limit]


def _distinct(values: Ints) -> Ints:
    """Sorted, without repetitions: sorting is several times faster than ``np.unique`` on millions."""
    values = np.sort(values)
    return values[np.concatenate(([True], values[1:] != values[:-1]))[: len(values)]]


def plainly(name: str) -> str:
    """Without case and accents, one space for any run of other signs, unless there is nothing else."""
    folded = name.casefold()
    if not folded.isascii():
        apart = unicodedata.normalize("NFKD", folded)
        folded = "".join(letter for letter in apart if not unicodedata.combining(letter))
    return _APART.sub(_SPACE, folded).strip() or " ".join(folded.split())


def slips(asked: str, names: NDArray[np.uint32]) -> Ints:
    """Letters wrong, missing, too many or swapped between ``asked`` and the best stretch of each name, (n,).

    A stretch begins with a word and ends anywhere, so what is asked may be unfinished. It is the table of
    edit distances row by row (Sellers, 1980), neighbours swapped counted once: within a row
    ``D[j] = min_k≤j (a_k + j − k)`` over what the rows above allow, a running minimum of ``a_k − k``.
    """
    column = np.arange(names.shape[1] + 1)

    def along(row: Ints) -> Ints:
        return np.minimum.accumulate(row - column, axis=1) + column

    row = np.full((len(names), len(column)), LONGEST, dtype=np.int64)
    row[:, 0] = 0
    row[:, 1:][(names == ord(_SPACE)) | (names == ord(_PAUSE))] = 0
    row = above = along(row)
    for i, letter in enumerate(asked):
        same = names == ord(letter)
        found = row + 1
        found[:, 1:] = np.minimum(found[:, 1:], row[:, :-1] + ~same)
        if i:
            swapped = same[:, :-1] & (names[:, 1:] == ord(asked[i - 1]))
            found[:, 2:] = np.minimum(found[:, 2:], np.where(swapped, above[:, :-2] + 1, LONGEST))
        above, row = row, along(found)
    fewest: Ints = row.min(axis=1)
    return fewest
