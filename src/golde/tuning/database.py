"""A database by its URL: which driver it takes, how it is shown, and whose turn it is to ask there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from golde.errors import GoldeError, MissingExtraError

HIDDEN = "…"

_TURN = 0x676F6C6465
"""The number of the lock that stands for the turn; one database holds one search."""

_LOGIN = re.compile(
    r"(?<=://)([^:/@?]*):(.*)@", re.DOTALL
)  # up to the last @, should a password hold one
_SETTING = re.compile(r"(?i)(?<=[?&])(\w*pass\w*|pwd)=([^&]*)")


class Database:
    """Where a study is that commands on several machines share."""

    def __init__(self, url: str) -> None:
        from sqlalchemy import make_url
        from sqlalchemy.exc import ArgumentError

        self.shown = shown(url)
        self._secrets = [
            found[2] for pattern in (_LOGIN, _SETTING) for found in pattern.finditer(url)
        ]
        login = _LOGIN.search(url)
        try:
            if login is not None and not {"@", "/"}.isdisjoint(login[2]):
                raise ValueError  # what follows would be taken for the host, and be told
            parsed = make_url(re.sub("^postgres://", "postgresql://", url))
            kind = parsed.get_backend_name()
        except (ArgumentError, ValueError):
            raise GoldeError(
                f"{self.shown}: is no URL of a database; write postgresql://USER@HOST/NAME, and signs of a "
                "password such as @ and / as %40 and %2F"
            ) from None
        self.is_postgres = kind == "postgresql"
        if self.is_postgres and "+" not in parsed.drivername:
            parsed = parsed.set(drivername="postgresql+psycopg")
            _need_psycopg()
        self._url = parsed

    @property
    def url(self) -> str:
        """With its password, for Optuna, which takes braces for a template of its own."""
        whole = self._url.render_as_string(hide_password=False)
        return whole.replace("{", "{{").replace("}", "}}")

    def without_secrets(self, words: str) -> str:
        """What a driver says, without the password, should it be in it."""
        words = shown(words)
        for secret in filter(None, (*self._secrets, *map(unquote, self._secrets))):
            words = words.replace(secret, HIDDEN)
        return words

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Commands that share the database do this one after the other, where it has locks to wait for."""
        if not self.is_postgres:
            yield
            return
        from sqlalchemy import NullPool, create_engine, text

        engine = create_engine(self._url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        with (
            engine.connect() as connection
        ):  # the lock goes with it, also if this process is killed
            connection.execute(text("SELECT pg_advisory_lock(:turn)"), {"turn": _TURN})
            yield


def shown(url: str) -> str:
    """A URL without its password."""
    return _SETTING.sub(rf"\1={HIDDEN}", _LOGIN.sub(rf"\1:{HIDDEN}@", url))


def _need_psycopg() -> None:
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise MissingExtraError("a study in PostgreSQL", "postgres") from None
