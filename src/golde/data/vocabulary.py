"""Names and their integer ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from heapq import nlargest
from typing import overload

import torch
from torch import Tensor

from golde.errors import GoldeError


class Vocabulary(Sequence[str]):
    """An immutable list of distinct names; a name's id is its position."""

    def __init__(self, names: Iterable[str], kind: str = "name") -> None:
        self.names = tuple(names)
        self.kind = kind
        self._ids = {name: i for i, name in enumerate(self.names)}
        if len(self._ids) < len(self.names):
            twice = next(name for i, name in enumerate(self.names) if self._ids[name] != i)
            raise GoldeError(f"{kind} {twice!r} is listed twice; names must be distinct")

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, id: int) -> str: ...
    @overload
    def __getitem__(self, id: slice) -> tuple[str, ...]: ...
    def __getitem__(self, id: int | slice) -> str | tuple[str, ...]:
        return self.names[id]

    def __contains__(self, name: object) -> bool:
        return name in self._ids

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} {self.kind} names)"

    def id(self, name: str) -> int:
        """The id of a name; an unknown one is an error that names the closest matches."""
        try:
            return self._ids[name]
        except KeyError:
            if not name.strip():
                raise GoldeError(f"the name of the {self.kind} is empty; give one") from None
            near = ", ".join(repr(match) for match in self.closest(name, 3))
            hint = f"did you mean {near}?" if near else self._example()
            raise GoldeError(f"unknown {self.kind} {name!r}; {hint}") from None

    def _example(self) -> str:
        """What to do where no name is like the one asked for."""
        if not self.names:
            return f"there is no {self.kind} at all"
        return f"give a name as the graph has it, such as {self.names[0]!r}"

    def ids(self, names: Iterable[str]) -> Tensor:
        """The ids of several names, as an int64 tensor."""
        return torch.tensor([self.id(name) for name in names], dtype=torch.int64)

    def closest(self, name: str, n: int = 5) -> list[str]:
        """The names most like a given one, best first; few or none where nothing is alike."""
        wanted = name.casefold()
        pieces = _pieces(wanted)

        def shared(other: str) -> float:
            theirs = _pieces(other.casefold())
            return 2 * len(pieces & theirs) / (len(pieces) + len(theirs))

        def alike(other: str) -> float:
            other = other.casefold()
            return SequenceMatcher(None, wanted, other).ratio() + (wanted in other)

        # Comparing letter pairs is cheap enough for every name, comparing spellings is not.
        promising = nlargest(max(50, 2 * n), self.names, key=shared)
        return nlargest(n, (other for other in promising if alike(other) >= 0.6), key=alike)


def _pieces(text: str) -> set[str]:
    """Pairs of neighbouring letters, the ends of the word counted as letters."""
    padded = f" {text} "
    return {padded[i : i + 2] for i in range(len(padded) - 1)}
