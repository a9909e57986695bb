"""The process that answers: an HTTP server around the service, on a socket that was opened for it."""

from __future__ import annotations

import socket
from collections.abc import Callable

from golde.errors import MissingExtraError
from golde.service.app import create_app
from golde.service.settings import Settings
from golde.service.shelf import Open

GRACE_SECONDS = 5
"""For requests under way to end after the service was told to."""


def serve(
    settings: Settings, listening: socket.socket, open_run: Open, ready: Callable[[], None]
) -> None:
    """Answer until told to stop by SIGINT or SIGTERM; ``ready`` is called once runs are open."""
    try:
        import uvicorn
    except ImportError:
        raise MissingExtraError("a service", "serve") from None
    app = create_app(settings.folders, open_run, access=settings.access, limits=settings.limits)

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                ready()

    config = uvicorn.Config(
        app,
        http="h11",  # strict, and there with uvicorn alone
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=settings.limits.connections,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    Server(config).run(sockets=[listening])
