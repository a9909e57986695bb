"""Wording of the harmless things found while reading."""

from __future__ import annotations


def note(where: str, count: int, thing: str, outcome: str = "") -> list[str]:
    """One note, "where: 12 duplicate rows dropped", or none when nothing was found."""
    things = thing if count == 1 else f"{thing}s"
    return [f"{where}: {count} {things} {outcome}".rstrip()] if count else []
