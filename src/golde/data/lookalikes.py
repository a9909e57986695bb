"""Names that a reader takes for one another."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable


def look_alikes(names: Iterable[str], thing: str) -> list[str]:
    """A note where names are alike but for spaces at an end or for how their accents are written."""
    every = dict.fromkeys(names)
    met: dict[str, str] = {}
    pairs = [
        (name, other)
        for name in every
        if (shape := _shape(name)) != name and (other := _other(name, shape, every, met))
    ]
    if not pairs:
        return []
    what = "one is" if len(pairs) == 1 else f"{len(pairs):,} are"
    name, other = pairs[0]
    return [
        f"of the names of {thing}, {what} another's but for spaces at an end or how accents are written, "
        f"such as {name!a} and {other!a}; each stays by itself"
    ]


def _other(name: str, shape: str, every: Collection[str], met: dict[str, str]) -> str | None:
    """The name that this one looks like: that of its shape, or another met before."""
    return (
        shape
        if shape in every
        else (first if (first := met.setdefault(shape, name)) != name else None)
    )


def _shape(name: str) -> str:
    return (name if name.isascii() else unicodedata.normalize("NFC", name)).strip()
