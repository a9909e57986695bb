"""``golde report RUN --html FILE``, opened from disk in a real browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from looking import HOSTILE, Visit, drawn, expect
from typer.testing import CliRunner

from golde.cli.main import app

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def file(runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "towns.html"
    words = ["report", str(runs["towns"]), str(runs["transe"]), "--html", str(path)]
    result = CliRunner().invoke(app, [*words, "--device", "cpu"])
    assert result.exit_code == 0, result.output
    return path.as_uri()


def test_the_file_shows_the_same_without_a_service(visit: Visit, file: str) -> None:
    visit.page.context.set_offline(True)
    page = visit.open(file)
    page.get_by_role("combobox", name="Search 41 entities").fill("Ashfrd")
    page.get_by_role("option", name="Ashford").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Ashford")
    known = page.get_by_role("region", name="Known")
    expect(known.get_by_role("link", name="Ashdale").first).to_be_visible()
    predicted = page.get_by_role("region", name="Predicted")
    expect(predicted.get_by_role("img", name=re.compile("^probability")).first).to_be_visible()
    reasons = predicted.get_by_text("Rules that imply it")
    for button in predicted.get_by_role("button", name=re.compile("^Why")).all():
        button.click()
    expect(reasons.first).to_be_visible()
    expect(predicted.get_by_text("Left out").first).to_be_visible()
    page.goto(f"{file}#relations?run=towns&relation=borders")
    expect(page.locator(".verdict", has_text="Symmetric?")).to_contain_text("x borders y")
    page.goto(f"{file}#ask?run=towns&head=Ashby&relation=borders")
    expect(page.locator(".rows .row").first).to_be_visible()
    page.goto(f"{file}#compare?run=towns")
    expect(page.get_by_role("rowheader", name="MRR")).to_be_visible()
    page.goto(f"{file}#space?run=towns&entity=Ashby")
    expect(page.locator(".chosen-entity")).to_contain_text("Ashby")
    assert drawn(page) > 100
    expect(page.get_by_text("What this file leaves out")).to_be_visible()
    assert {url.partition("#")[0] for url in visit.asked} <= {file, "about:blank", "data:,"}


def test_a_name_that_looks_like_markup_is_harmless(visit: Visit, file: str) -> None:
    page = visit.open(file)
    page.get_by_role("combobox", name="Search 41 entities").fill("script")
    page.get_by_role("option", name="bold").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(HOSTILE)
    expect(page.locator("#broken")).to_have_count(0)
