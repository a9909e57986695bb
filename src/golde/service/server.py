"""The process that answers: an HTTP server around the service, on a socket that was opened for it."""

from __future__ import annotations

import asyncio
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
        http=_protocol(settings.limits.body_seconds),
        ws="none",
        lifespan="on",
        log_level="error",  # what strangers send is no news
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=settings.limits.connections,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    Server(config).run(sockets=[listening])


def _protocol(seconds: float) -> type[asyncio.Protocol]:
    """HTTP/1.1 by h11, which is strict, with limits for the head of a request to arrive and for who reads
    nothing of an answer.

    uvicorn waits for either as long as it takes, and so many who send a letter a minute, or ask and never
    read, would be enough to keep all others out.
    """
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Impatient(H11Protocol):
        timer: asyncio.TimerHandle | None = None
        reading: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self.watch()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self.forget()
            self.forget_reader()

        def pause_writing(self) -> None:
            super().pause_writing()
            self.watch_reader(self.transport.get_write_buffer_size())

        def resume_writing(self) -> None:
            super().resume_writing()
            self.forget_reader()

        def watch_reader(self, left: int) -> None:
            """Break off unless some of the bytes that are left are taken in time."""

            def look() -> None:
                now = self.transport.get_write_buffer_size()
                if now == left:
                    self.transport.abort()
                else:
                    self.watch_reader(now)

            self.reading = self.loop.call_later(seconds, look)

        def forget_reader(self) -> None:
            if self.reading is not None:
                self.reading.cancel()
                self.reading = None

        def watch(self) -> None:
            if self.conn.their_state is not h11.IDLE:  # the head is there
                self.forget()
            elif self.timer is None:
                self.timer = self.loop.call_later(seconds, self.transport.close)

        def forget(self) -> None:
            if self.timer is not None:
                self.timer.cancel()
                self.timer = None

    return Impatient
