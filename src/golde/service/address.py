"""Where the service listens, and whether others than this machine can reach it there."""

from __future__ import annotations

import re
import secrets
import socket
from ipaddress import ip_address

from golde.errors import GoldeError

SHORTEST_TOKEN = 16
_NAME = re.compile(r"[a-z0-9._-]+")
_TOKEN = re.compile(f"[!-~]{{{SHORTEST_TOKEN},}}")


def listen(host: str, port: int, token: str | None) -> socket.socket:
    """A socket bound to an address, unless that is open to others and there is no token."""
    if token is not None and not _TOKEN.fullmatch(token):
        raise GoldeError(
            f"the token must be at least {SHORTEST_TOKEN} ASCII characters without spaces or line breaks, so "
            f"that nobody guesses it and a header can hold it; take one such as {secrets.token_urlsafe(24)}"
        )
    family, address = _resolved(host, port)
    if token is None and not ip_address(address[0].partition("%")[0]).is_loopback:
        raise GoldeError(
            f"--host {host} can be reached from other machines, and whoever reaches it could ask anything; "
            f"protect it by a token (GOLDE_TOKEN={secrets.token_urlsafe(24)} or --token), or leave --host "
            "out"
        )
    # asyncio switches off the delay of small packets (40 ms) only where the protocol is named.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(2048)
    except OSError as error:
        found.close()
        raise GoldeError(
            f"cannot listen on port {port} of {host}: {error.strerror or error}; choose another --port, or "
            "0 for any that is free"
        ) from None
    found.set_inheritable(True)
    return found


def host_name(name: str) -> str:
    """A name that a Host header can hold, with any port beside it."""
    if not _NAME.fullmatch(name.lower()):
        raise GoldeError(
            f"--allow-host {name!r} is no name of a host; give it without http:// and port, and letters "
            "beyond ASCII as browsers send them (xn--…)"
        )
    return name.lower()


def url(host: str, listening: socket.socket) -> str:
    """How to reach it from here."""
    address, port = listening.getsockname()[:2]
    if ip_address(address.partition("%")[0]).is_unspecified:
        shown = "127.0.0.1" if listening.family == socket.AF_INET else "[::1]"
    elif host == "localhost":
        shown = host
    else:
        shown = f"[{address}]" if ":" in address else address
    return f"http://{shown}:{port}"


def _resolved(host: str, port: int) -> tuple[int, tuple[str, int]]:
    """The first address of a host; of one with several, IPv4 before others."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise GoldeError(
            f"--host {host!r} is no address of this machine ({error}); use 127.0.0.1, or 0.0.0.0 for all"
        ) from None
    if not host:
        raise GoldeError("--host is empty; use 127.0.0.1, or 0.0.0.0 for all addresses")
    found.sort(key=lambda one: one[0] != socket.AF_INET)
    family, _, _, _, address = found[0]
    return family, address  # type: ignore[return-value]
