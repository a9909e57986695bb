"""``golde serve``: runs over HTTP."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from golde.cli import options
from golde.cli.output import note, say_json, say_points
from golde.errors import GoldeError

if TYPE_CHECKING:
    import socket
    from multiprocessing.connection import Connection

    from golde.service.settings import Settings

EXAMPLES = """\b
Example: golde serve runs/world
  golde serve runs/golde runs/transe --port 8080
  GOLDE_TOKEN=… golde serve runs/world --host 0.0.0.0
"""


def register(app: typer.Typer) -> None:
    app.command(epilog=EXAMPLES)(serve)


def serve(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN", help="Folders of finished runs, on any graphs.")
    ],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to listen; 0: any.")] = 8000,
    host: Annotated[
        str, typer.Option(help="At which address; others than this machine's need a token.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(
            envvar="GOLDE_TOKEN",
            show_envvar=False,
            help="What every request has to bring along; better by GOLDE_TOKEN, which no list of "
            "processes shows.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A name by which others call it, such as behind a proxy."
        ),
    ] = None,
    device: options.OnDevice = options.Device.auto,
    json: options.Json = False,
) -> None:
    """Answer questions to runs over HTTP, until Ctrl-C.

    Opened in a browser it is a page; /docs says what programs can ask. A run whose files change is
    opened again; should that fail, the old one stays. With --json the one value is printed once the
    service is ready.
    """
    from golde.service.address import host_name, listen, url
    from golde.service.guard import Access
    from golde.service.limits import Limits
    from golde.service.settings import Settings, named_folders
    from golde.service.supervisor import Supervisor

    folders = named_folders(runs)
    listening = listen(host, port, token)
    names = frozenset((host.lower(), *map(host_name, allow_host or ())))
    settings = Settings(folders, device.value, Access(token, names), Limits())

    def ready() -> None:
        address = url(host, listening)
        if json:
            say_json({"url": address, "runs": list(folders), "token": token is not None})
        else:
            say_points(
                [
                    ("runs", ", ".join(folders)),
                    ("address", f"{address}\nCtrl-C ends it"),
                    ("for programs", f"{address}/docs"),
                ]
            )
        sys.stdout.flush()  # somebody may wait for it at the other end of a pipe

    Supervisor(
        answer, settings, listening, ready=ready, warn=lambda text: note(f"note: {text}")
    ).run()


def answer(settings: Settings, listening: socket.socket, tell: Connection) -> None:
    """What the process that answers does: see ``golde.service.supervisor``."""
    import golde
    from golde.service.server import serve as serve_http

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the other, which passes it on
    threading.Thread(target=_end_with_the_other, daemon=True).start()
    try:
        serve_http(
            settings,
            listening,
            lambda path: golde.load_run(path, device=settings.device),
            lambda: tell.send(None),
        )
    except GoldeError as error:
        tell.send(str(error))


def _end_with_the_other() -> None:
    """A process that answers must not outlive the one that keeps it up, however that ended."""
    other = multiprocessing.parent_process()
    if other is not None:
        other.join()
        os.kill(os.getpid(), signal.SIGTERM)
