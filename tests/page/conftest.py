"""A service with two small runs, and a browser to look at its page with."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from looking import Visit, serving, towns

import golde
from tiny import quick


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One that learned the graph, calibrated, and a baseline; both ranked."""
    place = tmp_path_factory.mktemp("runs")
    graph = towns()
    config = quick(steps=400, batch_size=64, negatives=20, validate_every=400)
    ours = golde.train(graph, place / "towns", config, device="cpu")
    ours.calibrate()
    ours.evaluate(baselines=False)
    baseline = quick({"kind": "transe", "signature": None, "numbers": 8})
    golde.train(graph, place / "transe", baseline, device="cpu").evaluate(baselines=False)
    return {"towns": place / "towns", "transe": place / "transe"}


@pytest.fixture(scope="session")
def address(runs: dict[str, Path]) -> Iterator[str]:
    with serving(runs["towns"], runs["transe"]) as (url, _):
        yield url


@pytest.fixture(scope="module")  # Playwright's event loop must not outlast the tests that need it
def browser() -> Iterator[Any]:
    """Chromium: Debian's, or the one that Playwright brings."""
    api = pytest.importorskip("playwright.sync_api", reason="needs pip install 'golde[browser]'")
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    with api.sync_playwright() as playwright:
        if found is None and not Path(playwright.chromium.executable_path).exists():
            pytest.skip("no browser: apt-get install chromium, or playwright install chromium")
        # Nothing but the pages of these tests is opened, and in containers the sandbox does not start.
        launched = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--enable-unsafe-swiftshader"]
        )
        yield launched
        launched.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Visit]:
    """A page on a wide screen; that nothing goes wrong in it is part of every test."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    context.set_default_timeout(15_000)
    visit = Visit(context.new_page())
    yield visit
    context.close()
    assert not visit.troubles
