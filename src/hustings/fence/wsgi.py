"""The fence around a WSGI application. `http` describes its promises."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from typing import Any

from hustings.fence.fence import FenceBroken, StaleToken
from hustings.fence.http import (
    TOKEN_KEY,
    Entry,
    HttpFence,
    Refusal,
    refusal,
)
from hustings.fence.inflight import Request

Environ = dict[str, Any]
WsgiApp = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]

REASONS = {
    400: "Bad Request",
    411: "Length Required",
    412: "Precondition Failed",
    413: "Content Too Large",
    428: "Precondition Required",
    503: "Service Unavailable",
}
LONGEST_PAUSE = 0.02  # seconds between two checks of the requests that are still at work
_PART = 64 * 1024


class WsgiFence(HttpFence[WsgiApp, Environ]):
    """The fence around a WSGI application.

    A request reaches the application only if its token is not below the highest token at that
    moment. The same holds for an answer and the client. A larger token waits up to `grace` seconds
    for smaller ones to leave the application. Then it enters beside them: a thread cannot be
    cancelled. The fence does not hold back what such a thread still writes: pass the token in
    `environ["hustings.token"]` on to the store.
    """

    def __call__(self, environ: Environ, start: Callable[..., Any]) -> Iterable[bytes]:
        """Handle one request."""
        text = environ.get("HTTP_HUSTINGS_TOKEN")
        values = [] if text is None else [str(text).encode("utf-8", "replace")]
        try:
            entry = self.entry(environ, str(environ["REQUEST_METHOD"]), values)
        except Refusal as refused:
            return _answer(environ, start, refused)
        if entry is None:
            return self._app(environ, start)
        return self._fenced(entry, environ, start)

    def _fenced(self, entry: Entry, environ: Environ, start: Callable[..., Any]) -> Iterable[bytes]:
        request = self.in_flight.begin(*entry, _nobody)
        answer = _Answer(self, request, environ, start)
        try:
            self._ready(request, environ)
            answer.parts = self._app(environ, answer.start)
        except Exception as error:
            self.in_flight.end(request)
            refused = answer.refusal(error)
            if refused is None:
                raise
            return _answer(environ, start, refused)
        except BaseException:
            self.in_flight.end(request)
            raise
        return answer

    def _ready(self, request: Request, environ: Environ) -> None:
        """Wait until the request may be handed over."""
        self.in_flight.admit(request)
        if self.stream:
            if "wsgi.input" in environ:
                environ["wsgi.input"] = _Body(environ["wsgi.input"], self, request)
        else:
            body = self._body(request, environ)
            environ["wsgi.input"] = BytesIO(body)
            environ["wsgi.input_terminated"] = True
            environ["CONTENT_LENGTH"] = str(len(body))
        pause = 0.001
        while not self.in_flight.is_clear(request):
            time.sleep(pause)
            pause = min(LONGEST_PAUSE, 2 * pause)
        environ[TOKEN_KEY] = request.token
        self.in_flight.enter(request)

    def _body(self, request: Request, environ: Environ) -> bytes:
        """The whole body, up to its length or up to the end that the server tells."""
        length = str(environ.get("CONTENT_LENGTH") or "")
        ends = bool(environ.get("wsgi.input_terminated"))
        if environ.get("HTTP_TRANSFER_ENCODING") and not ends:
            raise Refusal(411, "length-required", "this server needs a Content-Length")
        if ends and (not length or environ.get("HTTP_TRANSFER_ENCODING")):
            return self._read(request, environ["wsgi.input"], None)
        if not length:
            return b""
        if not (length.isascii() and length.isdigit()) or len(length) > 19:
            raise Refusal(400, "bad-length", "Content-Length is one decimal number")
        if int(length) > self.body_limit:
            raise self.too_long()
        return self._read(request, environ["wsgi.input"], int(length))

    def _read(self, request: Request, stream: Any, length: int | None) -> bytes:
        body = bytearray()
        while length is None or len(body) < length:
            try:
                part = stream.read(_PART if length is None else min(_PART, length - len(body)))
            except OSError:
                raise _cut() from None
            if request.overtaken_by:
                raise request.stale()
            if not part and length is None:
                break
            if not part:
                raise _cut()
            body += part
            if len(body) > self.body_limit:
                raise self.too_long()
        return bytes(body)


def _nobody() -> None:
    """Do nothing: a thread is not woken, and finds out when it reads or answers."""


def _cut() -> Refusal:
    return Refusal(400, "body-cut", "the body ended before its length: no part of it is passed on")


def _answer(environ: Environ, start: Callable[..., Any], refused: Refusal) -> Iterable[bytes]:
    start(f"{refused.status} {REASONS[refused.status]}", refused.headers())
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [refused.body]


class _Body:
    """A body that is not read first. An overtaken application gets no part of it."""

    def __init__(self, stream: Any, fence: WsgiFence, request: Request) -> None:
        self._stream, self._fence, self._request = stream, fence, request

    def read(self, *size: int) -> bytes:
        return self._let_through(self._stream.read(*size))

    def readline(self, *size: int) -> bytes:
        return self._let_through(self._stream.readline(*size))

    def readlines(self, hint: int = -1) -> list[bytes]:
        lines: list[bytes] = []
        for line in self:
            lines.append(line)
            if 0 < hint <= sum(map(len, lines)):
                break
        return lines

    def __iter__(self) -> Iterator[bytes]:
        while line := self.readline():
            yield line

    def _let_through(self, data: bytes) -> bytes:
        self._fence.in_flight.compare(self._request)
        return data


class _Answer:
    """An application's answer. It begins only under the highest token, and is replaced otherwise.

    The request has ended when the server closes the answer.
    """

    parts: Iterable[bytes] = ()

    def __init__(
        self, fence: WsgiFence, request: Request, environ: Environ, start: Callable[..., Any]
    ) -> None:
        self._fence, self._request = fence, request
        self._environ, self._start = environ, start
        self._held: tuple[Any, ...] | None = None  # status and headers, until the first part
        self._started = self._closed = False
        self._write: Callable[[bytes], Any] | None = None

    def start(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        """The application calls this. Nothing is sent yet."""
        if self._started:
            return self._start(status, headers, exc_info)
        if self._held is not None and exc_info is None:
            raise RuntimeError("start_response was called twice without exc_info")
        self._held = (status, headers)
        return self._written

    def _written(self, data: bytes) -> None:
        self._release()
        if self._write is not None:
            self._write(data)

    def __iter__(self) -> Iterator[bytes]:
        try:
            self._stop_if_overtaken()
            for part in self.parts:
                self._stop_if_overtaken()
                if part:
                    self._release()
                yield part
                self._stop_if_overtaken()
            self._release()
        except Exception as error:
            refused = self.refusal(error)
            if refused is None:
                raise
            self._started = True
            yield from _answer(self._environ, self._start, refused)

    def _release(self) -> None:
        if self._held is not None and not self._started:
            self._fence.in_flight.compare(self._request)
            self._started = True
            self._write = self._start(*self._held)

    def _stop_if_overtaken(self) -> None:
        if self._request.overtaken_by:
            raise self._request.stale()

    def refusal(self, error: Exception) -> Refusal | None:
        """The answer instead of the application's, if none has begun and the fence is the cause."""
        if self._started:
            return None  # the answer has begun: the server cuts it off
        if self._request.overtaken_by:
            error = self._request.stale()
        elif self._request.entered and not isinstance(error, StaleToken | FenceBroken):
            return None  # the application's own error
        return refusal(error, self._request.entered)

    def close(self) -> None:
        """The server needs the answer no more."""
        if self._closed:
            return
        self._closed = True
        try:
            close = getattr(self.parts, "close", None)
            if close is not None:
                close()
        finally:
            self._fence.in_flight.end(self._request)
