"""The password of a database is for the database alone."""

from __future__ import annotations

import sys

import pytest

from golde.errors import GoldeError, MissingExtraError
from golde.tuning.database import Database, shown

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://me:hunter2@db.example:5432/kg", "postgresql://me:…@db.example:5432/kg"),
        ("postgresql+psycopg://me:hunter2@db/kg", "postgresql+psycopg://me:…@db/kg"),
        ("postgresql://me:a/hunter2@db/kg", "postgresql://me:…@db/kg"),
        ("postgresql://me:hunter2@b@db/kg", "postgresql://me:…@db/kg"),
        (
            "postgresql://db/kg?user=me&password=hunter2&x=1",
            "postgresql://db/kg?user=me&password=…&x=1",
        ),
        ("mysql://:hunter2@db/kg", "mysql://:…@db/kg"),
        ("postgresql://me@db/kg", "postgresql://me@db/kg"),
        ("postgresql:///kg", "postgresql:///kg"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, expected: str) -> None:
    assert shown(url) == expected


def test_what_is_no_url_is_told_without_the_password() -> None:
    for url in (
        "postgresql://me:hunter2@db:port/kg",
        "://me:hunter2@db",
        "postgresql://me:a@hunter2@db/kg",  # of which a driver would take hunter2@db for the host
        "postgresql://me:a/hunter2@db/kg",
    ):
        with pytest.raises(GoldeError, match="is no URL of a database") as caught:
            Database(url)
        assert SECRET not in str(caught.value)


def test_what_a_driver_says_is_told_without_the_password() -> None:
    database = Database("sqlite://me:hunter%32@db/kg")
    for words in ("no way in with 'hunter2'", "sqlite://me:hunter%32@db", "got hunter%32"):
        assert SECRET not in database.without_secrets(words)
        assert "hunter%32" not in database.without_secrets(words)
    assert SECRET in database.url  # the driver is told


def test_a_missing_driver_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'golde\[postgres\]'"):
        Database("postgresql://me:hunter2@db/kg")


def test_braces_are_no_template() -> None:
    assert Database("sqlite://me:a{b}@db/kg").url.format() == "sqlite://me:a%7Bb%7D@db/kg"
