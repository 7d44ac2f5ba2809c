"""A server behind a fence, to be killed: `python -m tests.fence.serving KIND LEDGER PORT`."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import uvicorn

from hustings.fence import AsgiFence, WsgiFence
from hustings.fence.http import header
from tests.fence.judging import Try
from tests.fence.writers import ROOT

START_S = 30.0


async def asgi(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"done"})


def wsgi(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    start("200 OK", [("Content-Length", "4")])
    return [b"done"]


class Threads(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Silent(WSGIRequestHandler):
    def log_message(self, format: str, *arguments: Any) -> None:
        pass


def main(kind: str, ledger: str, port: str) -> None:
    if kind == "asgi":
        fence = AsgiFence(asgi, ledger)
        uvicorn.run(fence, port=int(port), log_level="error", lifespan="off")
    else:
        app: Any = WsgiFence(wsgi, ledger)
        with make_server("127.0.0.1", int(port), app, Threads, Silent) as server:
            server.serve_forever()


class Server:
    """One such process, which can be killed and started again at the same port."""

    def __init__(self, kind: str, ledger: Path, port: int) -> None:
        self.port = port
        self._words = [kind, str(ledger), str(port)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fence.serving", *self._words], cwd=ROOT
        )
        deadline = time.monotonic() + START_S
        while True:
            try:
                self.ask(None, "GET")
            except OSError:
                assert time.monotonic() < deadline, "the server does not answer"
                time.sleep(0.02)
            else:
                return

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def ask(self, token: int | None, method: str = "POST") -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_S)
        try:
            connection.request(method, "/", headers={} if token is None else header(token))
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def attempt(self, token: int) -> Try:
        """A request, judged by what was answered; None stands for no answer."""
        began = time.monotonic()
        try:
            status, body = self.ask(token)
        except (OSError, http.client.HTTPException):
            return Try(token, began, time.monotonic(), None)
        if status == 412 and not body:  # killed between the parts of its answer
            return Try(token, began, time.monotonic(), None)
        if status == 412:
            return Try(token, began, time.monotonic(), False, json.loads(body)["highest"])
        assert status == 200, (status, body)
        return Try(token, began, time.monotonic(), True)


@contextmanager
def serving(*servers: Server) -> Any:
    """All of them, until the block ends."""
    try:
        for each in servers:
            each.start()
        yield
    finally:
        for each in servers:
            each.kill()


if __name__ == "__main__":
    main(*sys.argv[1:])
