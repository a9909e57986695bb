"""Whatever is asked, as described or not, gets an answer that the description foresees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from test_served_process import serving

schemathesis = pytest.importorskip("schemathesis")

from schemathesis.specs.openapi.checks import positive_data_acceptance  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address(folders: dict[str, Path]) -> Iterator[str]:
    with serving(folders["ring"], folders["transe"]) as (address, _):
        yield address


@pytest.fixture(scope="module")
def description(address: str) -> Any:
    return schemathesis.openapi.from_url(f"{address}/openapi.json")


@pytest.mark.parametrize("mode", ["POSITIVE", "NEGATIVE"])
def test_the_service_keeps_to_its_description(description: Any, mode: str) -> None:
    """No error of the server, only answers that are described, and nothing accepted that is not.

    Left out is that all that fits its schema is accepted: that one name of three is missing is told in words.
    """
    failed = []
    for found in description.get_all_operations():
        operation = found.ok()
        try:
            fuzz(operation, schemathesis.GenerationMode[mode])
        except (Exception, BaseExceptionGroup) as error:  # one of each tells more than the first
            failed.append(f"{operation.label}: {error}")
    assert not failed, "\n\n".join(failed)


NAMES = {
    "run": "ring",
    **dict.fromkeys(("head", "tail", "entity"), "e3"),
    **dict.fromkeys(("relation", "group_by"), "next"),
    **dict.fromkeys(("first", "second"), "transe"),
}


def with_names(given: Any) -> None:
    """Names that there are in place of others, else hardly a request would get past them."""
    for name in NAMES.keys() & given if isinstance(given, dict) else ():
        if given[name] is not None:
            given[name] = NAMES[name]


def fuzz(operation: Any, mode: Any) -> None:
    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=60,
        phases=[Phase.generate],  # what fails is small enough, and shrinking it takes minutes
        suppress_health_check=list(HealthCheck),
    )
    def ask(case: Any) -> None:
        with_names(case.path_parameters)
        if mode is schemathesis.GenerationMode.POSITIVE:
            with_names(case.query)
            with_names(case.body)
        case.call_and_validate(excluded_checks=[positive_data_acceptance])

    try:
        ask()
    except Unsatisfiable:  # nothing that it takes can be wrong
        assert not operation.query
        assert not operation.body
