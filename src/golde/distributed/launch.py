"""How processes find each other: started by ``torchrun``, or by ``golde train --devices N``, which starts it.

Each of them is told in its environment who it is, how many there are and where to meet.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from golde.distributed.lookout import Lookout
from golde.distributed.world import FailedElsewhereError, Processes, World
from golde.errors import GoldeError
from golde.threads import sharing_threads

_TAKEN = ("EADDRINUSE", "ddress already in use")
"""What torch says where the port is another's."""

TOLD = "GOLDE_TOLD"
"""Names the folder in which processes tell what went wrong to the one that started them."""

MISTAKE = 2
"""Exit code of a process that met a mistake which another tells."""

STOPPED = 130
"""Exit code after a wish to stop."""

_STOP = "stop"

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
def joined(device: str, patience: float, tell: Callable[[str], None]) -> Iterator[World]:
    """The world of all processes, met for as long as it lasts: on GPUs by NCCL, else by Gloo.

    One that keeps the others waiting for ``patience`` seconds is named to ``tell``, and they end.
    """
    on_gpus = device == "cuda" or (device == "auto" and torch.cuda.is_available())
    if on_gpus:
        own, there = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
        if own >= there:
            raise GoldeError(
                f"{own + 1} processes on a machine with {there} GPUs; start one a GPU, or use --device cpu"
            )
        torch.cuda.set_device(own)
    # The addresses that lost processes left there must not be taken for those of this try.
    prefix = f"try {_tries()}"
    # Exchanges give up later than the lookout, which can tell why.
    longer = timedelta(seconds=2 * patience + 60)
    try:
        meeting, rank, size = next(rendezvous("env://", timeout=timedelta(seconds=patience)))
        store = PrefixStore(prefix, meeting)
        backend = "cpu:gloo,cuda:nccl" if on_gpus else "gloo"
        dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=longer)
        place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        watched = PrefixStore(prefix, _client(*place, longer))
    except (RuntimeError, ValueError) as error:
        raise _missed(error) from None
    try:
        world = Processes()
        with Lookout(world, watched, patience, tell):
            yield world
    except FailedElsewhereError:
        raise
    except GoldeError as error:  # found by all of them, or by one and then by those who miss it
        if _told_already(store):
            raise FailedElsewhereError(0) from error
        raise
    finally:
        dist.destroy_process_group()


def _client(address: str, port: int, patience: timedelta) -> Store:
    """A way of its own to where the processes met, for a thread of its own."""
    return dist.TCPStore(  # type: ignore[attr-defined]
        address, port, wait_for_workers=False, timeout=patience
    )


@contextmanager
def joined_if_several(
    device: str, patience: float, tell: Callable[[str], None]
) -> Iterator[World | None]:
    """The same where this process was started as one of several; else there is no world."""
    if not is_one_of_several():
        yield None
        return
    with joined(device, patience, tell) as world:
        yield world


def _missed(error: Exception) -> MeetingError:
    """Why the processes did not meet."""
    address, port = os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]
    if any(sign in str(error) for sign in _TAKEN):
        return MeetingError(
            f"port {port} of {address}, where the processes are to meet, is in use by another program; "
            "choose another: --rdzv-endpoint HOST:PORT for torchrun, else MASTER_PORT, the same for all"
        )
    why = " ".join(str(error).split()).rstrip(".")
    return MeetingError(
        f"the processes did not find each other at {address}:{port}: {why}; check address and port, and "
        "that all were started"
    )


def _told_already(store: PrefixStore) -> bool:
    """Whether another process was the first to tell what went wrong."""
    try:
        return int(store.add("golde told", 1)) > 1
    except RuntimeError:  # the one that keeps the store is gone
        return False


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
    """A mistake is told by one of several processes.

    If ``run_on`` started them it is told there, and is no reason to start again.
    """
    try:
        yield
    except FailedElsewhereError:
        raise SystemExit(0 if TOLD in os.environ else MISTAKE) from None
    except GoldeError as error:
        if TOLD not in os.environ or isinstance(error, MeetingError):
            raise
        Path(os.environ[TOLD], os.environ["RANK"]).write_text(str(error), encoding="utf-8")
        raise SystemExit(0) from None


def run_on(devices: int, command: Sequence[str]) -> int:
    """``golde`` with a command as so many processes of this machine; how it ended.

    Those that are left when one is lost are started again, and go on from the last checkpoint. A mistake that
    they found is raised here, once. Ctrl-C and a polite kill ask them to stop and wait for them; a second one
    does not ask.
    """
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    sizes = [f"--nproc-per-node={devices}", f"--max-restarts={RESTARTS}"]
    with TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [*launcher, *sizes, "-m", "golde", *command],
            env=sharing_threads(devices) | {TOLD: folder},
            start_new_session=True,  # a terminal's Ctrl-C is for this process alone
        )
        with _interruptible():
            try:
                code = process.wait()
            except KeyboardInterrupt:
                code = _stopped(process, Path(folder))
        for told in sorted(Path(folder).glob("[0-9]*"), key=lambda path: int(path.name)):
            raise GoldeError(told.read_text(encoding="utf-8"))
    return code


def _stopped(process: subprocess.Popen[bytes], folder: Path) -> int:
    """Ask the processes to stop, not the launcher, which would tell of it at length; how it ended."""
    (folder / _STOP).touch()
    try:
        process.wait()
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
    return STOPPED


def asked_to_stop() -> bool:
    """In a process that ``run_on`` started: whether it wants an end."""
    return TOLD in os.environ and Path(os.environ[TOLD], _STOP).exists()


def stop_code() -> int:
    """How a process ends that was asked to stop; for the launcher of ``run_on`` that is no failure."""
    return 0 if TOLD in os.environ else STOPPED


def wishes_to_end() -> list[int]:
    """The signals of a polite kill and of a terminal that is closed, the last unless ignored (``nohup``)."""
    hangups = [getattr(signal, name) for name in ("SIGHUP",) if hasattr(signal, name)]  # no Windows
    return [signal.SIGTERM, *(one for one in hangups if signal.getsignal(one) != signal.SIG_IGN)]


@contextmanager
def _interruptible() -> Iterator[None]:
    """A wish to end is like Ctrl-C."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = [(number, signal.signal(number, interrupt)) for number in wishes_to_end()]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)
