"""The HTTP server: who takes nothing of an answer does not keep a place from others."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import uvicorn

from golde.service.address import listen
from golde.service.server import _protocol

LARGE = 32 << 20  # more than the system keeps for a connection
SECONDS = 0.3


async def large(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": bytes(LARGE)})


def test_who_reads_nothing_is_cut_off_and_who_reads_slowly_is_not() -> None:
    async def scene() -> None:
        config = uvicorn.Config(large, http=_protocol(SECONDS), lifespan="off", log_level="error")
        server, loop = uvicorn.Server(config), asyncio.get_running_loop()
        with listen("127.0.0.1", 0, None) as listening:
            work = asyncio.create_task(server.serve(sockets=[listening]))
            with socket.socket() as reader, socket.socket() as idler:
                for one in (reader, idler):
                    one.setblocking(False)
                    await loop.sock_connect(one, listening.getsockname())
                    await loop.sock_sendall(one, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                taken = len(await loop.sock_recv(reader, 1 << 20))
                assert len(server.server_state.connections) == 2
                began = loop.time()
                while taken < LARGE:
                    part = len(await loop.sock_recv(reader, 1 << 20))
                    assert part, "it was cut off"
                    taken += part
                    await asyncio.sleep(SECONDS / 10)
                assert loop.time() - began > 2 * SECONDS
                assert len(server.server_state.connections) == 1
            server.should_exit = True
            await work

    asyncio.run(scene())
