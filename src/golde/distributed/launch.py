"""How processes find each other: started by ``torchrun``, or by ``golde train --devices N``, which starts it.

Each of them is told in its environment who it is, how many there are and where to meet.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from golde.distributed.world import Processes, World
from golde.errors import GoldeError

PATIENCE = timedelta(minutes=10)
"""How long processes wait for one that does not answer before they give up."""

TOLD = "GOLDE_TOLD"
"""Names the folder in which processes tell what went wrong to the one that started them."""

RESTARTS = 3
"""How often the processes of one machine are started again after one was lost."""


class MeetingError(GoldeError):
    """The processes did not find each other, which another try may mend."""


def is_one_of_several() -> bool:
    """Whether this process was started as one of several."""
    return {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys()


def processes() -> int:
    """How many were started together; 0 where this one is alone."""
    return int(os.environ["WORLD_SIZE"]) if is_one_of_several() else 0


def leads() -> bool:
    """Whether this process is the first of several, or alone: the one that talks to people."""
    return not is_one_of_several() or os.environ["RANK"] == "0"


def was_restarted() -> bool:
    """Whether ``run_on`` started it in place of one that was lost.

    Others that start processes again do so after a mistake too, such as a folder that holds a run already.
    """
    return TOLD in os.environ and _tries() > 0


def _tries() -> int:
    """How often the processes were started again."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


@contextmanager
def joined(device: str) -> Iterator[World]:
    """The world of all processes, met for as long as it lasts: on GPUs by NCCL, else by Gloo."""
    on_gpus = device == "cuda" or (device == "auto" and torch.cuda.is_available())
    if on_gpus:
        own, there = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
        if own >= there:
            raise GoldeError(
                f"{own + 1} processes on a machine with {there} GPUs; start one a GPU, or use --device cpu"
            )
        torch.cuda.set_device(own)
    try:
        store, rank, size = next(rendezvous("env://", timeout=PATIENCE))
        # The addresses that lost processes left there must not be taken for those of this try.
        store = PrefixStore(f"try {_tries()}", store)
        backend = "nccl" if on_gpus else "gloo"
        dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=PATIENCE)
    except (RuntimeError, ValueError) as error:  # an address that is taken, or nobody there
        raise MeetingError(
            f"the processes did not find each other at {os.environ['MASTER_ADDR']}:"
            f"{os.environ['MASTER_PORT']}: {error}; check address and port, and that all were started"
        ) from None
    try:
        yield Processes()
    finally:
        dist.destroy_process_group()


def refuse_differences(world: World, facts: Mapping[str, str]) -> None:
    """An error in every process unless all of them know the same under every name."""
    digests = [hashlib.sha256(value.encode()).digest()[:8] for value in facts.values()]
    mine = torch.tensor([int.from_bytes(digest, "little", signed=True) for digest in digests])
    told = world.collect(mine)
    for name, column in zip(facts, told.T, strict=True):
        others = (column != column[0]).nonzero().flatten().tolist()
        if others:
            raise GoldeError(
                f"process {others[0]} has another {name} than process 0; start all of them with the same"
            )


@contextmanager
def telling() -> Iterator[None]:
    """In a process that ``run_on`` started: a mistake is told there, and is no reason to start again."""
    try:
        yield
    except GoldeError as error:
        if TOLD not in os.environ or isinstance(error, MeetingError):
            raise
        Path(os.environ[TOLD], os.environ["RANK"]).write_text(str(error), encoding="utf-8")
        raise SystemExit(0) from None


def run_on(devices: int, command: Sequence[str]) -> int:
    """``golde`` with a command as so many processes of this machine; how it ended.

    Those that are left when one is lost are started again, and go on from the last checkpoint. A mistake that
    they found is raised here, once. Ctrl-C asks them to stop and waits for them.
    """
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    sizes = [f"--nproc-per-node={devices}", f"--max-restarts={RESTARTS}"]
    usual = {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // devices))}
    with TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [*launcher, *sizes, "-m", "golde", *command],
            env=usual | os.environ | {TOLD: folder},
            start_new_session=True,  # a terminal's Ctrl-C is for this process alone
        )
        try:
            code = process.wait()
        except KeyboardInterrupt:
            process.terminate()
            process.wait()
            code = 130
        for told in sorted(Path(folder).iterdir(), key=lambda path: int(path.name)):
            raise GoldeError(told.read_text(encoding="utf-8"))
    return code
