"""The page and its file: complete, self-contained, readable, and harmless whatever names a graph has."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from starlette.testclient import TestClient
from typer.testing import CliRunner

import golde
from golde.cli.main import app
from golde.data.graph import KnowledgeGraph
from golde.inference import Run
from golde.service import handout as handouts
from golde.service.assets import START, assets
from golde.service.bundle import bundled, bundled_script, harmless
from golde.service.roles import Roles
from golde.service.shelf import Shelf
from tiny import quick

RING = "/api/v1/runs/ring"
HOSTILE = "</script><b>&\u2028\"'"


def test_the_page_is_served_with_all_it_needs(client: TestClient) -> None:
    start = client.get("/")
    assert start.headers["content-type"].startswith("text/html")
    assert "script-src 'self'" in start.headers["content-security-policy"]
    wanted = set(re.findall(r'(?:href|src)="(/[^"]+)"', start.text))
    seen = {START}
    while wanted:
        path = wanted.pop()
        seen.add(path)
        answer = client.get(path)
        assert answer.status_code == 200, path
        found = re.findall(r'from "\./([\w.]+)"', answer.text) if path.endswith(".js") else []
        wanted |= {f"/page/{name}" for name in found} - seen
    assert seen == set(assets())  # and nothing lies about


def test_the_page_asks_nobody_else_and_has_nothing_inline() -> None:
    for path, (content, _) in assets().items():
        text = content.decode()
        # The name of SVG is no address that is fetched, and 127.0.0.1 stands in a text to copy.
        foreign = set(re.findall(r"https?://[\w.]+", text)) - {
            "http://www.w3.org",
            "http://127.0.0.1",
        }
        assert not foreign, path
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", text), (
            path
        )
    start = assets()[START][0].decode()
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", start)


def test_a_page_from_a_token_service_is_open_but_its_answers_are_not(
    folders: dict[str, Path],
) -> None:
    from golde.service.app import create_app
    from golde.service.guard import Access

    service = create_app(
        {"ring": folders["ring"]},
        lambda path: golde.load_run(path, device="cpu"),
        access=Access(token="sixteen-characters"),
    )
    with TestClient(service, base_url="http://localhost") as client:
        assert client.get("/page/main.js").status_code == 200
        assert client.get(f"{RING}/suggestions", params={"entity": "e3"}).status_code == 401
        assert client.post(f"{RING}/lookup", json={"ids": [0]}).status_code == 401


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1, 2], ids=["light", "switched to dark", "dark"])
def test_text_can_be_read(scheme: int) -> None:
    """Contrast of at least 4.5 (WCAG AA) on every ground."""
    style = assets()["/page/style.css"][0].decode()
    block = re.findall(r"--ground:.*?--focus", style, re.DOTALL)[scheme]
    colours = dict(re.findall(r"--([\w-]+): (#\w+)", block))
    colours = {
        name: c if len(c) == 7 else "#" + "".join(2 * x for x in c[1:])
        for name, c in colours.items()
    }
    for ground in ("ground", "surface", "sunk"):
        for text in ("text", "muted", "accent", "good", "bad"):
            light, dark = sorted((luminance(colours[n]) for n in (ground, text)), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, ground)


def test_roles_fit_entities_of_their_kind() -> None:
    """Towns have a river and a mayor; one lacks its mayor, and people have neither."""
    towns = [f"town {i}" for i in range(6)]
    facts = [(town, "on river", f"river {i % 2}") for i, town in enumerate(towns)]
    facts += [(town, "led by", f"mayor {i}") for i, town in enumerate(towns[:5])]
    graph = KnowledgeGraph.from_triples(facts)

    def roles(name: str) -> set[tuple[str, str]]:
        found = Roles(graph).fitting(graph.entities.id(name))
        return {(graph.relations[role.relation], role.missing) for role in found}

    assert roles("town 5") == {("led by", "tail")}  # it has its one river
    assert roles("town 0") == set()
    assert roles("river 0") == {("on river", "head")}  # rivers have several towns
    assert roles("mayor 0") == set()


def test_suggestions_are_new_facts_of_fitting_roles(client: TestClient, run: Run) -> None:
    answer = client.get(f"{RING}/suggestions", params={"entity": "e3", "roles": 4, "top": 2})
    assert answer.status_code == 200, answer.text
    graph, seen = run.graph, []
    for group in answer.json()["suggested"]:
        for one in group["answers"]:
            fact = torch.tensor(
                [
                    graph.entities.id(one["head"]),
                    graph.relations.id(one["relation"]),
                    graph.entities.id(one["tail"]),
                ]
            )
            assert not graph.known().contains(*fact), one
            assert "e3" in (one["head"], one["tail"])
            seen.append(one)
    wanted = {tuple(one.fact) for one in run.predict("e3", "next", top=2, known="drop")}
    assert {
        (one["head"], one["relation"], one["tail"])
        for one in seen
        if one["relation"] == "next" and one["head"] == "e3"
    } in (set(), wanted)
    unknown = client.get(f"{RING}/suggestions", params={"entity": "e333"})
    assert unknown.status_code == 404


def test_numbers_and_names_lead_to_each_other(client: TestClient, run: Run) -> None:
    found = client.post(f"{RING}/lookup", json={"ids": [7, 2], "names": ["e5"]}).json()["entities"]
    names = run.graph.entities
    assert [(one["id"], one["name"]) for one in found] == [
        (7, names[7]),
        (2, names[2]),
        (names.id("e5"), "e5"),
    ]
    for ids in ([-1], [40], [1 << 70]):
        assert client.post(f"{RING}/lookup", json={"ids": ids}).status_code == 404
    assert client.post(f"{RING}/lookup", json={"names": ["nobody"]}).status_code == 404


def embedded(page: str) -> Any:
    """What a reader of HTML finds in the element that holds the data."""
    (text,) = re.findall(
        r'<script type="application/json" id="embedded">(.*?)</script', page, re.DOTALL
    )
    return json.loads(text)


def test_names_cannot_leave_the_data_of_a_file() -> None:
    data = {"name": HOSTILE, "half": "\ud800"}
    page = bundled({"held": data}, HOSTILE)
    assert embedded(page) == {"held": {"name": HOSTILE, "half": "?"}}
    assert page.count("<b>") == 0
    assert page.count("</script") == 2
    assert "<title>&lt;/script&gt;" in page
    assert "\u2028" not in harmless(data)


def test_one_script_holds_every_module() -> None:
    script = bundled_script()
    assert not re.search(r"^\s*(import|export)\b", script, re.MULTILINE)
    assert "</" not in script.replace("</b>", "")
    for path in assets():
        if path.endswith(".js"):
            name = path.removeprefix("/page/").removesuffix(".js")
            assert script.count(f"const module_{name} = ") == 1
    assert " as " not in "".join(re.findall(r"^const \{.*\} = module_", script, re.MULTILINE))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a graph with a name that looks like markup."""
    steps = [(f"e{i}", "next", f"e{(i + 1) % 20}") for i in range(20)]
    graph = KnowledgeGraph.from_triples(
        [*steps, (HOSTILE, "next", "e3"), ("e3", HOSTILE, "e4")], name="names"
    )
    place = tmp_path_factory.mktemp("hostile") / "run"
    golde.train(graph, place, quick(), device="cpu")
    return place


