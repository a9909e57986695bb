"""What people do on the page, in a real browser."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import sys
from itertools import product
from pathlib import Path
from urllib.parse import quote

import pytest
from looking import HOSTILE, Visit, drawn, expect, serving

pytestmark = pytest.mark.slow

VIEWS = {
    "start": "#explore?run=towns",
    "entity": "#explore?run=towns&entity=Ashby",
    "question": "#ask?run=towns&head=Ashby&relation=next",
    "fact": "#ask?run=towns&head=Ashby&relation=next&tail=Ashdale",
    "relation": "#relations?run=towns&relation=borders",
    "disk": "#space?run=towns&component=3",
    "ellipsoid": "#space?run=towns&component=1",
    "compare": "#compare?run=towns",
    "baseline": "#explore?run=transe&entity=Ashby",
}


def test_an_entity_is_found_despite_a_slip_and_explained(visit: Visit, address: str) -> None:
    page = visit.open(address)
    page.get_by_role("combobox", name="Search 41 entities").fill("Ashfrod")
    page.get_by_role("option", name="Ashford").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Ashford")
    assert page.url.endswith("#explore?run=towns&entity=Ashford")
    known = page.get_by_role("region", name="Known")
    expect(known.get_by_role("link", name="Ashdale").first).to_be_visible()
    predicted = page.get_by_role("region", name="Predicted")
    why = predicted.get_by_role("button", name=re.compile("^Why")).first
    expect(predicted.get_by_role("img", name=re.compile("^probability")).first).to_be_visible()
    why.click()
    expect(why).to_have_attribute("aria-expanded", "true")
    reasons = predicted.get_by_role("region", name=re.compile("^Reasons for")).first
    expect(reasons.get_by_text("Rules that imply it")).to_be_visible()
    expect(reasons.get_by_text("Nearest facts of the same relation")).to_be_visible()
    why.press("Escape")
    expect(why).to_have_attribute("aria-expanded", "false")
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("Ashford")
    assert all(url.startswith(address) for url in visit.asked if url != "about:blank")


def test_everything_can_be_done_by_keys(visit: Visit, address: str) -> None:
    page = visit.open(address)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.keyboard.press("/")
    search = page.get_by_role("combobox", name="Search entities and relations")
    expect(search).to_be_focused()
    page.keyboard.type("oak")
    options = page.get_by_role("listbox").get_by_role("option")
    expect(options.first).to_be_visible()
    expect(page.locator("#live")).to_contain_text("found")
    page.keyboard.press("Escape")
    expect(options).to_have_count(0)
    page.keyboard.press("ArrowDown")
    expect(options.first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    chosen = page.locator("[role=option][aria-selected=true]")
    expect(chosen).to_have_count(1)
    name = chosen.locator(".option-name").inner_text()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    first, second = (page.locator(".rows [data-row]").nth(i) for i in (0, 1))
    first.focus()
    page.keyboard.press("ArrowDown")
    expect(second).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(first).to_be_focused()
    wanted = first.inner_text()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(wanted)


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({"head": "Ashby", "relation": "next"}, "tail"),
        ({"relation": "next", "tail": "Ashdale"}, "head"),
        ({"head": "Ashby", "tail": "Ashdale"}, "relation"),
    ],
    ids=["tail", "head", "relation"],
)
def test_any_name_can_be_asked_for(
    visit: Visit, address: str, runs: dict[str, Path], given: dict[str, str], missing: str
) -> None:
    import golde

    page = visit.open(f"{address}/#ask?run=towns")
    for left, (slot, name) in zip((2, 1), given.items(), strict=True):
        field = page.get_by_role("combobox", name=slot.capitalize(), exact=True)
        field.fill(name)
        expect(page.get_by_role("option", name=name).first).to_be_visible()
        field.press("Enter")
        expect(page.locator(".unknown")).to_have_count(left)
        expect(field).to_have_value(name)
        if left == 2:  # on to the next
            expect(page.locator(".unknown .field").first).to_be_focused()
    rows = page.locator(".rows .row-name [data-row]")
    run = golde.load_run(runs["towns"], device="cpu")
    wanted = [getattr(one, missing) for one in run.predict(**given, top=10)]
    expect(rows).to_have_text(wanted)
    assert all(f"{slot}={name}" in page.url for slot, name in given.items())


def test_a_question_is_copied_in_every_form(
    visit: Visit, address: str, runs: dict[str, Path]
) -> None:
    visit.page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
    page = visit.open(f"{address}/{VIEWS['question']}")
    page.get_by_text("Copy this as").click()
    code = page.get_by_role("tabpanel")
    expect(code).to_have_text(
        f"golde predict {runs['towns']} --head Ashby --relation next --top 10 --known mark"
    )
    page.get_by_role("tab", name="Python").click()
    expect(code).to_contain_text('run.predict(head="Ashby", relation="next", top=10, known="mark")')
    page.keyboard.press("ArrowRight")
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_text("Copied", exact=True)).to_be_visible()
    copied = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert copied == {"head": "Ashby", "relation": "next", "top": 10, "known": "mark"}


@pytest.mark.parametrize(
    ("view", "path"),
    [
        ("question", "runs/towns/predict"),
        (f"#ask?run=towns&head={quote(HOSTILE)}&relation=borders", "runs/towns/predict"),
        ("fact", "runs/towns/explain"),
        ("relation", None),
        ("compare", "compare"),
    ],
    ids=["question", "hostile", "fact", "relation", "compare"],
)
def test_what_is_copied_runs_as_it_is(
    visit: Visit, address: str, view: str, path: str | None, tmp_path: Path
) -> None:
    page = visit.open(f"{address}/{VIEWS.get(view, view)}")
    page.get_by_text("Copy this as").click()

    def copied(form: str) -> str:
        page.get_by_role("tab", name=form).click()
        return str(page.get_by_role("tabpanel").text_content())

    def ran(*words: str) -> str:
        return subprocess.run(
            words, check=True, text=True, stdout=subprocess.PIPE, cwd=tmp_path
        ).stdout

    golde = f'golde() {{ {sys.executable} -m golde "$@"; }}\n'
    assert ran("bash", "-c", golde + copied("CLI"))
    ran(sys.executable, "-c", copied("Python"))
    if path is not None:
        answer = page.request.post(f"{address}/api/v1/{path}", data=json.loads(copied("JSON")))
        assert answer.ok
    if shutil.which("curl"):
        assert "error" not in json.loads(ran("bash", "-c", copied("curl")))


def test_a_relation_shows_its_algebra_and_its_shape(visit: Visit, address: str) -> None:
    page = visit.open(f"{address}/#relations?run=towns")
    page.get_by_role("navigation", name="Relations").get_by_role("link", name="borders").click()
    symmetric = page.locator(".verdict", has_text="Symmetric?")
    expect(symmetric).to_contain_text("x borders y ⇒ y borders x")
    for drawing in ("Curvature by component", "Boost by component", "Rotation angles", "Longest"):
        expect(page.get_by_role("img", name=re.compile(f"^{drawing}")).first).to_be_visible()
    page.get_by_role("navigation", name="Relations").get_by_role("link", name="next").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("next")
    expect(page.locator(".verdict", has_text="Inverse of?")).to_contain_text("back")


@pytest.mark.parametrize(("view", "webgl"), [("disk", "1"), ("ellipsoid", "1"), ("disk", "0")])
def test_points_are_drawn_named_and_zoomed(
    visit: Visit, address: str, view: str, webgl: str
) -> None:
    page = visit.open(f"{address}/{VIEWS[view]}&webgl={webgl}&entity=Ashby")
    expect(page.locator(".canvas-box")).to_have_attribute(
        "data-drawn", "webgl" if webgl == "1" else "2d"
    )
    expect(page.locator(".chosen-entity")).to_contain_text("Ashby")
    few = drawn(page)
    assert few > 100
    box = page.locator(".canvas-box").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    named = re.compile(r"/lookup$")
    with page.expect_response(named) as answer:
        for down, across in product(range(-150, 151, 15), range(-200, 201, 10)):
            if answer.is_done():  # there was a point
                break
            page.mouse.move(middle[0] + across, middle[1] + down)
    assert answer.value.json()["entities"][0]["name"]
    page.mouse.move(*middle)
    page.mouse.wheel(0, -600)
    page.get_by_role("button", name="Zoom in").click()
    page.get_by_role("button", name="Reset").click()
    page.get_by_label("Colour", exact=True).select_option("depth")
    expect(page.locator(".ramp")).to_be_visible()
    assert "colour=depth" in page.url


def test_a_hundred_thousand_points_are_drawn(visit: Visit, address: str) -> None:
    count = 100_000
    columns = [("id", "int32"), ("x", "float32"), ("y", "float32"), ("depth", "float32")]
    columns += [("group", "int32"), ("facts", "int32")]
    header = {"component": "Q4 #1", "view": "disk", "geometry": "hyperbolic", "curvature": -1.0}
    header |= {"kept": 1.0, "entities": count, "groups": ["one"], "count": count, "semi_axes": None}
    header["columns"] = [{"name": name, "type": kind} for name, kind in columns]
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 4)
    spiral = [(i / count) ** 0.5 * 0.9 for i in range(count)]
    whole = struct.pack(f"<{count}i", *([0] * count))
    parts = [whole, struct.pack(f"<{count}f", *spiral), struct.pack(f"<{count}f", *spiral[::-1])]
    parts += [struct.pack(f"<{count}f", *spiral), whole, whole]
    body = b"GLD1" + len(text).to_bytes(4, "little") + text + b"".join(parts)
    visit.page.route("**/points?*", lambda route: route.fulfill(body=body))
    page = visit.open(f"{address}/{VIEWS['disk']}")
    expect(page.get_by_text("100,000 entities")).to_be_visible()
    assert drawn(page) > 1000
    box = page.locator(".canvas-box").bounding_box()
    slowest = page.evaluate(
        """async ([x, y]) => {
          const front = document.querySelector(".layer[tabindex]");
          let slowest = 0;
          for (let i = 0; i < 20; i += 1) {
            const begun = performance.now();
            front.dispatchEvent(new PointerEvent("pointermove", { clientX: x + i, clientY: y }));
            slowest = Math.max(slowest, performance.now() - begun);
          }
          return slowest;
        }""",
        [box["x"] + 300, box["y"] + 300],
    )
    assert slowest < 100  # milliseconds to find the point under the pointer, on any machine


def test_two_runs_are_compared(visit: Visit, address: str) -> None:
    page = visit.open(f"{address}/{VIEWS['compare']}")
    table = page.get_by_role("table")
    expect(table.get_by_role("columnheader", name="transe")).to_be_visible()
    expect(table.get_by_role("rowheader", name="MRR")).to_be_visible()
    expect(page.get_by_text("95% interval of the difference")).to_be_visible()
    expect(page.locator(".difference")).to_have_count(3)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_views_fit_narrow_screens_and_both_schemes(
    visit: Visit, address: str, view: str, scheme: str
) -> None:
    visit.page.set_viewport_size({"width": 360, "height": 700})
    visit.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page = visit.open(f"{address}/{VIEWS[view]}")
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (max(map(int, re.findall(r"\d+", ground))) < 60) == (scheme == "dark")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, a, input, select, [role=img]")].filter((one) =>
          !one.textContent.trim() && !one.ariaLabel && !one.labels?.length).map((one) => one.outerHTML)"""
    )
    assert not nameless


