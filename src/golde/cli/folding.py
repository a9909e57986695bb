"""Words in a cell of a table that is too narrow for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, ConsoleOptions
    from rich.measure import Measurement
    from rich.text import Text

FURTHER_IN = 2
"""Columns by which a line that goes on is further in than the one it goes on from."""


@dataclass(frozen=True)
class Folded:
    """Text of which every line that is too long goes on below, further in; of Rich's kind."""

    text: str
    within_words: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        for line in self.text.split("\n"):
            yield from _folded(line, console, options.max_width)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        from rich.measure import Measurement
        from rich.text import Text

        whole = Text(self.text).__rich_measure__(console, options)
        return Measurement(1, whole.maximum) if self.within_words else whole


def _folded(line: str, console: Console, width: int) -> Iterator[Text]:
    """The line as far as it goes, then the rest of it, as far in as there is room for."""
    from rich.text import Text

    first, *more = Text(line).wrap(console, width, overflow="fold")
    yield first
    if not more:
        return
    indent = len(line) - len(line.lstrip()) + FURTHER_IN
    indent = min(indent, max(0, width - FURTHER_IN))
    rest = Text(line[len(first.plain) :].lstrip())
    for part in rest.wrap(console, width - indent, overflow="fold"):
        yield Text(" " * indent).append_text(part)
