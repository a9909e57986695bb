"""A web server on this machine that answers each path as a test says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

Answer = Callable[[BaseHTTPRequestHandler], object]


class Web:
    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.closing = threading.Event()
        web = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                web.asked.append(self.path)
                web.answers.get(self.path, web.refuse(404))(self)
                self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                pass  # a client that gives up is what these tests are about

        self.server = Server(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server.server_port}{path}"

    @staticmethod
    def send(body: bytes, announced: int | None = None) -> Answer:
        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            length = len(body) if announced is None else announced
            handler.send_header("Content-Length", str(length))
            handler.end_headers()
            handler.wfile.write(body)

        return answer

    @staticmethod
    def refuse(code: int) -> Answer:
        return lambda handler: handler.send_error(code)

    def close(self) -> None:
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def web() -> Iterator[Web]:
    web = Web()
    yield web
    web.close()
