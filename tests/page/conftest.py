"""A service with two small runs, and a browser to look at its page with."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import golde
from golde.data.graph import KnowledgeGraph
from tiny import quick

HOSTILE = "</script><b id='broken'>bold</b>"
"""A name that would be markup if a page took it for some."""

LAST = ("by", "dale", "ford", "ham", "ley", "mere", "ton", "wick")
TOWNS = [
    *(f"{first}{last}" for first in ("Ash", "Birch", "Elm", "Fir", "Oak") for last in LAST),
]
"""Forty towns along a round road."""


def towns() -> KnowledgeGraph:
    """``next`` and ``back`` are inverse, ``borders`` is symmetric; some of each are held out."""
    road = [(a, b) for a, b in zip(TOWNS, [*TOWNS[1:], TOWNS[0]], strict=True)]
    ahead = [(a, "next", b) for a, b in road]
    back = [(b, "back", a) for a, b in road]
    both = [fact for a, b in road for fact in ((a, "borders", b), (b, "borders", a))]
    return KnowledgeGraph.from_triples(
        [*ahead[8:], *back[:32], *both[:72], (HOSTILE, "borders", TOWNS[0])],
        valid=[*ahead[:4], *back[32:36], *both[72:76]],
        test=[*ahead[4:8], *back[36:], *both[76:]],
        name="towns",
    )


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


@contextmanager
def serving(*arguments: object, **environment: str) -> Iterator[tuple[str, Any]]:
    """The address of a service, and its process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "golde", "serve", *map(str, arguments)]
        + ["--port", "0", "--device", "cpu", "--json"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )
    assert process.stdout is not None
    try:
        text = ""
        while not text.endswith("}\n"):
            line = process.stdout.readline()
            assert line, "the service ended before it was ready"
            text += line
        yield json.loads(text)["url"], process
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


@pytest.fixture(scope="session")
def address(runs: dict[str, Path]) -> Iterator[str]:
    with serving(runs["towns"], runs["transe"]) as (url, _):
        yield url


@pytest.fixture(scope="session")
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


class Visit:
    """A page, what it asked for, and what went wrong in it."""

    def __init__(self, page: Any) -> None:
        self.page, self.asked, self.troubles = page, list[str](), list[str]()
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("console", self._listen)

    def _listen(self, message: Any) -> None:
        # A refused request is told by the page itself; what remains is a mistake in a script or a policy.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.troubles.append(message.text)

    def open(self, url: str) -> Any:
        """Go there anew: an address that differs in its fragment alone would load nothing."""
        self.page.goto("about:blank")
        self.page.goto(url)
        return self.page


@pytest.fixture
def visit(browser: Any) -> Iterator[Visit]:
    """A page on a wide screen; that nothing goes wrong in it is part of every test."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    context.set_default_timeout(15_000)
    visit = Visit(context.new_page())
    yield visit
    context.close()
    assert not visit.troubles
