"""What went wrong with a request, as its answer says it."""

from __future__ import annotations

import json
from collections.abc import Sequence

RETRY_SECONDS = 1


class Problem(Exception):
    """An answer other than the one asked for: a status, a word for programs and a sentence for people."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        suggestions: Sequence[str] = (),
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.suggestions, self.headers = list(suggestions), list(headers)

    def body(self) -> bytes:
        """As JSON; in ASCII, since a name in it may be no proper text."""
        error = {"code": self.code, "message": self.message, "suggestions": self.suggestions}
        return json.dumps({"error": error}).encode("ascii")


def busy(message: str) -> Problem:
    """The service has no room for the request now."""
    return Problem(503, "busy", message, headers=[("Retry-After", str(RETRY_SECONDS))])


def too_slow(seconds: float) -> Problem:
    return busy(
        f"the answer took longer than {seconds:g} seconds; ask for less, or again when it is quiet"
    )


def closing() -> Problem:
    return busy("the service is shutting down; try again when it is back")
