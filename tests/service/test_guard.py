"""Who may ask, and what becomes of those who ask for what they should not."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import golde
from golde.errors import GoldeError
from golde.service.address import host_name, listen, url
from golde.service.app import create_app
from golde.service.guard import Access, Guard
from golde.service.limits import Limits
from golde.service.metrics import Metrics
from golde.service.settings import named_folders

TOKEN = "correct-horse-battery"
RING = "/api/v1/runs/ring"
QUERY = {"head": "e3", "relation": "next"}


@pytest.fixture(scope="module")
def guarded(folders: dict[str, Path]) -> Iterator[TestClient]:
    """A service with a token, known by another name too, that takes only short requests."""
    access = Access(TOKEN, frozenset({"graph.example"}))
    app = create_app(
        {"ring": folders["ring"]},
        lambda path: golde.load_run(path, device="cpu"),
        access=access,
        limits=Limits(body_bytes=1000),
    )
    with TestClient(app, base_url="http://graph.example") as client:
        yield client


def test_places_are_told_only_where_nobody_else_can_ask(
    client: TestClient, guarded: TestClient, folders: dict[str, Path]
) -> None:
    here = client.get("/api/v1/runs").json()["runs"]
    assert [one["folder"] for one in here] == [str(folders[one["name"]]) for one in here]
    answer = guarded.get("/api/v1/runs", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.json()["runs"][0]["folder"] is None
    assert str(folders["ring"].parent) not in answer.text
    assert not Access(None, frozenset({"graph.example"})).only_here  # a proxy may stand before it


def problem(answer: Any, status: int) -> dict[str, Any]:
    """What went wrong, in the form that everything that goes wrong has."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    found: dict[str, Any] = answer.json()["error"]
    assert set(found) == {"code", "message", "suggestions"}
    assert len(found["message"]) < 1000
    return found


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer wrong",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
    ],
)
def test_without_the_token_nothing_of_a_run_is_told(guarded: TestClient, header: str) -> None:
    headers = {"authorization": header} if header else {}
    for path in ("/api/v1/runs", "/metrics", "/openapi.json", f"{RING}/entities", "/nothing"):
        answer = guarded.get(path, headers=headers)
        assert problem(answer, 401)["code"] == "token"
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert guarded.get("/health", headers=headers).json() == {"status": "ok"}


def test_with_the_token_all_is_answered(guarded: TestClient) -> None:
    headers = {"authorization": f"bearer {TOKEN}"}
    assert guarded.get("/api/v1/runs", headers=headers).status_code == 200
    assert guarded.get("/health", headers=headers).json()["runs"][0]["name"] == "ring"
    assert b"golde_requests_total" in guarded.get("/metrics", headers=headers).content


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("localhost", True),
        ("LOCALHOST:8000", True),
        ("127.0.0.1:1", True),
        ("[::1]:8000", True),
        ("graph.example", True),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("evil.example@localhost", False),
        ("[::1", False),
        ("", False),
        ("localhost/x", False),
    ],
)
def test_names_that_lead_here_but_mean_another_are_refused(
    guarded: TestClient, host: str, known: bool
) -> None:
    """DNS rebinding: a page from elsewhere makes its own name lead to this machine."""
    answer = guarded.get("/health", headers={"host": host})
    assert answer.status_code == (200 if known else 421)


def test_pages_from_elsewhere_may_not_ask(client: TestClient) -> None:
    for headers in (
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:9999"},
        {"sec-fetch-site": "cross-site"},
    ):
        answer = client.post(f"{RING}/predict", json=QUERY, headers=headers)
        assert problem(answer, 403)["code"] == "other_origin"
    same = client.post(f"{RING}/predict", json=QUERY, headers={"origin": "http://localhost"})
    assert same.status_code == 200
    assert "access-control-allow-origin" not in same.headers


@pytest.mark.parametrize("path", ["/", "/docs", "/docs.css", "/health", "/nothing", "/metrics"])
def test_every_answer_has_the_security_headers(client: TestClient, path: str) -> None:
    headers = client.get(path, follow_redirects=False).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"


