"""Pictures of the page for the documentation: ``docs/assets/page_*.png``.

    golde serve runs/world &
    python scripts/photograph_page.py http://127.0.0.1:8000

Needs a browser (see the slow suite) and Pillow, which comes with matplotlib.
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

ASSETS = Path(__file__).parent.parent / "docs" / "assets"
COLOURS = 128  # enough for a page, and a third of the bytes


def save(page: Page, name: str) -> None:
    """What is on the screen once nothing loads any more."""
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(1000)
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    small = image.quantize(COLOURS, dither=Image.Dither.NONE)
    small.save(ASSETS / f"page_{name}.png", optimize=True)


def main(address: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1200, "height": 820})
        page.goto(f"{address}/#explore?run=world&entity=Latvia")
        page.get_by_role("button", name="Why Latvia borders").first.click()
        save(page, "entity")
        page.emulate_media(color_scheme="dark")
        page.goto(f"{address}/#space?run=world&entity=Latvia")
        save(page, "space")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1].rstrip("/"))
