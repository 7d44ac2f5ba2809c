"""A host that is only what its parts ask of it: they are tried one by one, on a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from hustings.core.messages import Message
from hustings.net.limits import Counters, Limits
from hustings.net.peer_addresses import read_place
from hustings.net.transport import Endpoint

ME, LIFE = 1, 50
OWN: Endpoint = ("127.0.0.1", 1000)


def place_of(member: int) -> str:
    """Where a member is: its id tells."""
    return f"127.0.0.1:{1000 + member} m{member}"


def at(member: int) -> Endpoint:
    """The same, to send to."""
    return ("127.0.0.1", 1000 + member)


class Lot:
    """Draws what a test says; numbers of questions differ."""

    def __init__(self) -> None:
        self.drawn, self._number = 0.0, 100

    def random(self) -> float:
        return self.drawn

    def below(self, bound: int) -> int:
        self._number += 10
        return self._number


class FakeGate:
    """What is known of senders' numbers, as a test says."""

    def __init__(self) -> None:
        self.wire = SimpleNamespace(incarnation=LIFE, ring=None, group="g", limits=Limits())
        self.counters = Counters()
        self.unheard: Any = None
        self.leaping = False
        self.admits = True
        self.confirmed: list[Any] = []
        self.admitted: list[Any] = []
        self.latest = (1_000_000, 1_000_000)

    def leaps(self, got: Any) -> bool:
        return self.leaping

    def confirm(self, got: Any) -> None:
        self.confirmed.append(got)

    def admit(self, got: Any, now: float) -> bool:
        self.admitted.append(got)
        return self.admits

    def incarnation(self, member: int) -> int:
        return 77

    def outgoing(self, message: Message, to: int | None = None, way: Any = None) -> Any:
        return SimpleNamespace(data=b"hello to %d" % (to or 0))


class FakeCircle:
    """Who is known, and whether it seems alive."""

    def __init__(self) -> None:
        self.entries: dict[int, Any] = {}
        self.dead: set[int] = set()
        self.recalled: list[int] = []
        self.gone: set[int] = set()
        self.latest: tuple[int, ...] = ()
        self.own = SimpleNamespace(place="127.0.0.1:1000 me")

    def put(self, member: int, life: int = 5, place: str | None = None) -> None:
        where = place_of(member) if place is None else place
        who = SimpleNamespace(id=member)
        self.entries[member] = SimpleNamespace(place=where, incarnation=life, counter=1, who=who)

    def entry(self, member: int) -> Any:
        return self.entries.get(member)

    def lives(self, member: int) -> bool:
        return member in self.entries and member not in self.dead

    def departed(self, member: int) -> bool:
        return member in self.gone

    def recall(self, member: int) -> None:
        self.recalled.append(member)


class FakePort:
    """Whom streams are kept to, and at whose door it was knocked."""

    endpoint = OWN
    reaches_all = False

    def __init__(self) -> None:
        self.watches: list[Any] = []
        self.knocks: list[tuple[Endpoint, Callable[[], None]]] = []

    def watch(self, to: Endpoint, hello: Any, gone: Any, leisure: Any) -> Any:
        watch = SimpleNamespace(to=to, hello=hello, gone=gone, leisure=leisure, open=True)
        watch.cancel = lambda: setattr(watch, "open", False)
        self.watches.append(watch)
        return watch

    def knock(self, to: Endpoint, refused: Callable[[], None]) -> None:
        self.knocks.append((to, refused))


class FakeNode:
    """Everything that a part says or does is written down."""

    def __init__(self) -> None:
        self.filter = FakeGate()
        self.circle = FakeCircle()
        self.transport = FakePort()
        self.settled = asyncio.Event()
        self.settled.set()
        self.seed_at: set[Endpoint] = set()
        self.seeds = SimpleNamespace(endpoints=self.seed_at)
        self.sent: list[tuple[int | None, Message]] = []  # to members
        self.told: list[tuple[Endpoint, Message, int | None]] = []  # to addresses
        self.accepted: list[tuple[Any, Endpoint]] = []
        self.errors: list[Exception] = []
        self.notes: list[str] = []
        self.suspected: list[int] = []
        self.deference = 0.0
        self.reached = True
        self.asked: list[tuple[int, Endpoint]] = []
        self.ranking = [9, 8, 7, ME]
        self.lot = Lot()
        self.rejections = SimpleNamespace(say=self._say)
        self.runner = SimpleNamespace(
            rng=self.lot, me=SimpleNamespace(id=ME), run=lambda act: act(None)
        )
        self.stack = SimpleNamespace(
            membership=SimpleNamespace(circle=self.circle, size=4, view=[1, 2, 3, 4]),
            leaders=(),
            choice=None,
            on_suspect=lambda ctx, member: self.suspected.append(member),
        )
        self.address_book = SimpleNamespace(
            endpoint=self._endpoint, owner=self._owner, place=self._place
        )
        self.address_validation = SimpleNamespace(
            reached=lambda member, endpoint: self.reached,
            ask=lambda member, endpoint: self.asked.append((member, endpoint)),
        )
        self.leadership = SimpleNamespace(
            electors=SimpleNamespace(
                view=SimpleNamespace(ranking=lambda choice: SimpleNamespace(ids=self.ranking))
            )
        )

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def transmit(self, to: int | None, message: Message) -> None:
        self.sent.append((to, message))

    def introduce(self, to: Endpoint, message: Message, member: int | None = None) -> None:
        self.told.append((to, message, member))

    def accept(self, got: Any, source: Endpoint) -> None:
        self.accepted.append((got, source))

    def failed(self, error: Exception) -> None:
        self.errors.append(error)

    def lets_in(self, endpoint: Endpoint) -> bool:
        return endpoint in self.seed_at

    def _say(self, kind: str, sentence: str, now: float) -> None:
        self.notes.append(sentence)

    def _place(self, member: int) -> Any:
        entry = self.circle.entry(member)
        return None if entry is None else read_place(entry.place)

    def _endpoint(self, member: int) -> Endpoint | None:
        place = self._place(member)
        return None if place is None else place.endpoint

    def _owner(self, endpoint: Endpoint) -> int | None:
        found = [each for each in self.circle.entries if self._endpoint(each) == endpoint]
        return found[0] if found else None
