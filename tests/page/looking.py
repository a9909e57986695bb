"""A graph of towns, a service to look at, and how to look at its page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from golde.data.graph import KnowledgeGraph

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


_WAYS = ("--port", "0", "--device", "cpu", "--json")


@contextmanager
def serving(*arguments: object, **environment: str) -> Iterator[tuple[str, Any]]:
    """The address of a service, and its process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "golde", "serve", *map(str, arguments), *_WAYS],
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


def expect(found: Any) -> Any:
    from playwright.sync_api import expect

    return expect(found)


DRAWN = """() => {
  const [back] = document.querySelectorAll(".layer");
  const copy = document.createElement("canvas");
  [copy.width, copy.height] = [back.width, back.height];
  const context = copy.getContext("2d");
  context.drawImage(back, 0, 0);
  const { data } = context.getImageData(0, 0, copy.width, copy.height);
  let count = 0;
  for (let i = 3; i < data.length; i += 4) count += data[i] > 0;
  return count;
}"""


def drawn(page: Any) -> int:
    """Pixels that points cover; read in the frame that draws them, since WebGL keeps none."""
    page.mouse.move(5, 5)
    return int(
        page.evaluate(
            f"""async () => {{
              const count = {DRAWN};
              document.querySelector(".layer[tabindex]").dispatchEvent(
                new KeyboardEvent("keydown", {{ key: "0", bubbles: true }}));
              return new Promise((told) => requestAnimationFrame(() => told(count())));
            }}"""
        )
    )
