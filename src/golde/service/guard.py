"""What stands before every request: who asks, from where, how much, and what goes with every answer."""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from golde.service.assets import assets
from golde.service.limits import Limits
from golde.service.metrics import Metrics
from golde.service.problems import Problem, closing

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN_PATHS = frozenset({"/", "/docs", "/docs.css", "/health", *assets()})
"""What holds nothing of the runs, and is shown without the token."""

FORGOTTEN = 16
"""How many times the largest body is read before a client that sends more is cut off."""

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

SECURITY_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        b"font-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'; "
        b"form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
"""A page of this service loads nothing from elsewhere, and is shown in no frame."""

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

_HOST = re.compile(r"(?:(?P<name>[a-z0-9._-]+)|\[(?P<address>[0-9a-f:.]+)\])(?::\d{1,5})?")
_LOG = logging.getLogger("golde.service")


@dataclass(frozen=True)
class Access:
    """Who may ask."""

    token: str | None = None
    hosts: frozenset[str] = frozenset()
    """Names by which the service may be called, beside localhost and addresses."""

    def allows_host(self, header: str) -> bool:
        """Whether a Host header is one a browser sends that means this service.

        A page from elsewhere whose name was made to lead here (DNS rebinding) sends its own name.
        """
        found = _HOST.fullmatch(header.lower())
        if found is None:
            return False
        name = found["name"] or found["address"]
        if name == "localhost" or name in self.hosts:
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True

    @property
    def only_here(self) -> bool:
        """Whether those who may ask are on this machine, so that they may know places on it."""
        return self.token is None and self.hosts <= LOOPBACK

    def allows_token(self, header: bytes) -> bool:
        """Whether an Authorization header holds the token; compared in constant time."""
        if self.token is None:
            return True
        scheme, _, given = header.partition(b" ")
        right = hmac.compare_digest(given.strip(), self.token.encode())
        return right and scheme.lower() == b"bearer"


class Guard:
    """An ASGI application around another.

    It refuses what may not ask or asks for too much, reads the request in full, adds headers to every answer,
    and turns whatever goes wrong inside into a clean answer.
    """

    def __init__(self, app: App, access: Access, limits: Limits, metrics: Metrics) -> None:
        self.app, self.access, self.limits, self.metrics = app, access, limits, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1003})
            else:
                await self.app(scope, receive, send)
            return
        begun, status = time.perf_counter(), 0

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = list(message.get("headers", ()))
                given = {name.lower() for name, _ in headers}
                headers += [one for one in SECURITY_HEADERS if one[0] not in given]
                message = {**message, "headers": headers}
            await send(message)

        try:
            await self._answer(scope, receive, send_guarded)
        except asyncio.CancelledError:  # the server gives up on what is still under way
            if not status:
                await respond(send_guarded, closing())
        except Problem as problem:
            if not status:
                await respond(send_guarded, problem)
        except Exception:
            _LOG.exception("a request failed: %s %r", scope["method"], scope["path"])
            if status:
                raise  # the answer has begun: the connection must break off
            unknown = Problem(500, "internal", "something went wrong here; the log says what")
            await respond(send_guarded, unknown)
        finally:
            method = scope["method"] if scope["method"] in METHODS else "other"
            path = getattr(scope.get("route"), "path", "other")
            self.metrics.answered(method, path, status, time.perf_counter() - begun)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        self._refuse_strangers(scope["path"], headers)
        body = await self._read(headers, receive)
        if body is None:  # the client has gone
            return
        given = False

        async def receive_body() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        scope["golde.trusted"] = self.access.allows_token(headers.get(b"authorization", b""))
        await self.app(scope, receive_body, send)

    def _refuse_strangers(self, path: str, headers: dict[bytes, bytes]) -> None:
        host = headers.get(b"host", b"").decode("latin-1")
        if not self.access.allows_host(host):
            raise Problem(
                421,
                "unknown_host",
                f"this service is not known as {host[:100]!r}; call it by localhost or its address, or "
                "start it with --allow-host",
            )
        origin = headers.get(b"origin")
        if origin is not None and urlsplit_host(origin) != host.lower():
            raise Problem(403, "other_origin", "pages from elsewhere may not ask this service")
        if path in OPEN_PATHS:
            return
        if headers.get(b"sec-fetch-site") == b"cross-site":
            raise Problem(403, "other_origin", "pages from elsewhere may not ask this service")
        if not self.access.allows_token(headers.get(b"authorization", b"")):
            raise Problem(
                401,
                "token",
                "give the token of this service as 'Authorization: Bearer TOKEN'",
                headers=[("WWW-Authenticate", 'Bearer realm="golde"')],
            )

    async def _read(self, headers: dict[bytes, bytes], receive: Receive) -> bytes | None:
        """The body of a request, or None if the client left before its end.

        What is too large, if not by far, is let in and forgotten: many clients listen only once all is sent.
        """
        most = self.limits.body_bytes
        far_too_large = FORGOTTEN * most
        declared = headers.get(b"content-length", b"0")
        if declared.isdigit() and (len(declared) > 18 or int(declared) > far_too_large):
            raise _too_large(most)
        parts, size, more = [], 0, True
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    part = message.get("body", b"")
                    size += len(part)
                    if size > far_too_large:
                        raise _too_large(most)
                    if size <= most:
                        parts.append(part)
                    more = message.get("more_body", False)
        except TimeoutError:
            raise Problem(
                408,
                "slow_request",
                "the request did not arrive in time; send it again",
                headers=_LAST,
            ) from None
        if size > most:
            raise _too_large(most)
        return b"".join(parts)


_LAST = (("Connection", "close"),)  # what is left of the request must not be read as the next


def _too_large(most: int) -> Problem:
    return Problem(
        413, "too_large", f"the request is larger than {most:,} bytes; ask for less", headers=_LAST
    )


def urlsplit_host(origin: bytes) -> str:
    """Host and port of an Origin header; nothing of one such as ``null``."""
    try:
        return urlsplit(origin.decode("latin-1")).netloc.lower()
    except ValueError:
        return ""


async def respond(send: Send, problem: Problem) -> None:
    """A problem as an answer."""
    body = problem.body()
    headers: Iterable[tuple[str, str]] = (
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(body))),
        *problem.headers,
    )
    await send(
        {
            "type": "http.response.start",
            "status": problem.status,
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers],
        }
    )
    await send({"type": "http.response.body", "body": body})
