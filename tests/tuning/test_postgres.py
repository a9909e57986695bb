"""One study in a real PostgreSQL, searched by several commands at once, some of them killed."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from processes import environment

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.slow

SECRET = "t0p/s3cret"
QUOTED = "t0p%2Fs3cret"

HASTY = "import golde.tuning.study as s; s.HEARTBEAT = 2; from golde.cli.main import main; main()"
"""Who dies is given up after four seconds instead of a minute."""


def program(name: str) -> str:
    """One of PostgreSQL's programs, which many systems keep out of the path."""
    found = [
        shutil.which(name),
        *sorted(map(str, Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))),
    ]
    if not any(found):
        pytest.skip("no PostgreSQL is installed here")
    return next(place for place in found if place)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a database that wants a password, up to the name of the database."""
    initdb, postgres = program("initdb"), program("postgres")
    as_user: dict[str, Any] = {}
    with TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        place, password = Path(folder, "data"), Path(folder, "password")
        place.mkdir()
        password.write_text(SECRET)
        if os.geteuid() == 0:  # PostgreSQL does not run for root
            user = next(
                (u for u in ("postgres", "nobody") if u in {p[0] for p in pwd.getpwall()}), None
            )
            if user is None:
                pytest.skip("PostgreSQL does not run for root, and there is no other user")
            as_user = {"user": user, "group": pwd.getpwnam(user).pw_gid}
            for path in (Path(folder), place, password):
                shutil.chown(path, user)
        options = ["-A", "scram-sha-256", "-U", "golde", f"--pwfile={password}", "-N"]
        subprocess.run(
            [initdb, "-D", place, *options], check=True, stdout=subprocess.DEVNULL, **as_user
        )
        run = subprocess.Popen(
            [postgres, "-D", place, "-p", str(port), "-h", "127.0.0.1", "-k", folder, "-F"],
            stderr=subprocess.DEVNULL,
            **as_user,
        )
        try:
            yield _ready(f"postgresql://golde:{QUOTED}@127.0.0.1:{port}")
        finally:
            run.terminate()
            run.wait(timeout=60)


def _ready(url: str) -> str:
    for _ in range(300):
        try:
            psycopg.connect(f"{url}/postgres").close()
        except psycopg.OperationalError:
            time.sleep(0.1)
        else:
            return url
    raise AssertionError("PostgreSQL does not start")


@pytest.fixture
def url(server: str, request: pytest.FixtureRequest) -> str:
    name = f"study_{abs(hash(request.node.name))}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{server}/{name}"


def tune(folder: Path, url: str, out: str, *words: object) -> subprocess.Popen[str]:
    """A command that searches from its own folder, as on a machine of its own."""
    (folder / out).mkdir(exist_ok=True)
    steps = (("next", 1), ("second", 2), ("previous", 29))
    rows = [f"e{i}\t{name}\te{(i + step) % 30}\n" for i in range(30) for name, step in steps]
    (folder / out / "ring.tsv").write_text("".join(rows), encoding="utf-8")
    given = ["tune", "ring.tsv", "--out", "best.toml", "--numbers", "16", "--device", "cpu"]
    given += ["--set", "training.steps=300", "--set", "training.patience=100", *map(str, words)]
    return subprocess.Popen(
        [sys.executable, "-c", HASTY, *given],
        cwd=folder / out,
        env=environment(OMP_NUM_THREADS="1", GOLDE_STUDY=url),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], code: int = 0) -> tuple[str, str]:
    stdout, stderr = process.communicate(timeout=400)
    assert process.returncode == code, stderr
    for secret in (SECRET, QUOTED):
        assert secret not in stdout + stderr
    return stdout, stderr


def trials(url: str) -> list[tuple[int, str]]:
    """Number and state of each trial, as the database has them."""
    with psycopg.connect(url) as connection:
        return list(connection.execute("SELECT number, state FROM trials ORDER BY number"))


def running(url: str) -> list[int]:
    """Process ids of those who run a trial."""
    query = (
        "SELECT a.value_json FROM trial_user_attributes a JOIN trials t USING (trial_id) "
        "WHERE a.key = 'worker' AND t.state = 'RUNNING'"
    )
    try:
        with psycopg.connect(url) as connection:
            return [int(json.loads(v).rpartition(":")[2]) for (v,) in connection.execute(query)]
    except psycopg.errors.UndefinedTable:
        return []


def test_commands_that_begin_at_once_share_one_study(url: str, tmp_path: Path) -> None:
    """No trial is lost, none is made twice, and there is not one too many."""
    commands = [tune(tmp_path, url, out, "--trials", 8, "--json") for out in ("one", "two")]
    found = [json.loads(finish(command)[0]) for command in commands]
    rows = trials(url)
    assert [number for number, _ in rows] == list(range(8))
    assert Counter(state for _, state in rows).keys() <= {"COMPLETE", "PRUNED"}
    for one in found:
        assert len(one["trials"]) == 8
        assert one["best"] == found[0]["best"]
    points = [json.dumps(trial["point"], sort_keys=True) for trial in found[0]["trials"]]
    assert len(set(points)) == 8  # also the defaults are tried once
    assert len(set(_workers(url))) == 2
    written = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(secret in text for text in written for secret in (SECRET, QUOTED))
    assert "golde:…@127.0.0.1" in (tmp_path / "one" / "best.toml").read_text()


def _workers(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT value_json FROM trial_user_attributes WHERE key = 'worker'"
        )
        return [value for (value,) in rows]


def test_the_trial_of_a_command_that_is_killed_is_made_by_another(url: str, tmp_path: Path) -> None:
    killed = tune(tmp_path, url, "killed", "--trials", 4)
    for _ in range(1200):
        if running(url):
            break
        assert killed.poll() is None, killed.communicate()[1]
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    stdout, _ = finish(tune(tmp_path, url, "other", "--trials", 4, "--json"))
    found = json.loads(stdout)["trials"]
    assert len(found) == 4
    states = [state for _, state in trials(url)]
    assert states.count("FAIL") == 1
    assert "RUNNING" not in states
    assert "WAITING" not in states


def test_workers_are_told_the_url_but_not_on_their_command_line(url: str, tmp_path: Path) -> None:
    command = tune(tmp_path, url, "one", "--trials", 3, "--workers", 2, "--json")
    seen: list[bytes] = []
    while command.poll() is None:
        for process in running(url):
            try:
                seen.append(Path(f"/proc/{process}/cmdline").read_bytes())
            except OSError:
                continue
        time.sleep(0.1)
    assert len(json.loads(finish(command)[0])["trials"]) == 3
    if sys.platform == "linux":
        assert seen
    assert not any(QUOTED.encode() in words for words in seen)


def test_a_wrong_password_is_told_without_it(url: str, tmp_path: Path) -> None:
    wrong = url.replace(QUOTED, "wr0ng")
    _, stderr = finish(tune(tmp_path, wrong, "one", "--trials", 1), code=2)
    assert "cannot be used as a study" in stderr
    assert "wr0ng" not in stderr
    assert "Traceback" not in stderr


def test_a_database_that_is_away_is_told(url: str, tmp_path: Path) -> None:
    nobody = "postgresql://golde:t0p%2Fs3cret@127.0.0.1:1/none"
    _, stderr = finish(tune(tmp_path, nobody, "one", "--trials", 1), code=2)
    assert "golde:…@127.0.0.1:1/none: cannot be used as a study" in stderr
    assert "Traceback" not in stderr


def test_a_database_that_goes_away_on_the_way_is_told(url: str, tmp_path: Path) -> None:
    command = tune(tmp_path, url, "one", "--trials", 50)
    while not running(url):
        assert command.poll() is None, command.communicate()[1]
        time.sleep(0.05)
    server, _, name = url.rpartition("/")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
        )
    _, stderr = finish(command, code=2)
    assert f"{name}: the study cannot be reached any more" in stderr
