"""A database as the PostgreSQL guard's client meets it: its functions as plain Python, on one row.

Nothing listens anywhere. A test may hold an answer back, lose it, or let something happen before a
question arrives: `before` and `after` are called with the function's name.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

from hustings.guard.postgres import PostgresGuard
from hustings.guard.postgres_schema import VERSION
from hustings.guard.postgres_wire import PostgresAddress
from hustings.guard.urls import parse_url
from tests.unit.guard.hooks import Hook, nothing

URL = "postgres://app@db:7000/app"
SHOWN = "postgres://app@db:7000/app"

_QUESTION = re.compile(
    r"SELECT encode\(convert_to\(\(hustings\.guard_(\w+)\((.*)\)\)::text, 'UTF8'\), 'hex'\)"
)
_ARGUMENT = re.compile(
    r"convert_from\(decode\('(?P<text>[0-9a-f]*)', 'hex'\), 'UTF8'\)"
    r"|(?P<null>NULL::text)|(?P<flag>True|False)|(?P<number>[-+.e0-9]+)"
)


def _values(text: str) -> list[Any]:
    found: list[Any] = []
    for each in _ARGUMENT.finditer(text):
        if each["text"] is not None:
            found.append(bytes.fromhex(each["text"]).decode())
        elif each["null"]:
            found.append(None)
        else:
            found.append(each["flag"] == "True" if each["flag"] else json.loads(each["number"]))
    return found


class Database:
    """The row of one group, what was asked, and who is connected."""

    def __init__(self) -> None:
        self.version = VERSION
        self.row: dict[str, Any] = {
            "token": 0,
            "holder": None,
            "incarnation": 0,
            "ttl": 0.0,
            "successor": None,
            "mark": 0,
            "floor": 0,
            "identity": None,
        }
        self.beside: dict[str, str] = {}  # what rows of their own have
        self.groups: set[str] = set()
        self.asked: list[str] = []
        self.arguments: list[list[Any]] = []
        self.executed: list[str] = []
        self.fails: BaseException | None = None  # what every question raises
        self.answers: list[object] = []  # instead of what the model says
        self.connections: list[Connection] = []
        self.before: Hook = nothing
        self.after: Hook = nothing

    async def connect(self, **given: Any) -> Connection:
        """What stands for the client's way to connect."""
        await self.before("connect")
        made = Connection(self, given)
        self.connections.append(made)
        return made

    @property
    def open(self) -> int:
        return sum(not each.closed for each in self.connections)

    def guard(self, **more: Any) -> PostgresGuard:
        return PostgresGuard(PostgresAddress(parse_url(URL)), "jobs", **more)

    def answer(self, name: str, words: str) -> object:
        values = _values(words)
        self.arguments.append([name, *values])
        if self.answers:
            return self.answers.pop(0)
        if name == "version":
            return self.version
        group, *rest = values
        group, _, kind = group.partition("\n")
        self.groups.add(group)
        if kind:
            return self._beside(kind, *rest)
        return getattr(self, f"_{name}")(*rest)

    def _tell(self) -> None:
        for each in self.connections:
            for _, wake in each.listeners if not each.closed else ():
                wake(each, 1, "channel", "")

    def _covering(self, ttl: float, mine: int, remains: float) -> float:
        return max(ttl, remains if self.row["mark"] == mine else self.row["ttl"])

    def _is(self, *who: object) -> bool:
        return (
            tuple(self.row[name] for name in ("holder", "incarnation", "token"))[: len(who)] == who
        )

    def _acquire(
        self,
        holder: str,
        incarnation: int,
        ttl: float,
        mark: int,
        ended: int,
        mine: int,
        remains: float,
        known: int,
        lift: bool,
    ) -> object:
        row = self.row
        is_over = ended != 0 and row["mark"] == ended
        is_same = self._is(holder, incarnation)
        if not is_over and not is_same:
            seen = {"granted": False, "mark": row["mark"], "ttl": row["ttl"]}
            if row["holder"] is not None:
                return {**seen, "holder": row["holder"], "token": row["token"]}
            if row["successor"] not in (None, holder):
                return {**seen, "holder": row["successor"], "token": 0}
        token = row["token"]
        if not is_same or is_over or token < known:
            last = max(token, row["floor"])
            if last < known and not lift:
                return {"behind": last}
            token = max(last, known) + 1
        lasting = self._covering(ttl, mine, remains) if is_same else ttl
        row |= {
            "holder": holder,
            "incarnation": incarnation,
            "token": token,
            "ttl": lasting,
            "mark": mark,
        }
        row["successor"] = None
        self._tell()
        return {"granted": True, "token": token, "ttl": lasting}

    def _renew(
        self,
        holder: str,
        incarnation: int,
        token: int,
        ttl: float,
        mark: int,
        mine: int,
        remains: float,
    ) -> object:
        if not self._is(holder, incarnation, token):
            return {"granted": False}
        self.row["ttl"] = self._covering(ttl, mine, remains)
        self.row["mark"] = mark
        self._tell()
        return {"granted": True, "ttl": self.row["ttl"]}

    def _release(
        self, holder: str, incarnation: int, token: int, to: str | None, mark: int
    ) -> bool:
        if not self._is(holder, incarnation, token):
            return False
        self.row |= {"holder": None, "successor": to, "mark": mark}
        self._tell()
        return True

    def _recover(self, above: int) -> bool:
        self.row["floor"] = max(self.row["floor"], above)
        return True

    def _name(self, word: str, instead: bool) -> str:
        if instead or self.row["identity"] is None:
            self.row["identity"] = word
        return str(self.row["identity"])

    def _beside(self, kind: str, word: str, instead: bool) -> str:
        """A row of its own, with a word of one kind."""
        if instead or kind not in self.beside:
            self.beside[kind] = word
        return self.beside[kind]

    def _look(self) -> object:
        return {name: self.row[name] for name in ("holder", "token", "mark", "ttl")}


class Connection:
    """What stands for a connection of the client's library."""

    def __init__(self, database: Database, given: dict[str, Any]) -> None:
        self._database = database
        self.given = given
        self.closed = False
        self.listeners: list[tuple[str, Callable[..., None]]] = []
        self.ends: list[Callable[..., None]] = []

    def is_closed(self) -> bool:
        return self.closed

    async def copy_from_query(
        self, query: str, *, output: Callable[[bytes], Awaitable[None]]
    ) -> None:
        assert not self.closed, "asked on a connection that has ended"
        found = _QUESTION.fullmatch(query)
        assert found is not None, query
        database, name = self._database, found[1]
        database.asked.append(name)
        await database.before(name)
        if database.fails is not None:
            raise database.fails
        said = json.dumps(database.answer(name, found[2])).encode().hex().encode()
        await database.after(name)
        half = len(said) // 2
        await output(said[:half])
        await output(said[half:])

    async def execute(self, statements: str) -> None:
        await self._database.before("execute")
        self._database.executed.append(statements)

    async def add_listener(self, channel: str, wake: Callable[..., None]) -> None:
        await asyncio.sleep(0)
        self.listeners.append((channel, wake))

    def add_termination_listener(self, wake: Callable[..., None]) -> None:
        self.ends.append(wake)

    def terminate(self) -> None:
        self.closed = True

    def lose(self) -> None:
        """The server has gone away."""
        self.closed = True
        for each in self.ends:
            each(self)
