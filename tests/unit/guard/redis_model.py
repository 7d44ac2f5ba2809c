"""A server of Redis as one guard's client meets it: the scripts as plain Python, on one hash.

Nothing listens anywhere. A test may hold an answer back, lose it, or let something happen before a
question arrives: `before` and `after` are called with the script's name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from hustings.guard.redis import RedisGuard
from hustings.guard.redis_scripts import ACQUIRE, LOOK, RECOVER, RELEASE, RENEW, RUN, WORD
from hustings.guard.redis_wire import RedisWire
from hustings.guard.urls import parse_url
from tests.unit.guard.hooks import Hook, nothing

SCRIPTS = {
    ACQUIRE: "acquire",
    LOOK: "look",
    WORD: "word",
    RECOVER: "recover",
    RELEASE: "release",
    RENEW: "renew",
    RUN: "run",
}


class Server:
    """What stands in it, what it was asked, and who listens."""

    def __init__(self, run: str = "run1") -> None:
        self.run = run  # "" where INFO is forbidden
        self.hash: dict[str, str] = {}
        self.keys: set[str] = set()
        self.asked: list[str] = []
        self.words: list[tuple[str, ...]] = []  # arguments of each script
        self.published: list[tuple[str, str]] = []
        self.settings: dict[str, str] = {}
        self.forbidden: Exception | None = None  # what CONFIG GET raises
        self.fails: Exception | None = None  # what every command raises
        self.answers: list[object] = []  # instead of what the model says
        self.listeners: list[PubSub] = []
        self.before: Hook = nothing
        self.after: Hook = nothing

    def restart(self, *, forgets: bool) -> None:
        self.run += "x"
        if forgets:
            self.hash.clear()

    def guard(self, **more: Any) -> RedisGuard:
        """A guard on it, with the real wire around a client of our own."""
        wire = RedisWire(parse_url("redis://cache:7000"), 2.0)
        wire._client = Client(self)
        return RedisGuard(wire, "jobs", **more)

    # Scripts

    def eval(self, script: str, key: str, words: Sequence[str]) -> object:
        self.keys.add(key)
        name = SCRIPTS[script]
        self.words.append((name, *words))
        if self.answers:
            return self.answers.pop(0)
        return getattr(self, f"_{name}")(*words)

    def _number(self, name: str) -> int:
        return int(self.hash.get(name, "0"))

    def _mark(self) -> str:
        return self.hash.get("mark", "")

    def _hold(self, ttl: int, mark: str) -> None:
        self.hash |= {"ttl": str(ttl), "mark": mark}
        self.hash.pop("next", None)
        self.publish()

    def _covering(self, ttl: int, mine: str, remains: str) -> int:
        return max(ttl, int(remains) if self._mark() == mine else self._number("ttl"))

    def _is(self, *who: str) -> bool:
        names = ("holder", "incarnation", "token")[: len(who)]
        return tuple(self.hash.get(name) for name in names) == who

    def _acquire(
        self,
        holder: str,
        incarnation: str,
        ttl: str,
        mark: str,
        ended: str,
        mine: str,
        remains: str,
        known: str,
        lift: str,
        leads: str,
        *server: str,
    ) -> list[object]:
        fields = self.hash
        token = self._number("token")
        last = max(token, self._number("floor"))
        is_over = ended != "" and self._mark() == ended
        is_same = self._is(holder, incarnation)
        is_held = "holder" in fields and not is_same and not is_over
        is_behind = last < int(known) and lift == "0" and not is_held
        unsettled = self._settle(int(ttl), last, is_behind, leads == "1", *server)
        if unsettled is not None:
            return unsettled
        if is_held:
            return [0, str(token), fields["holder"], self._mark(), fields["ttl"]]
        successor = None if "holder" in fields or is_over else fields.get("next")
        if successor not in (None, holder):
            return [0, "0", successor, self._mark(), fields["ttl"]]
        if is_behind:
            return [2, str(last), server[1]]
        lasting = self._covering(int(ttl), mine, remains) if is_same else int(ttl)
        if is_over or not is_same or token < int(known):
            fields["token"] = str(max(last, int(known)) + 1)
        fields |= {"holder": holder, "incarnation": incarnation}
        self._hold(lasting, mark)
        return [1, fields["token"], str(lasting)]

    def _settle(
        self,
        ttl: int,
        last: int,
        is_behind: bool,
        leads: bool,
        keeps: str,
        run_known: str,
        known_for: str,
        longest: str,
    ) -> list[object] | None:
        if keeps == "1":
            return None
        self.hash["longest"] = str(max(self._number("max_ttl"), ttl, int(longest)))
        if not self.run or self.run == self.hash.get("settled"):
            return None
        wait = self._number("longest") - (int(known_for) if self.run == run_known else 0)
        if is_behind:
            return [2, str(last), self.run]
        if wait > 0 and not leads:
            return [0, "0", "", self.run, str(wait)]
        self.hash["settled"] = self.run
        return None

    def _renew(
        self,
        holder: str,
        incarnation: str,
        token: str,
        ttl: str,
        mark: str,
        mine: str,
        remains: str,
    ) -> str:
        if not self._is(holder, incarnation, token):
            return ""
        lasting = self._covering(int(ttl), mine, remains)
        self._hold(lasting, mark)
        return str(lasting)

    def _release(
        self, holder: str, incarnation: str, token: str, mark: str, *successor: str
    ) -> int:
        if not self._is(holder, incarnation, token):
            return 0
        del self.hash["holder"], self.hash["incarnation"]
        self.hash |= {"mark": mark, **({"next": successor[0]} if successor else {})}
        self.publish()
        return 1

    def _look(self) -> list[str | None]:
        return [
            self.hash.get("token", "0"),
            self.hash.get("holder"),
            self._mark(),
            self.hash.get("ttl", "0"),
        ]

    def _recover(self, above: str) -> int:
        self.hash["floor"] = str(max(self._number("floor"), int(above)))
        return 1

    def _word(self, kind: str, word: str, instead: str) -> str:
        if instead == "1" or kind not in self.hash:
            self.hash[kind] = word
        return self.hash[kind]

    def _run(self) -> str:
        return self.run

    def publish(self) -> None:
        for each in self.listeners:
            each.heard.put_nowait({"type": "message"})


class Client:
    """What stands for the client's library."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.closed = 0
        self.pubsubs: list[PubSub] = []

    async def execute_command(self, *words: Any) -> object:
        server = self._server
        if words[0] == "EVAL":
            command, script, count, key, *rest = words
            assert count == 1, "one key"
            name = SCRIPTS[script]
        else:
            command, key, *rest = words
            name = str(command).lower()
        server.asked.append(name)
        await server.before(name)
        if server.fails is not None:
            raise server.fails
        if command == "EVAL":
            answer = server.eval(script, key, rest)
        else:
            server.published.append((key, *rest))
            answer = 0
        await server.after(name)
        return answer

    async def config_get(self, name: str) -> Mapping[str, str]:
        if self._server.forbidden is not None:
            raise self._server.forbidden
        return {key: value for key, value in self._server.settings.items() if key == name}

    def pubsub(self) -> PubSub:
        made = PubSub(self._server)
        self.pubsubs.append(made)
        return made

    async def aclose(self) -> None:
        self.closed += 1


class PubSub:
    """A subscription; its first message is the server's consent."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.heard: asyncio.Queue[Mapping[str, str]] = asyncio.Queue()
        self.channels: list[str] = []
        self.calls: list[tuple[str, float | None]] = []
        self.answers_pings = True
        self.fails: Exception | None = None
        self.closed = 0

    async def subscribe(self, channel: str) -> None:
        self.calls.append(("subscribe", None))
        if self.fails is not None:
            raise self.fails
        self.channels.append(channel)
        self.heard.put_nowait({"type": "subscribe"})
        self._server.listeners.append(self)

    async def get_message(self, timeout: float | None) -> Mapping[str, str] | None:
        self.calls.append(("hear", timeout))
        if self.fails is not None:
            raise self.fails
        try:
            async with asyncio.timeout(timeout):
                return await self.heard.get()
        except TimeoutError:
            return None

    async def ping(self) -> None:
        self.calls.append(("ping", None))
        if self.answers_pings:
            self.heard.put_nowait({"type": "pong"})

    async def aclose(self) -> None:
        self.closed += 1
        if self in self._server.listeners:
            self._server.listeners.remove(self)
