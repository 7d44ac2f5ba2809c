"""The stream of changes: present state first, slow listeners, too many of them, and its end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any

import pytest

from hustings.agent import events
from hustings.agent.events import ROOM, Broadcast, EventStream, Listener
from hustings.agent.http import refusal
from tests.net.kit.loops import until
from tests.unit.agent.fake import FakeMember, api_of, publish

SCOPE: dict[str, Any] = {
    "type": "http",
    "method": "GET",
    "path": "/v1/events",
    "query_string": b"",
    "headers": [],
}


class Reader:
    """The far end of one request: what it was sent, and whether it is still there."""

    def __init__(self) -> None:
        self.status = 0
        self.body = b""
        self.ended = False
        self.taking = asyncio.Event()
        self.taking.set()
        self._gone = asyncio.Event()
        self._asked = False

    async def receive(self) -> MutableMapping[str, Any]:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        await self.taking.wait()
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self.body += message["body"]
            self.ended = not message.get("more_body", False)

    def go(self) -> None:
        self._gone.set()

    @property
    def told(self) -> list[tuple[str, dict[str, Any]]]:
        """Names and data of whole events."""
        found = []
        for block in self.body.decode().split("\n\n")[:-1]:
            if not block.startswith(":"):
                name, data = block.split("\n")
                found.append(
                    (name.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
                )
        return found


def test_the_present_state_comes_first_then_each_change() -> None:
    async def run() -> None:
        members = {name: FakeMember(name) for name in ("billing", "search")}
        api = api_of(members)
        for member in members.values():
            publish(api.broadcast, member)
        reader = Reader()
        task = asyncio.ensure_future(api.app()(SCOPE, reader.receive, reader.send))
        await until(lambda: len(reader.told) == 2, "the present state")
        assert [data["group"] for _, data in reader.told] == ["billing", "search"]
        members["search"].lead("web-2", 7)
        publish(api.broadcast, members["search"])
        await until(lambda: len(reader.told) == 3, "the change")
        name, data = reader.told[-1]
        assert (name, data["leader"]["name"], data["term"]) == ("leadership", "web-2", 7)
        assert len(api.broadcast) == 1
        reader.go()
        await task
        assert len(api.broadcast) == 0

    asyncio.run(run())


def test_one_group_only() -> None:
    async def run() -> None:
        members = {name: FakeMember(name) for name in ("billing", "search")}
        api = api_of(members)
        reader = Reader()
        scope = {**SCOPE, "query_string": b"group=search"}
        task = asyncio.ensure_future(api.app()(scope, reader.receive, reader.send))
        await until(lambda: len(api.broadcast) == 1, "the listener")
        for member in members.values():
            publish(api.broadcast, member)
        api.broadcast.end()
        await task
        assert [data["group"] for _, data in reader.told] == ["search"]
        assert reader.ended

    asyncio.run(run())


@pytest.mark.parametrize("query, streams, status", [(b"group=x", 8, 404), (b"", 0, 503)])
def test_who_is_turned_away(query: bytes, streams: int, status: int) -> None:
    async def run() -> None:
        api = api_of({"billing": FakeMember()}, streams=streams)
        reader = Reader()
        await api.app()({**SCOPE, "query_string": query}, reader.receive, reader.send)
        assert reader.status == status
        assert list(json.loads(reader.body)) == ["error"]

    asyncio.run(run())


def test_nobody_is_let_in_at_the_end() -> None:
    broadcast = Broadcast(8)
    broadcast.end()
    assert broadcast.full


def test_a_slow_listener_misses_the_oldest_and_is_told() -> None:
    async def run() -> None:
        broadcast, reader = Broadcast(1), Reader()
        reader.taking.clear()
        busy = refusal(503, "full")
        stream = EventStream(broadcast, None, busy)
        task = asyncio.create_task(stream(SCOPE, reader.receive, reader.send))
        await until(lambda: len(broadcast) == 1, "the listener")
        for number in range(ROOM + 5):
            broadcast.publish({"group": "billing", "term": number})
        reader.taking.set()
        await until(lambda: len(reader.told) == ROOM + 1, "what is left")
        assert reader.told[0] == ("missed", {"missed": 5})
        assert [data["term"] for _, data in reader.told[1:]] == list(range(5, ROOM + 5))
        reader.go()
        await task

    asyncio.run(run())


def test_a_listener_that_takes_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "STALL_S", 0.01)

    async def run() -> None:
        broadcast, reader = Broadcast(1), Reader()
        stream = EventStream(broadcast, None, refusal(503, "full"))
        task = asyncio.create_task(stream(SCOPE, reader.receive, reader.send))
        await until(lambda: reader.status == 200, "the start")
        reader.taking.clear()
        broadcast.publish({"group": "billing"})
        await task
        assert len(broadcast) == 0

    asyncio.run(run())


def test_signs_of_life_while_nothing_happens() -> None:
    async def run() -> None:
        broadcast, reader = Broadcast(1), Reader()
        stream = EventStream(broadcast, None, refusal(503, "full"), keep_alive_s=0.001)
        task = asyncio.create_task(stream(SCOPE, reader.receive, reader.send))
        await until(lambda: reader.body.count(b": still here\n\n") >= 3, "signs of life")
        assert reader.told == []
        reader.go()
        await task

    asyncio.run(run())


def test_what_waits_is_told_before_the_end() -> None:
    async def run() -> None:
        listener = Listener(None)
        listener.put({"group": "billing"})
        listener.end()
        assert await listener.next(1.0) == {"group": "billing"}
        with pytest.raises(EOFError):
            await listener.next(1.0)

    asyncio.run(run())
