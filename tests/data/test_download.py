from __future__ import annotations

import io
import socket
import tarfile
import time
from http.server import BaseHTTPRequestHandler

import pytest

from golde.data.download import DownloadError, Patience, Source, fetch, retrieve

QUICK = Patience(timeout=0.3, window=0.3, rate=10_000, attempts=3, backoff=0.01)


def test_fetch_follows_a_redirect_and_reports_every_byte(web) -> None:
    def moved(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", "/new")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    body = b"x" * 200_000
    web.answers = {"/old": moved, "/new": web.send(body)}
    seen: list[tuple[int, int]] = []
    assert fetch(web.url("/old"), patience=QUICK, progress=lambda *at: seen.append(at)) == body
    assert seen[-1] == (200_000, 200_000)


def test_a_body_shorter_than_announced_is_tried_again_then_refused(web) -> None:
    web.answers["/cut"] = web.send(b"a\tr\tb\n", announced=1000)
    with pytest.raises(DownloadError, match=r"/cut: cut short, 6 of 1,000 bytes.*GOLDE_DATA"):
        fetch(web.url("/cut"), patience=QUICK)
    assert len(web.asked) == QUICK.attempts


def test_a_chunked_body_without_its_end_is_refused(web) -> None:
    def chunked(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.wfile.write(b"6\r\na\tr\tb\n\r\n")

    web.answers["/cut"] = chunked
    with pytest.raises(DownloadError, match="connection failed"):
        fetch(web.url("/cut"), patience=QUICK)


def test_a_silent_server_is_given_up(web) -> None:
    web.answers["/mute"] = lambda _: web.closing.wait(10)
    with pytest.raises(DownloadError, match=r"/mute: the server was silent for 0\.1 s"):
        fetch(web.url("/mute"), patience=Patience(timeout=0.1, attempts=1))


def test_a_trickle_is_given_up_although_it_never_falls_silent(web) -> None:
    def trickle(handler: BaseHTTPRequestHandler) -> None:
        web.send(b"", announced=10_000)(handler)
        while not web.closing.wait(0.02):
            handler.wfile.write(b"x")

    web.answers["/drip"] = trickle
    start = time.monotonic()
    with pytest.raises(DownloadError, match="too slow"):
        fetch(web.url("/drip"), patience=Patience(window=0.2, rate=1000, attempts=1))
    assert time.monotonic() - start < 2


def test_a_missing_file_is_not_asked_for_twice(web) -> None:
    with pytest.raises(DownloadError, match=r"/gone: there is no such file \(HTTP 404"):
        fetch(web.url("/gone"), patience=QUICK)
    assert web.asked == ["/gone"]


def test_a_passing_server_error_is_waited_out(web) -> None:
    def second_time(handler: BaseHTTPRequestHandler) -> None:
        (web.send(b"fine") if len(web.asked) > 1 else web.refuse(503))(handler)

    web.answers["/busy"] = second_time
    assert fetch(web.url("/busy"), patience=QUICK) == b"fine"
    assert len(web.asked) == 2


def test_no_network_fails_at_once_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(DownloadError, match=r"http://nowhere\.example/a: no network.*--data-dir"):
        fetch("http://nowhere.example/a", patience=Patience(backoff=60))


def test_a_port_nobody_listens_on_is_a_failed_connection(web) -> None:
    url = web.url("/a")
    web.close()
    with pytest.raises(DownloadError, match="connection failed"):
        fetch(url, patience=QUICK)


def archive(**files: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, body in files.items():
            member = tarfile.TarInfo(f"set/{name}.txt")
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
    return out.getvalue()


def test_an_archive_gives_its_members_in_our_column_order(web) -> None:
    body = archive(train=b"a\tb\tr\r\nb\tc\ts\n", valid=b"a\tc\ts\n", test=b"c\ta\tr\n", extra=b"?")
    web.answers["/set.tar.gz"] = web.send(body)
    source = Source(web.url("/set.tar.gz"), member="{split}.txt", columns="htr")
    assert retrieve(source, patience=QUICK) == {
        "train": [b"a\tr\tb", b"b\ts\tc"],
        "valid": [b"a\ts\tc"],
        "test": [b"c\tr\ta"],
    }


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (archive(train=b"a\tr\tb\n", test=b"a\tr\tb\n"), r"does not hold valid\.txt"),
        (archive(train=b"a\tr\tb\n" * 999)[:-20], "not a sound tar archive"),
        (b"<html>we have moved</html>", "not a sound tar archive"),
    ],
)
def test_an_unusable_archive_is_refused(web, body: bytes, problem: str) -> None:
    web.answers["/set.tar.gz"] = web.send(body)
    with pytest.raises(DownloadError, match=problem):
        retrieve(Source(web.url("/set.tar.gz"), member="{split}.txt"), patience=QUICK)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"a\tr\tb\n<html>\n", "train: line 2: not three tab-separated names: '<html>'"),
        (b"a\t\tb\n", "line 1: not three"),
        (b"a\tr\tb\nb\tr\t\xff\n", "line 2: not UTF-8"),
    ],
)
def test_text_that_is_not_facts_is_refused(web, body: bytes, problem: str) -> None:
    web.answers = {f"/{split}": web.send(body) for split in ("train", "valid", "test")}
    with pytest.raises(DownloadError, match=rf"/train: .*{problem}"):
        retrieve(Source(web.url("/{split}")), patience=QUICK)


def test_progress_runs_on_over_the_files(web) -> None:
    web.answers = {f"/{split}": web.send(b"a\tr\tb\n") for split in ("train", "valid", "test")}
    seen: list[tuple[int, int]] = []
    retrieve(Source(web.url("/{split}")), patience=QUICK, progress=lambda *at: seen.append(at))
    assert seen == [(6, 6), (12, 12), (18, 18)]
