"""The part of Consul that locks need, by its documented rules: sessions, keys, blocking queries.

A session with a TTL ends when it was not renewed for that long (Consul may wait up to twice as
long, this one does not: it is as quick as is allowed). What it held is then free, but given to
nobody for its lock-delay. Time is a number that tests set.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from typing import Any

from aiohttp import web

REFUSED = "Permission denied: token with AccessorID '' lacks permission"


class Consul:
    """One agent that is a whole cluster."""

    def __init__(self, token: str | None = None) -> None:
        self.now = 1000.0
        self.index = 10
        self.sessions: dict[str, dict[str, Any]] = {}
        self.keys: dict[str, dict[str, Any]] = {}
        self.delayed: dict[str, float] = {}  # until when a key is given to nobody
        self.down = False
        self.asked: list[str] = []
        self._token = token
        self._changed = asyncio.Condition()

    async def pass_time(self, seconds: float) -> None:
        self.now += seconds
        async with self._changed:
            self._expire()
            self._changed.notify_all()

    async def forget(self) -> None:
        """Come back without a store."""
        async with self._changed:
            self.index = 10
            self.sessions, self.keys, self.delayed = {}, {}, {}
            self._changed.notify_all()

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(f"{request.method} {request.path}")
        if self.down:
            return web.Response(status=500, text="No cluster leader")
        if self._token is not None and request.headers.get("X-Consul-Token") != self._token:
            return web.Response(status=403, text=REFUSED)
        body = await request.read()
        self._expire()
        part = request.path.removeprefix("/v1/")
        if part.startswith("kv/"):
            return await self._kv(request, part[3:], body)
        verb, _, session = part.removeprefix("session/").partition("/")
        if verb == "create":
            return await self._create(json.loads(body))
        if verb == "renew":
            return self._renew(session)
        if verb == "info":
            found = self.sessions.get(session)
            return web.json_response(
                [] if found is None else [{"ID": session, "Name": found["name"]}]
            )
        if verb == "destroy":
            async with self._changed:
                self._end(session)
                self._changed.notify_all()
            return web.json_response(True)
        return web.Response(status=404, text="unknown")

    # Sessions

    async def _create(self, wanted: dict[str, Any]) -> web.Response:
        ttl, delay = _seconds(wanted["TTL"]), _seconds(wanted.get("LockDelay", "15s"))
        if not 10.0 <= ttl <= 86400.0 or not 0.0 <= delay <= 60.0:
            return web.Response(status=400, text=f"Invalid Session TTL '{ttl}'")
        self.index += 1
        session = f"{self.index:08x}-0000-0000-0000-000000000000"
        until, name = self.now + ttl, wanted.get("Name", "")
        self.sessions[session] = {"ttl": ttl, "delay": delay, "until": until, "name": name}
        return web.json_response({"ID": session})

    def _renew(self, session: str) -> web.Response:
        found = self.sessions.get(session)
        if found is None:
            return web.Response(status=404, text=f"Session id '{session}' not found")
        found["until"] = self.now + found["ttl"]
        return web.json_response([{"ID": session, "TTL": f"{found['ttl']}s"}])

    def _expire(self) -> None:
        for session in [s for s, each in self.sessions.items() if each["until"] <= self.now]:
            self._end(session)

    def _end(self, session: str) -> None:
        found = self.sessions.pop(session, None)
        if found is None:
            return
        for name, key in self.keys.items():
            if key.get("Session") == session:
                self.index += 1
                del key["Session"]
                key["ModifyIndex"] = self.index
                self.delayed[name] = self.now + found["delay"]

    # Keys

    async def _kv(self, request: web.Request, name: str, body: bytes) -> web.Response:
        if request.method == "GET":
            return await self._get(request, name)
        if request.method == "DELETE":
            self.index += 1
            self.keys.pop(name, None)
            return web.json_response(True)
        if "acquire" in request.query and request.query["acquire"] not in self.sessions:
            return web.Response(status=500, text="invalid session")
        async with self._changed:
            done = self._put(name, request, body)
            self._changed.notify_all()
        return web.json_response(done)

    def _put(self, name: str, request: web.Request, body: bytes) -> bool:
        key = self.keys.get(name)
        holder = None if key is None else key.get("Session")
        if session := request.query.get("acquire"):
            if holder not in (None, session) or self.delayed.get(name, 0.0) > self.now:
                return False
        elif released := request.query.get("release"):
            if holder != released:
                return False
        elif "cas" in request.query:
            if int(request.query["cas"]) != (0 if key is None else key["ModifyIndex"]):
                return False
        self.index += 1
        if key is None:
            key = {"Key": name, "CreateIndex": self.index, "LockIndex": 0, "Flags": 0}
            self.keys[name] = key
        key["ModifyIndex"] = self.index
        key["Flags"] = int(request.query.get("flags", key["Flags"]))
        key["Value"] = base64.b64encode(body).decode() or None
        if session and holder is None:
            key["Session"], key["LockIndex"] = session, key["LockIndex"] + 1
        elif "release" in request.query:
            del key["Session"]
        return True

    async def _get(self, request: web.Request, name: str) -> web.Response:
        after = int(request.query.get("index", "0"))
        if after:
            wait = _seconds(request.query.get("wait", "300s"))
            async with self._changed:
                try:
                    async with asyncio.timeout(wait):
                        await self._changed.wait_for(lambda: self._index_of(name) > after)
                except TimeoutError:
                    pass
        headers = {"X-Consul-Index": str(self._index_of(name))}
        key = self.keys.get(name)
        if key is None:
            return web.Response(status=404, headers=headers)
        return web.json_response([key], headers=headers)

    def _index_of(self, name: str) -> int:
        key = self.keys.get(name)
        return self.index if key is None else int(key["ModifyIndex"])


def _seconds(text: str) -> float:
    found = re.fullmatch(r"([0-9.]+)(ms|s)", text)
    assert found is not None, text
    return float(found.group(1)) / (1000.0 if found.group(2) == "ms" else 1.0)