def test_a_report_holds_what_the_run_answers(hostile: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.html"
    words = ["report", str(hostile), "--html", str(file), "--device", "cpu", "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["bytes"] == file.stat().st_size
    page = file.read_text("utf-8")
    data = embedded(page)
    assert page.count("</script") == 2
    assert not re.search(r'(?:href|src)="(?!data:,)', page.replace('href="#main"', ""))
    run, held = golde.load_run(hostile, device="cpu"), data["held"]["run"]
    assert {name for name, _ in held["entities"]} == set(run.graph.entities)
    facts = {
        (held["entities"][h][0], held["relations"][r][0], held["entities"][t][0])
        for h, r, t, _ in held["facts"]
    }
    assert (HOSTILE, "next", "e3") in facts
    assert len(facts) == 22
    for key, answers in held["answers"].items():
        head, relation, tail = json.loads(key)
        missing = "head" if head is None else "tail"
        wanted = run.predict(head, relation, tail, top=10)
        assert [one[0] for one in answers] == [getattr(one, missing) for one in wanted]
    assert held["left_out"] == told["left_out"]["run"]


def test_a_report_stays_small(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf(folders, lambda path: golde.load_run(path, device="cpu"))
    page, all_of_it = handouts.handout(shelf)
    empty = len(bundled({}, "").encode())
    room = (len(page.encode()) - empty) // 2
    monkeypatch.setattr(handouts, "MOST_BYTES", room)
    smaller, left_out = handouts.handout(shelf)
    assert len(smaller.encode()) - empty <= room + 2000  # and what is said about it
    assert left_out["ring"] != all_of_it["ring"]
    assert embedded(smaller)["held"]["ring"]["left_out"] == left_out["ring"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["report", "RUN"], "golde report RUN --html FILE"),
        (["report", "--html", "FILE.html"], "golde report RUN --html FILE"),
        (["report", "RUN", "--html", "FILE.pdf"], ".html"),
        (["report", "RUN", "--html", "nowhere/FILE.html"], "nowhere"),
        (["report", "missing", "--html", "FILE.html"], "missing"),
    ],
)
def test_mistakes_write_nothing(
    hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, [str(hostile) if word == "RUN" else word for word in words])
    assert result.exit_code == 2
    assert told in " ".join(result.stderr.split())
    assert not list(tmp_path.iterdir())