def test_the_scheme_can_be_switched_and_stays(visit: Visit, address: str) -> None:
    visit.page.emulate_media(color_scheme="light")
    page = visit.open(address)
    page.get_by_role("button", name="Use dark colours").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="Use light colours").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")


def test_a_name_that_looks_like_markup_stays_a_name(visit: Visit, address: str) -> None:
    page = visit.open(address)
    page.get_by_role("combobox", name="Search 41 entities").fill("script")
    page.get_by_role("option", name="bold").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(HOSTILE)
    expect(page.locator("#broken")).to_have_count(0)


def test_what_is_not_there_is_said(visit: Visit, address: str) -> None:
    page = visit.open(f"{address}/#explore?run=towns&entity=Ashbi")
    expect(page.get_by_role("heading", name="No such entity")).to_be_visible()
    page.get_by_role("link", name="Ashby").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Ashby")
    page.goto(f"{address}/#ask?run=cities")
    expect(page.get_by_text("There is no run “cities” here")).to_be_visible()
    page.goto(f"{address}/#space?run=transe")
    expect(page.get_by_text("No components")).to_be_visible()


def test_a_service_that_has_gone_is_noticed(visit: Visit, runs: dict[str, Path]) -> None:
    with serving(runs["towns"]) as (url, process):
        page = visit.open(url)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        process.terminate()
        process.wait(20)
        page.get_by_role("link", name="Relations").click()
        expect(page.get_by_role("alert").first).to_contain_text("does not answer")


def test_a_token_is_asked_for(visit: Visit, runs: dict[str, Path]) -> None:
    token = "a-token-of-some-length"
    with serving(runs["towns"], GOLDE_TOKEN=token) as (url, _):
        page = visit.open(url)
        page.get_by_label("Token").fill("a-wrong-token")
        page.get_by_role("button", name="Use it").click()
        expect(page.get_by_text("not the token")).to_be_visible()
        page.get_by_label("Token").fill(token)
        page.keyboard.press("Enter")
        expect(page.get_by_role("combobox", name="Search 41 entities")).to_be_visible()
        page.goto(f"{url}/{VIEWS['question']}")
        page.get_by_text("Copy this as").click()
        expect(page.get_by_text("towns stands for the folder of the run")).to_be_visible()
        page.get_by_role("tab", name="curl").click()
        code = page.get_by_role("tabpanel")
        expect(code).to_contain_text('--header "Authorization: Bearer $GOLDE_TOKEN"')
        copied = str(code.text_content())
        if shutil.which("curl"):
            told = subprocess.run(
                ["bash", "-c", copied],
                check=True,
                capture_output=True,
                env={**os.environ, "GOLDE_TOKEN": token},
            )
            assert len(json.loads(told.stdout)["answers"]) == 10