def test_large_requests_are_refused_whether_they_say_so_or_not(guarded: TestClient) -> None:
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    large = json.dumps({**QUERY, "head": "x" * 2000}).encode()
    assert problem(guarded.post(f"{RING}/predict", content=large, headers=headers), 413)
    for times in (1, 20):  # by far too large is not even read to its end
        parts = iter([large[:900], large[900:] * times])  # sent in chunks, without a length
        assert problem(guarded.post(f"{RING}/predict", content=parts, headers=headers), 413)
    assert problem(guarded.post(f"{RING}/predict", content=large * 20, headers=headers), 413)


def test_a_request_that_never_ends_and_one_that_fails_inside() -> None:
    """Straight to the guard: a slow body is given up, and what raises is told without its words."""

    async def fails(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("a secret")

    async def status_of(receive: Any) -> tuple[int, bytes]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        guard = Guard(fails, Access(), Limits(body_seconds=0.05), Metrics())
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/x",
            "headers": [(b"host", b"localhost"), (b"content-length", b"9")],
        }
        await guard(scope, receive, send)
        return sent[0]["status"], sent[1]["body"]

    async def never() -> Any:
        await asyncio.sleep(10)

    async def whole() -> Any:
        return {"type": "http.request", "body": b"123456789", "more_body": False}

    assert asyncio.run(status_of(never))[0] == 408
    status, body = asyncio.run(status_of(whole))
    assert status == 500
    assert b"secret" not in body


BODIES = {
    "nothing": b"",
    "no JSON": b"{",
    "a list": b"[]",
    "null": b"null",
    "no number": b'{"head": "e3", "relation": "next", "top": NaN}',
    "half a letter": b'{"head": "\\ud800", "relation": "next"}',
    "no UTF-8": b'{"head": "\xff", "relation": "next"}',
    "nested deeply": b"[" * 100_000,
    "digits": b'{"top": ' + b"9" * 5000 + b"}",
    "no answers": b'{"head": "e3", "relation": "next", "top": 0}',
    "too many answers": b'{"head": "e3", "relation": "next", "top": 1001}',
    "a fraction": b'{"head": "e3", "relation": "next", "top": 1.5}',
    "other types": b'{"head": {"a": 1}, "relation": ["next"]}',
    "an empty name": b'{"head": "", "relation": "next"}',
    "a zero byte": b'{"head": "\\u0000", "relation": "next"}',
    "a long name": b'{"head": "' + b"x" * 20_000 + b'", "relation": "next"}',
    "a path": b'{"head": "../../etc/passwd", "relation": "next"}',
    "an unknown field": b'{"head": "e3", "relation": "next", "tops": 3}',
    "two unknowns": b'{"head": "e3"}',
}


