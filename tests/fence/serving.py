"""A server behind a fence: `python -m tests.fence.serving KIND LEDGER PORT OPTIONS`."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import uvicorn
from werkzeug.serving import run_simple

from hustings.fence import AsgiFence, WsgiFence
from hustings.fence.http import header
from tests.fence.judging import Try
from tests.fence.writers import ROOT

START_S = 30.0


def note(journal: str, token: str) -> None:
    """What is protected: a file with the tokens in the order in which they wrote."""
    with open(journal, "a") as stream:
        stream.write(token + "\n")


def thinking_asgi(journal: str) -> Any:
    """Reads the body, thinks for as long as the path says, then writes: POST /HOW/MILLISECONDS."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        _, how, *rest = scope["path"].split("/")
        token = dict(scope["headers"]).get(b"hustings-token", b"").decode()
        if how == "task":
            await asyncio.sleep(int(rest[0]) / 1000)
            note(journal, token)
        elif how == "thread":
            await asyncio.to_thread(think, journal, token, int(rest[0]))
        elif how == "deaf":
            while True:  # this one does not even end when it is cancelled
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(1000)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})

    return app


def thinking_wsgi(journal: str) -> Any:
    """The same, in threads."""

    def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        _, how, *rest = environ["PATH_INFO"].split("/")
        token = environ.get("HTTP_HUSTINGS_TOKEN", "")
        if how in ("task", "thread"):
            think(journal, token, int(rest[0]))
        elif how == "deaf":
            threading.Event().wait()
        start("200 OK", [("Content-Length", "4")])
        return [b"done"]

    return app


def think(journal: str, token: str, milliseconds: int) -> None:
    time.sleep(milliseconds / 1000)
    note(journal, token)


class Threads(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Silent(WSGIRequestHandler):
    def log_message(self, format: str, *arguments: Any) -> None:
        pass


def main(kind: str, ledger: str, port: str, options: str) -> None:
    journal, more = ledger + ".journal", json.loads(options)
    if kind == "asgi":
        fence = AsgiFence(thinking_asgi(journal), ledger, **more)
        uvicorn.run(fence, port=int(port), log_level="critical", lifespan="off")
    elif kind == "wsgi":
        app: Any = WsgiFence(thinking_wsgi(journal), ledger, **more)
        with make_server("127.0.0.1", int(port), app, Threads, Silent) as server:
            server.serve_forever()
    else:
        logging.getLogger("werkzeug").disabled = True
        werkzeug = WsgiFence(thinking_wsgi(journal), ledger, **more)
        run_simple("127.0.0.1", int(port), werkzeug, threaded=True)


class Server:
    """One such process, which can be killed and started again at the same port."""

    def __init__(self, kind: str, ledger: Path, port: int, **options: Any) -> None:
        self.port = port
        self.journal = Path(f"{ledger}.journal")
        self._words = [kind, str(ledger), str(port), json.dumps(options)]
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

    def written(self) -> list[int]:
        """The tokens that wrote, in the order in which they did."""
        return [int(line) for line in self.journal.read_text().split()]

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def ask(
        self, token: int | None, method: str = "POST", path: str = "/", body: bytes = b""
    ) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_S)
        try:
            headers = {} if token is None else header(token)
            connection.request(method, path, body=body, headers=headers)
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
