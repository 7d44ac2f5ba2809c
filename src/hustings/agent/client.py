"""The client of the agent's HTTP, with nothing but the standard library.

Anything that prevents an answer becomes `NoAnswer`, with one sentence. The caller decides what an
answer means.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Generator, Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import quote, urlsplit

from hustings.core.errors import BadInput, UnknownName

LARGEST_ANSWER = 16 * 1024 * 1024  # bytes
LONGEST_LINE = 1024 * 1024
SILENCE_S = 45.0  # for an event stream, which sends a sign of life every 15 s

Json = dict[str, Any]


class NoAnswer(BadInput):
    """The agent cannot be asked: no process is there, or the process is not an agent."""


class Refusal(BadInput):
    """The agent answered, and refused."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class AgentClient:
    """A client for one agent, by the agent's URL."""

    def __init__(self, url: str, token: str | None = None, timeout_s: float = 10.0) -> None:
        self.url = url
        self._token = token
        self._timeout_s = timeout_s
        try:
            parts = urlsplit(url.strip())
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise BadInput(f"agent {url!r} is not understood: write http://HOST:PORT")
        if parts.username is not None:
            raise BadInput("a user name in the agent's URL means nothing: use --token-file")
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname, port
        self._base = parts.path.rstrip("/")

    def groups(self) -> list[Json]:
        """All groups of the agent."""
        return list(self._expect("GET", "/v1/groups")["groups"])

    def group(self, name: str | None) -> str:
        """The group of this name, or the only group there is."""
        known = [str(each["group"]) for each in self.groups()]
        if name is None and len(known) == 1:
            return known[0]
        if name is None:
            raise BadInput(
                f"the agent has {len(known)} groups: choose one with --group ({', '.join(known)})"
            )
        if name not in known:
            raise UnknownName("group", name, known)
        return name

    def leader(self, group: str) -> Json:
        """Who leads; `leader` is None when there is no leader."""
        return self._expect("GET", _path(group, "leader"), also=(503,))

    def members(self, group: str) -> list[Json]:
        """All members of the group."""
        return list(self._expect("GET", _path(group, "members"))["members"])

    def order(self, group: str, what: str, body: Json | None = None, more_s: float = 0.0) -> Json:
        """Give the agent's member an order; returns the new state. `more_s`: additional wait."""
        return self._expect("POST", _path(group, what), body=body, more_s=more_s)

    def events(self, group: str | None) -> Generator[Json, None, None]:
        """The present state of leadership and each change, until the stream ends."""
        path = "/v1/events" if group is None else f"/v1/events?group={quote(group, safe='')}"
        with closing(self._connection(self._timeout_s)) as connection:
            response = self._ask(connection, "GET", path, None, SILENCE_S)
            if response.status != 200:
                raise Refusal(response.status, _sentence(self._json(response)))
            yield from self._read_events(response)

    def _read_events(self, response: HTTPResponse) -> Iterator[Json]:
        name, data = "", ""
        while True:
            try:
                line = response.readline(LONGEST_LINE + 1)
            except (OSError, HTTPException) as error:
                raise NoAnswer(f"the agent at {self.url} went away: {_why(error)}") from None
            if not line.endswith(b"\n"):
                return
            text = line.decode(errors="replace").rstrip("\r\n")
            if not text:
                if name == "leadership":
                    yield self._parse(data.encode())
                name, data = "", ""
            key, _, value = text.partition(":")
            if key == "event":
                name = value.strip()
            elif key == "data":
                data += value.strip()

    def _expect(
        self,
        method: str,
        path: str,
        also: tuple[int, ...] = (),
        body: Json | None = None,
        more_s: float = 0.0,
    ) -> Json:
        with closing(self._connection(self._timeout_s + more_s)) as connection:
            response = self._ask(connection, method, path, body)
            answer = self._json(response)
        if response.status != 200 and response.status not in also:
            raise Refusal(response.status, _sentence(answer))
        return answer

    def _connection(self, timeout_s: float) -> HTTPConnection:
        kind = HTTPSConnection if self._secure else HTTPConnection
        return kind(self._host, self._port, timeout=timeout_s)

    def _ask(
        self,
        connection: HTTPConnection,
        method: str,
        path: str,
        body: Json | None,
        silence_s: float | None = None,
    ) -> HTTPResponse:
        """One request; `silence_s`: another time to wait for data, once connected."""
        headers = {"Accept": "application/json, text/event-stream"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self._token is not None and method != "GET":
            headers["Authorization"] = f"Bearer {self._token}"
        data = None if body is None else json.dumps(body)
        try:
            connection.connect()
            if silence_s is not None:
                connection.sock.settimeout(silence_s)
            connection.request(method, self._base + path, body=data, headers=headers)
            return connection.getresponse()
        except (OSError, HTTPException) as error:
            raise NoAnswer(
                f"cannot reach the agent at {self.url}: {_why(error)}; is hustings agent running "
                "there? --agent names another one"
            ) from None

    def _json(self, response: HTTPResponse) -> Json:
        try:
            data = response.read(LARGEST_ANSWER + 1)
        except (OSError, HTTPException) as error:
            raise NoAnswer(f"the agent at {self.url} went away: {_why(error)}") from None
        if response.length and len(data) <= LARGEST_ANSWER:
            raise NoAnswer(f"the agent at {self.url} went away in the middle of its answer")
        return self._parse(data)

    def _parse(self, data: bytes) -> Json:
        try:
            answer = json.loads(data) if len(data) <= LARGEST_ANSWER else None
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise NoAnswer(f"what answers at {self.url} is not an agent of hustings")
        return answer


def _path(group: str, what: str) -> str:
    return f"/v1/groups/{quote(group, safe='')}/{what}"


def _sentence(answer: Json) -> str:
    return f"the agent says: {answer.get('error', 'no')}"


def _why(error: OSError | HTTPException) -> str:
    if isinstance(error, TimeoutError | socket.timeout):
        return "no answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__