@pytest.mark.parametrize("what", BODIES)
def test_hostile_bodies_are_refused_cleanly(client: TestClient, what: str) -> None:
    headers = {"content-type": "application/json"}
    for path in ("predict", "score", "explain"):
        answer = client.post(f"{RING}/{path}", content=BODIES[what], headers=headers)
        assert 400 <= answer.status_code < 500, (path, answer.text)
        problem(answer, answer.status_code)


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/runs/..%2f..%2fetc%2fpasswd/geometry",
        "/api/v1/runs/%2e%2e/geometry",
        "/api/v1/runs/%00/geometry",
        "/api/v1/runs/%ff/geometry",
        f"{RING}/entities?limit=99999999999999999999",
        f"{RING}/entities?limit=-1",
        f"{RING}/entities?unknown=1",
        f"{RING}/facts",
        f"{RING}/facts?entity=e3&offset=99999999999999999999",
        f"{RING}/facts?entity=nobody",
        f"{RING}/neighbours?entity=e3&top=100000",
        f"{RING}/relation?relation=",
        f"{RING}/points?component=0",
        f"{RING}/points?component=5",
        f"{RING}/points?moved=true",
        f"{RING}/points?which=heads",
        f"{RING}/points?limit=100001",
        f"{RING}/points?format=pickle",
        "/api/v1/runs/transe/geometry",
        "/api/v1/runs/transe/points",
        "/nothing",
    ],
)
def test_hostile_paths_are_refused_cleanly(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert 400 <= answer.status_code < 500, answer.text
    problem(answer, answer.status_code)


def test_messages_name_the_value_the_rule_and_the_fix(client: TestClient) -> None:
    unknown = problem(client.post(f"{RING}/predict", json={**QUERY, "relation": "nxet"}), 404)
    assert unknown["suggestions"] == ["next"]
    assert unknown["message"] == "unknown relation 'nxet'; did you mean 'next'?"
    assert "'ring', 'transe'" in problem(client.get("/api/v1/runs/rnig/geometry"), 404)["message"]
    many = problem(client.post(f"{RING}/predict", json={**QUERY, "top": 5000}), 422)
    assert many["message"] == "top: Input should be less than or equal to 1000"
    full = problem(client.post(f"{RING}/predict", json={**QUERY, "tail": "e4"}), 422)
    assert "leave out exactly one" in full["message"]
    plain = problem(client.post(f"{RING}/predict", content=json.dumps(QUERY)), 415)
    assert "Content-Type: application/json" in plain["message"]
    assert problem(client.delete("/api/v1/runs"), 405)


def test_a_full_queue_and_full_threads_say_when_to_come_back(folders: dict[str, Path]) -> None:
    app = create_app(
        {"ring": folders["ring"]},
        lambda path: golde.load_run(path, device="cpu"),
        limits=Limits(queue=0, quick_jobs=0, jobs=0),
    )
    with TestClient(app, base_url="http://localhost") as full:
        for answer in (
            full.post(f"{RING}/predict", json=QUERY),
            full.get(f"{RING}/entities"),
            full.get(f"{RING}/geometry"),
            full.post(f"{RING}/predict", json={**QUERY, "head": "nobody"}),
        ):
            assert problem(answer, 503)["code"] == "busy"
            assert answer.headers["retry-after"] == "1"
        assert full.get("/health").json()["status"] == "ok"


def test_a_public_address_needs_a_token_that_is_hard_to_guess() -> None:
    for host in ("0.0.0.0", "::"):
        with pytest.raises(GoldeError, match=r"can be reached from other machines.*token"):
            listen(host, 0, None)
    for token in (
        "short",
        TOKEN + "é",
        f"{TOKEN} {TOKEN}",
        TOKEN + "\n",
    ):  # which no header can hold
        with pytest.raises(GoldeError, match="at least 16"):
            listen("127.0.0.1", 0, token)
    with pytest.raises(GoldeError, match="no address of this machine"):
        listen("nowhere.invalid", 0, None)
    with listen("127.0.0.1", 0, None) as taken:
        port = taken.getsockname()[1]
        assert url("127.0.0.1", taken) == f"http://127.0.0.1:{port}"
        with pytest.raises(GoldeError, match=f"port {port} .*choose another --port"):
            listen("127.0.0.1", port, None)
    with listen("0.0.0.0", 0, TOKEN) as public:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", url("0.0.0.0", public))


@pytest.mark.parametrize("package", ["fastapi", "prometheus_client"])
def test_a_missing_extra_is_named(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(GoldeError, match=r"pip install 'golde\[serve\]'"):
        create_app(folders, golde.load_run)


def test_runs_get_names_of_their_own(tmp_path: Path) -> None:
    paths = [tmp_path / "a" / "world", tmp_path / "b" / "world", tmp_path / "c" / "world-2"]
    assert list(named_folders(paths)) == ["world", "world-2", "world-2-2"]
    with pytest.raises(GoldeError, match="the same run"):
        named_folders([tmp_path / "a", tmp_path / "b" / ".." / "a"])


def test_a_link_to_a_run_keeps_its_name_whatever_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "monday").mkdir()
    (tmp_path / "current").symlink_to("monday")
    link = tmp_path / "current"
    assert named_folders([link]) == {"current": link}
    with pytest.raises(GoldeError, match="the same run"):
        named_folders([link, tmp_path / "monday"])
    below = tmp_path / "monday" / "."
    assert list(named_folders([below, tmp_path / "monday" / ".."])) == ["monday", tmp_path.name]


@pytest.mark.parametrize("name", ["https://kg.example.org", "kg.example.org:443", "", "münchen.de"])
def test_a_name_that_no_host_header_holds_is_refused(name: str) -> None:
    assert host_name("KG.example.org") == "kg.example.org"
    with pytest.raises(GoldeError, match="without http:// and port"):
        host_name(name)
