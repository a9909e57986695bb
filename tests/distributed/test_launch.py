"""Real processes, on loopback."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from golde.distributed.launch import MeetingError, joined, refuse_differences, telling
from golde.distributed.world import World
from golde.errors import GoldeError
from golde.runs import RunFolder
from processes import environment
from threads import together

ENVIRONMENT = environment(OMP_NUM_THREADS="1")
SCRIPT = """
import torch, torch.distributed as dist
from golde.distributed.world import Processes
dist.init_process_group("gloo", init_method="file://{store}", rank={rank}, world_size=2)
world = Processes()
rows = torch.tensor([[1.0 + world.rank, 2.0]])
print(world.rank, world.size, list(world.share(5)), world.add_up(rows.clone()).tolist(),
      world.collect(rows[0]).tolist(), world.sent)
parcels = [torch.full((n, 2), world.rank) for n in ((0, 2), (1, 0))[world.rank]]
print([told.tolist() for told in world.deliver(parcels)])
asked = torch.tensor([7, 8, 9])
print(world.ask(asked % 2, asked, lambda some: 10 * some + world.rank).tolist())
dist.destroy_process_group()
"""


def test_two_processes_add_up_collect_and_deliver(tmp_path: Path) -> None:
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT.format(store=tmp_path / "store", rank=rank)],
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    found = [worker.communicate(timeout=120)[0].strip() for worker in workers]
    told = "[[3.0, 4.0]] [[1.0, 2.0], [2.0, 2.0]] 16"
    answers = "[71, 80, 91]"
    assert found == [
        f"0 2 [0, 1] {told}\n[[], [[1, 1]]]\n{answers}",
        f"1 2 [2, 3, 4] {told}\n[[[0, 0], [0, 0]], []]\n{answers}",
    ]


def test_train_spreads_over_processes_of_this_machine(tmp_path: Path) -> None:
    """What is said is said once, and the run is one like any other."""
    facts = "".join(f"e{i}\tnext\te{(i + 1) % 30}\n" for i in range(30))
    (tmp_path / "ring.tsv").write_text(facts)
    command = ["train", "ring.tsv", "--out", "run", "--devices", "2", "--device", "cpu"]
    settings = ["model.signature=P2x2", "training.steps=20", "training.patience=99"]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "golde",
            *command,
            *(word for s in settings for word in ("--set", s)),
        ],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("trained ") == 1
    about = RunFolder(tmp_path / "run").about()
    assert (about["steps"], about["environment"]["processes"]) == (20, 2)
    assert RunFolder(tmp_path / "run").load_model().entity.shape == (30, 4)


def test_a_mistake_is_told_once_and_nothing_is_tried_again(tmp_path: Path) -> None:
    """Found by the second process, in the last line of its part."""
    (tmp_path / "bad.tsv").write_text("a\tr\tb\n" * 99 + "a\tb\n")
    command = ["train", "bad.tsv", "--out", "run", "--devices=2", "--device=cpu"]
    done = subprocess.run(
        [sys.executable, "-m", "golde", *command],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 2
    assert done.stderr.count("error") == 1
    assert "bad.tsv:100: 2 columns where 3 are expected" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["bad.tsv"]


def test_only_a_mistake_ends_all_tries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that missed each other may meet at the next."""
    monkeypatch.setenv("GOLDE_TOLD", str(tmp_path))
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(SystemExit) as ended, telling():
        raise GoldeError("no such file")
    assert ended.value.code == 0
    assert (tmp_path / "1").read_text() == "no such file"
    with pytest.raises(MeetingError), telling():
        raise MeetingError("nobody there")


def test_a_port_that_is_taken_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address, port = taken.getsockname()
        told = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": address, "MASTER_PORT": str(port)}
        for name, value in told.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(MeetingError, match=rf"port {port} of {address}.* is in use"):  # noqa: SIM117
            with joined("cpu", 5, print):
                pass


def test_processes_that_know_different_things_say_so() -> None:
    def work(world: World) -> None:
        version = "2.13" if world.rank == 2 else "2.11"
        refuse_differences(world, {"graph": "same", "version of PyTorch": version})

    with pytest.raises(GoldeError, match="process 2 has another version of PyTorch than process 0"):
        together(3, work)
