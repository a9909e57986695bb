"""``golde serve`` as a process: it starts, answers, comes back when killed, and ends cleanly."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from typer.testing import CliRunner

from golde.cli.main import app

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@contextmanager
def serving(*arguments: object) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address of a service, and the process that keeps it up."""
    command = [sys.executable, "-m", "golde", "serve", *map(str, arguments)]
    process = subprocess.Popen(
        [*command, "--port", "0", "--device", "cpu", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        text = ""
        assert process.stdout is not None
        while not text.endswith("}\n"):
            line = process.stdout.readline()
            assert line, process.communicate()[1]
            text += line
        yield json.loads(text)["url"], process
    finally:
        process.terminate()
        process.wait(20)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def children(process: subprocess.Popen[str]) -> list[int]:
    found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(one) for one in found]


def alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_service_starts_answers_and_ends(folders: dict[str, Path]) -> None:
    with serving(folders["ring"], folders["transe"]) as (address, process):
        answer = httpx2.get(f"{address}/api/v1/runs")
        assert [run["name"] for run in answer.json()["runs"]] == ["ring", "transe"]
        body = {"head": "e1", "relation": "next"}
        answer = httpx2.post(f"{address}/api/v1/runs/ring/predict", json=body)
        assert len(answer.json()["answers"]) == 10
        assert "server" not in answer.headers
        with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))) as odd:
            odd.sendall(b"\x16\x03\x01 no HTTP\r\n\r\n")
            assert odd.recv(100).startswith(b"HTTP/1.1 400")
        with pytest.raises(urllib.error.HTTPError, match="413"):  # it listens once all is sent
            urllib.request.urlopen(f"{address}/api/v1/runs/ring/predict", b" " * 3_000_000)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (0, "")


def test_mistakes_are_told_in_one_line(folders: dict[str, Path], tmp_path: Path) -> None:
    def complaint(*arguments: object) -> str:
        result = CliRunner().invoke(app, ["serve", *map(str, arguments)])
        assert result.exit_code == 2
        assert result.stdout == ""
        return str(result.stderr)

    ring = folders["ring"]
    assert "GOLDE_TOKEN=" in complaint(ring, "--host", "0.0.0.0")
    assert "at least 16" in complaint(ring, "--token", "secret")
    assert "is the same run as" in complaint(ring, ring)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert "choose another --port" in complaint(ring, "--port", port)


@pytest.mark.slow
def test_what_is_no_finished_run_is_told(folders: dict[str, Path], tmp_path: Path) -> None:
    """By the process that was to answer."""
    command = [sys.executable, "-m", "golde", "serve", str(folders["ring"]), str(tmp_path)]
    done = subprocess.run([*command, "--port", "0"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.replace("\n", " ").startswith(f"error: {tmp_path}: no run here")


@pytest.mark.slow
def test_a_killed_process_is_replaced_and_none_outlives_the_service(
    folders: dict[str, Path],
) -> None:
    with serving(folders["ring"]) as (address, process):
        for _ in range(3):
            before = children(process)
            with httpx2.Client() as client:
                assert client.get(f"{address}/health").status_code == 200
            os.kill(max(before), signal.SIGKILL)
            # Who asks meanwhile waits for the next one.
            assert httpx2.get(f"{address}/health", timeout=30).status_code == 200
            assert max(children(process)) != max(before)
        last = children(process)
        process.kill()
        process.wait(10)
        _wait_until(lambda: not any(alive(one) for one in last))


@pytest.mark.slow
def test_requests_under_way_are_answered_or_told_at_the_end(folders: dict[str, Path]) -> None:
    """Many at a time while the service is told to stop: each gets an answer or a clean end."""
    with serving(folders["ring"]) as (address, process), ThreadPoolExecutor(16) as pool:

        def ask(number: int) -> Any:
            body = {"head": f"e{number % 40}", "relation": "next", "tail": "e4"}
            try:
                return httpx2.post(f"{address}/api/v1/runs/ring/explain", json=body, timeout=30)
            except httpx2.TransportError as error:
                return error

        asked = [pool.submit(ask, number) for number in range(200)]
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        found = [one.result() for one in asked]
        process.wait(20)
        statuses = [one.status_code for one in found if isinstance(one, httpx2.Response)]
        others = [one for one in found if not isinstance(one, httpx2.Response)]
    assert process.returncode == 0
    assert set(statuses) <= {200, 503}
    assert 200 in statuses
    assert all(
        isinstance(one, httpx2.ConnectError | httpx2.NetworkError | httpx2.RemoteProtocolError)
        for one in others
    )


@pytest.mark.slow
def test_who_sends_a_letter_now_and_then_is_cut_off(folders: dict[str, Path]) -> None:
    with serving(folders["ring"]) as (address, _):
        port = int(address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as slow:
            slow.settimeout(30)
            began = time.monotonic()
            slow.sendall(b"GET /health HTT")
            assert slow.recv(100) == b""
            assert 8 < time.monotonic() - began < 15


def _wait_until(reached: Any, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.05)
