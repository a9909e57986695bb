"""How the command line speaks: results on stdout, everything else on stderr.

Rich is imported inside, when something is printed. Markup is off throughout: names of entities may
well hold square brackets.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, cast

from golde.progress import Progress, silent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

SHORT_WORDS = 8
"""Letters that a column of words always has, if it has as many."""

LONGEST = 300
"""Letters of one name, or of one line in a table, that are shown."""

WIDEST = 10_000
"""Letters of a line within which a table is measured: more than any has."""

# What would act on a terminal instead of being shown: control characters but line ends, and those that
# break lines or turn the direction of writing.
_ACTING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_C1 = re.compile("[\x7f-\x9f]")  # those that JSON leaves as they are
_LONG = re.compile(rf"\S{{{LONGEST + 1},}}")


def visible(text: str) -> str:
    """Text that a terminal can be given, whatever names are in it: escapes for what acts, long names cut."""
    text = _ACTING.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
    return _LONG.sub(lambda found: cut(found[0]), text)


def cut(text: str, most: int = LONGEST) -> str:
    """Both ends of a text that is too long."""
    end = most // 4
    return text if len(text) <= most else f"{text[: most - 1 - end]}…{text[-end:]}"


def complain(message: str) -> None:
    """One message about what went wrong."""
    note("error: " + message, style="red")


def note(message: str, style: str = "") -> None:
    """Something worth knowing that is not part of the result."""
    console(stderr=True).print(visible(message), style=style, soft_wrap=True)


def say(message: str | Text = "", style: str = "") -> None:
    """A line of the result; the terminal wraps it."""
    if isinstance(message, str):
        message = visible(message)
    console().print(message, style=style, soft_wrap=True)


def say_json(content: Any) -> None:
    """One JSON value and nothing else."""
    reads_all = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(content, indent=2, ensure_ascii=not reads_all)
    sys.stdout.write(_C1.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")


def say_points(points: Iterable[tuple[str, str]]) -> None:
    """Short headings with what there is to say, side by side."""
    from rich.text import Text

    points = list(points)
    width = max(len(heading) for heading, _ in points)
    for heading, text in points:
        for i, line in enumerate(visible(text).split("\n")):
            start = Text(f"{'' if i else heading:<{width}}  ", style="dim")
            say(start.append(line, style="not dim"))


def say_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    align: str,
    *,
    within_words: bool = False,
) -> None:
    """A table and an empty line; ``align`` has a ``<`` for a column of words, ``>`` for figures.

    Words are folded where the line is too short, but not below ``SHORT_WORDS``, figures never: between words,
    or also ``within_words``. What is folded goes on further in, so that it does not look like a row, and
    lines have no spaces at their end.
    """
    from rich import box
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    from golde.cli.folding import Folded

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, collapse_padding=True, pad_edge=False)
    rows = [[_cell(text) for text in row] for row in rows]
    for place, (heading, side) in enumerate(zip(headings, align, strict=True)):
        longest = max([len(heading), *(len(row[place]) for row in rows)])
        if side == "<":
            table.add_column(heading, overflow="fold", min_width=min(longest, SHORT_WORDS))
        else:
            table.add_column(heading, justify="right", no_wrap=True, min_width=longest)
    for row in rows:
        cells = zip(row, align, strict=True)
        table.add_row(
            *(Folded(cell, within_words) if side == "<" else cell for cell, side in cells)
        )
    screen = console()
    least = Measurement.get(screen, screen.options.update(width=WIDEST), table).minimum
    width = max(screen.width, least)  # what does not fit is wrapped by the terminal, and never lost
    for segments in screen.render_lines(table, screen.options.update(width=width), pad=False):
        line = Text.assemble(*((part.text, part.style or "") for part in segments))
        line.rstrip()
        say(line)
    say()


def _cell(text: str) -> str:
    return "\n".join(cut(line) for line in visible(text).split("\n"))


@contextmanager
def bar(task: str) -> Iterator[Progress]:
    """A progress bar on stderr that goes away when done; nothing where no one is watching."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield silent
        return
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = TextColumn("{task.description}"), BarColumn(None), TimeRemainingColumn()
    with Bar(*columns, console=screen, transient=True, expand=True) as shown:
        line = shown.add_task(task, total=None)
        yield lambda done, total: shown.update(line, completed=done, total=total)


def console(stderr: bool = False) -> Console:
    """Where results go, or everything else."""
    from rich.console import Console

    from golde.cli.aside import Aside

    file = Aside() if stderr else None
    return Console(file=cast("IO[str] | None", file), highlight=False, markup=False, emoji=False)
