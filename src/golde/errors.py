"""Errors a person can act on: each names the value, the rule it breaks and the fix.

The command line turns every ``GoldeError`` into its message and exit code 2; anything else is a bug.
"""

from __future__ import annotations

from pathlib import Path


class GoldeError(ValueError):
    """Something the person running GoldE can put right."""


class DataError(GoldeError):
    """A problem in a data file, shown as ``file:line: problem: 'text' (fix)``."""

    def __init__(
        self,
        path: str | Path,
        problem: str,
        *,
        line: int | None = None,
        text: str | None = None,
        fix: str | None = None,
    ) -> None:
        self.path, self.problem, self.line, self.text, self.fix = (
            Path(path),
            problem,
            line,
            text,
            fix,
        )
        place = f"{path}:{line}" if line is not None else f"{path}"
        shown = "" if text is None else f": {_shorten(text)!r}"
        remedy = "" if fix is None else f" ({fix})"
        super().__init__(f"{place}: {problem}{shown}{remedy}")


class ConfigError(GoldeError):
    """An unknown setting or a value outside its rule."""


class RetiredSettingError(ConfigError):
    """A setting that is no more, with another value than the one that every run has now."""


class RunError(GoldeError):
    """A run folder that is missing, damaged, in use or of another format, or a file from it that
    cannot be written."""


class MissingExtraError(GoldeError):
    """An optional dependency is needed; the message names the extra that brings it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra '{extra}': pip install 'golde[{extra}]'")


def _shorten(text: str, limit: int = 80) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
