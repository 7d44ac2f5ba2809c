"""Where members are: the address book, and which of its addresses have answered.

The address book has what gossip says, and where members were heard. A place is a text that gossip
passes on: address and name, as `192.0.2.1:7400 web-1`. Until an address has answered, it gets a
question and nothing else.

    gossip: X is at V          -> PROBE(nonce) to V, addressed to X
    X at V: PROBE-REPLY(nonce) -> V belongs to X: all frames for X, also held ones, go there

Gossip about addresses is not proof. A liar that names a third party's address for other members
would make a whole group send there: heartbeats, gossip, state transfers, connections. So an address
counts only in two cases. Either that member has answered from it with a number that went to no
other address. Or a datagram of the member came from it, where source addresses cannot well be
forged: sealed datagrams, and those on one machine.

While there is something to send, an address that does not count yet gets a few questions for each
piece of news about its member. Each question waits twice as long as the one before. Question or
answer may be lost, and with partial views there may be no other news until the member itself is
reached.

Bounds     One machine's addresses get as many questions at a time as a window allows. The window
           grows with every answer, and shrinks with every question that is not answered in time,
           as a TCP sender finds out what a path bears. Held frames are limited for each member,
           and their bytes are limited in all.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from hustings.core.choice import MemberId
from hustings.core.digests import blake2b
from hustings.core.errors import BadInput
from hustings.core.names import is_member_name
from hustings.layers.gossip.membership import Membership
from hustings.layers.gossip.messages import MAX_PLACE
from hustings.net.addresses import Address, is_loopback, parse_address
from hustings.net.clock import member_clock
from hustings.net.control_messages import ProbeMsg
from hustings.net.limits import Reason
from hustings.net.transport import Endpoint

if TYPE_CHECKING:
    from hustings.net.node import MemberNode

_LOST = 64  # lost addresses that are kept, in case their members are only cut off
_MISSED = 86_400.0  # seconds for which a lost member is looked for: a day
_HEARD = 4096  # members whose last address is kept


class Place(NamedTuple):
    """A member's address and name."""

    endpoint: Endpoint
    name: str

    def text(self) -> str:
        """The text that gossip passes on.

        >>> Place(("::1", 7400), "web-1").text()
        '[::1]:7400 web-1'
        """
        return f"{Address(*self.endpoint)} {self.name}"


def read_place(text: str) -> Place | None:
    """The place in a text from gossip; None if the text is malformed.

    >>> read_place("192.0.2.1:7400 web-1")
    Place(endpoint=('192.0.2.1', 7400), name='web-1')
    >>> read_place("everywhere web-1"), read_place("[fe80::1%eth0]:7400 web-1")
    (None, None)
    """
    # The sender of a text decides what is cached here, so a longer text is not read at all.
    return _read_place(text) if len(text) <= MAX_PLACE else None


@lru_cache(maxsize=8192)
def _read_place(text: str) -> Place | None:
    where, blank, name = text.partition(" ")
    if not blank or not is_member_name(name):
        return None
    try:
        address = parse_address(where, "place")
    except BadInput:
        return None
    if address.ip is None or address.ip.is_multicast or address.is_wildcard or not address.port:
        return None
    if "%" in address.host:
        return None  # an interface's name means nothing elsewhere
    place = Place((address.host, address.port), name)
    return place if place.text() == text else None  # only in the spelling of the member itself


class AddressBook:
    """One member's address book."""

    def __init__(self, me: MemberId, membership: Membership) -> None:
        self._me = me
        self._circle = membership.circle
        self._heard: dict[MemberId, Endpoint] = {}
        self._lost: dict[Endpoint, float | None] = {}  # since when; latest last
        self._known: dict[MemberId, Endpoint] = {}  # of the present view
        # Whether a member has proven an address. A lost member is looked for only at such an
        # address.
        self.reached: Callable[[MemberId, Endpoint], bool] = lambda member, endpoint: True
        self._owners: dict[Endpoint, MemberId] = {}
        self._version = -1

    def place(self, member: MemberId) -> Place | None:
        """The place that gossip gives for a member."""
        entry = self._circle.entry(member)
        return None if entry is None else read_place(entry.place)

    def endpoint(self, member: MemberId) -> Endpoint | None:
        """The address to send to."""
        place = self.place(member)
        return self._heard.get(member) if place is None else place.endpoint

    def heard(self, member: MemberId, source: Endpoint) -> None:
        """A frame came from a member that gossip may not have named yet."""
        if self._heard.get(member) == source:
            return
        self._heard.pop(member, None)
        self._heard[member] = source
        if len(self._heard) > _HEARD:
            del self._heard[next(iter(self._heard))]

    def came_from(self, member: MemberId) -> Endpoint | None:
        """Where the latest datagram of a member came from."""
        return self._heard.get(member)

    @property
    def known(self) -> Mapping[MemberId, Endpoint]:
        """The addresses that gossip gives for the other live members."""
        self._refresh()
        return self._known

    def some(self, most: int) -> tuple[Endpoint, ...]:
        """Some of the same addresses, those that have answered."""
        there = (each for member, each in self.known.items() if self.reached(member, each))
        return tuple(islice(there, most))

    def everybody(self) -> list[Endpoint]:
        """The same addresses, without their members."""
        return list(self.known.values())

    def owner(self, endpoint: Endpoint) -> MemberId | None:
        """The live member at an address."""
        self._refresh()
        return self._owners.get(endpoint)

    def lost(self, now: float) -> list[Endpoint]:
        """Addresses of members that went out of view, for at most `_MISSED` seconds."""
        self._refresh()
        since = {each: now if at is None else at for each, at in self._lost.items()}
        self._lost = {each: at for each, at in since.items() if now - at < _MISSED}
        return list(self._lost)

    def _refresh(self) -> None:
        view = self._circle.view
        if view.version == self._version:
            return
        self._version = view.version
        before = self._known
        self._known, self._owners = {}, {}
        for member in view.ids:
            place = self.place(member) if member != self._me else None
            if place is not None:
                self._known[member] = place.endpoint
                self._owners[place.endpoint] = member
                self._lost.pop(place.endpoint, None)
        for member, endpoint in before.items():
            lost = member not in self._known and endpoint not in self._owners
            if lost and self.reached(member, endpoint):
                self._lost.pop(endpoint, None)
                self._lost[endpoint] = None
        while len(self._lost) > _LOST:
            del self._lost[next(iter(self._lost))]


K = TypeVar("K")
V = TypeVar("V")

_ANSWER = 1.0  # seconds that an answer may take
_SLOT = 2.0  # seconds after which questions get other numbers; an answer may take as long again
_AGAIN = 0.2  # seconds between two questions to one address, at least
_TIMES = 4  # questions for one piece of news
_WINDOW, _LEAST, _MOST = 32, 2, 512  # questions under way to a machine: first, least, most
_GAIN = 4  # an answer widens the window by this, since some are lost without any lie
_TOGETHER = 1024  # questions under way to all machines
_HOSTS = 1024  # machines for which a window is kept
_FRAMES = 8  # frames held for one member
_MEMBERS = 4096  # members for which frames are held
_BYTES = 4 * 1024 * 1024  # bytes of all held frames
_FRESH = 2.0  # seconds for which a frame is held
SMALL = 64  # members of a group in which all ask each other as soon as they are known
_NEXT = 4  # members of a larger group that do the same: a next leader has to reach all at once


class Held(NamedTuple):
    """A frame that waits for an address to be proven."""

    data: bytes
    streamed: bool
    at: float


class Asked(NamedTuple):
    """A question that went to an address, and the news of the member that caused it."""

    endpoint: Endpoint
    at: float
    news: tuple[int, int]
    times: int  # how often it was sent for that news


class Window:
    """How many questions one machine gets at a time."""

    __slots__ = ("_under_way", "width")

    def __init__(self, width: int) -> None:
        self.width = width
        self._under_way: dict[MemberId, float] = {}  # oldest first

    def has_room(self, now: float) -> bool:
        """Whether one more may go out; a question without an answer in time narrows the window."""
        while self._under_way:
            member, at = next(iter(self._under_way.items()))
            if now - at < _ANSWER:
                break
            del self._under_way[member]
            self.width = max(_LEAST, self.width - 1)
        return len(self._under_way) < self.width

    def ask(self, member: MemberId, now: float) -> None:
        """A question goes out."""
        self._under_way.pop(member, None)
        self._under_way[member] = now

    def answered(self, member: MemberId) -> None:
        """A question was answered, perhaps late."""
        self._under_way.pop(member, None)
        self.width = min(_MOST, self.width + _GAIN)


class AddressValidation:
    """What one node knows about addresses."""

    def __init__(self, node: MemberNode) -> None:
        self._node = node
        self._secret = os.urandom(16)
        self._sealed = node.filter.wire.ring is not None
        self._most = 2 * node.filter.wire.limits.members
        self._answered: dict[MemberId, Endpoint] = {}
        self.answers = 0  # answers to questions so far
        self._spoke: dict[MemberId, Endpoint] = {}  # heard from there, where that is proof
        self._asked: dict[MemberId, Asked] = {}
        self._voided: dict[MemberId, int] = {}  # how often its answers became void
        self._wanted: dict[str, dict[MemberId, Endpoint]] = {}  # to ask when the window has room
        self._held: dict[MemberId, list[Held]] = {}
        self._bytes = 0
        self._windows: dict[str, Window] = {}
        self._together = Window(_TOGETHER)
        self._timer: asyncio.TimerHandle | None = None

    def stop(self) -> None:
        """Ask no more, and drop held frames."""
        self._wanted, self._held, self._bytes = {}, {}, 0
        if self._timer is not None:
            self._timer.cancel()

    def reached(self, member: MemberId, endpoint: Endpoint) -> bool:
        """Whether a member is known to be at an address."""
        return self._answered.get(member) == endpoint or self._spoke.get(member) == endpoint

    def met(self, member: MemberId) -> bool:
        """Whether a member has answered here. In a large group few are asked: then any may be."""
        known = self._node.address_book.known
        endpoint = known.get(member)
        return len(known) > SMALL or (endpoint is not None and self.reached(member, endpoint))

    def answered(self, member: MemberId) -> Endpoint | None:
        """Where a member has answered a question of this process."""
        return self._answered.get(member)

    # Out

    def put(self, member: MemberId, endpoint: Endpoint, data: bytes, streamed: bool) -> None:
        """Send a frame to a member; if its address is not proven, hold the frame until it is.

        A member that is said to have moved gets frames at its old address until it answers at the
        new.
        """
        if self.reached(member, endpoint):
            self._node.put(endpoint, data, streamed, member)
            return
        self.ask(member, endpoint)
        before = self._answered.get(member, self._spoke.get(member))
        if before is not None:
            self._node.put(before, data, streamed, member)
        self._hold(member, Held(data, streamed, self._now()))

    def ask(self, member: MemberId, endpoint: Endpoint) -> None:
        """Ask a member to prove that it is there, unless it was asked a moment ago."""
        asked = self._asked.get(member)
        if asked is not None and asked.endpoint == endpoint and not self._is_due(member, asked):
            return
        wanted = self._wanted.setdefault(endpoint[0], {})
        if wanted.get(member) != endpoint:
            _remember(wanted, member, endpoint, self._most)
        if len(self._wanted) > _HOSTS:
            del self._wanted[next(iter(self._wanted))]
        self._go_on(endpoint[0])

    def ask_back(self, member: MemberId, source: Endpoint) -> None:
        """Ask a member where a datagram of it came from, as large as the question or larger.

        So this needs no window: no address gets more than was sent.
        """
        now, asked = self._now(), self._asked.get(member)
        if asked is None or asked.endpoint == source:
            _remember(self._asked, member, self._asking(member, source, now), self._most)
        self._node.introduce(source, ProbeMsg(self._nonce(member, source, now)), member)

    def void(self, member: MemberId) -> None:
        """All answers of a member so far are void: the next question has another number."""
        _remember(self._voided, member, self._voided.get(member, 0) + 1, self._most)

    def _is_due(self, member: MemberId, asked: Asked) -> bool:
        """Whether there is news of a member, or a question or its answer must have been lost."""
        waited = self._now() - asked.at
        if self._news(member) > asked.news:
            return waited >= _AGAIN
        return asked.times < _TIMES and waited >= _ANSWER * 2 ** (asked.times - 1)

    def look_round(self) -> None:
        """Ask new members at once if the group is small, or if this member may lead soon."""
        node = self._node
        if len(node.address_book.known) > SMALL and not self._is_next():
            return
        strict = node.presence.is_strict
        for member, endpoint in node.address_book.known.items():
            if not self.reached(member, endpoint) or (strict and not node.presence.has(member)):
                self.ask(member, endpoint)

    def _is_next(self) -> bool:
        node = self._node
        ranked = node.leadership.electors.view.ranking(node.stack.choice).ids
        return node.runner.me.id in ranked[:_NEXT]

    # In

    def heard(self, member: MemberId, source: Endpoint) -> None:
        """A datagram of a member came from there; it is no proof if gossip gives another address.

        Two processes may have one name, and the new one must not be taken for the other.
        """
        if self._spoke.get(member) == source or not (self._sealed or is_loopback(source[0])):
            return
        if self._node.address_book.endpoint(member) != source:
            return
        _remember(self._spoke, member, source, self._most)
        self._release(member)

    def present(self, nonce: int, member: MemberId, source: Endpoint) -> bool:
        """A member answers a question; returns whether it is one of this class."""
        asked = self._asked.get(member)
        places = [source] if asked is None else [asked.endpoint, source]
        endpoint = next((each for each in places if self._is_mine(nonce, member, each)), None)
        if endpoint is None:
            return False
        if asked is not None and asked.endpoint == endpoint:
            del self._asked[member]
        self.answers += 1
        if endpoint == self._node.address_book.endpoint(member):
            _remember(self._answered, member, endpoint, self._most)
        self._window(endpoint[0]).answered(member)
        self._together.answered(member)
        self._release(member)
        self._node.crash_watch.following = False
        self._go_on(endpoint[0])
        return True

    # Inside

    def _now(self) -> float:
        return member_clock().time()

    def _news(self, member: MemberId) -> tuple[int, int]:
        """How new the news of a member is; for a member without gossip, the time it was heard."""
        entry = self._node.stack.membership.circle.entry(member)
        if entry is None:
            return (0, int(self._now() / _ANSWER))
        return (entry.incarnation, entry.counter)

    def _is_mine(self, nonce: int, member: MemberId, endpoint: Endpoint) -> bool:
        now = self._now()
        return nonce in (
            self._nonce(member, endpoint, now),
            self._nonce(member, endpoint, now - _SLOT),
        )

    def _nonce(self, member: MemberId, endpoint: Endpoint, now: float) -> int:
        """A number that only a reader at this address can know; computed, so it needs no memory.

        It changes with time, and whenever the member's answers become void. So a recorded answer
        is soon worth nothing.
        """
        when = f"{math.floor(now / _SLOT)} {self._voided.get(member, 0)}"
        what = f"{member} {endpoint[0]} {endpoint[1]} {when}".encode()
        digest = blake2b(what, key=self._secret, digest_size=8, person=b"hustings proof").digest()
        return (1 << 52) | int.from_bytes(digest, "big") >> 12

    def _window(self, host: str) -> Window:
        window = self._windows.get(host)
        if window is None:
            window = Window(_WINDOW)
            _remember(self._windows, host, window, _HOSTS)
        return window

    def _go_on(self, host: str) -> None:
        """Ask one machine as many questions as its window allows, and the rest later."""
        now, wanted = self._now(), self._wanted.get(host)
        window = self._window(host)
        while wanted and window.has_room(now) and self._together.has_room(now):
            member, endpoint = next(iter(wanted.items()))
            del wanted[member]
            window.ask(member, now)
            self._together.ask(member, now)
            _remember(self._asked, member, self._asking(member, endpoint, now), self._most)
            self._node.introduce(endpoint, ProbeMsg(self._nonce(member, endpoint, now)), member)
        if not wanted:
            self._wanted.pop(host, None)
        self._look_again()

    def _asking(self, member: MemberId, endpoint: Endpoint, now: float) -> Asked:
        news, before = self._news(member), self._asked.get(member)
        same = before is not None and (before.endpoint, before.news) == (endpoint, news)
        return Asked(endpoint, now, news, before.times + 1 if before is not None and same else 1)

    def _look_again(self) -> None:
        """Start a timer for what still waits."""
        if (self._wanted or self._held) and self._timer is None:
            self._timer = member_clock().call_later(_ANSWER, self._later)

    def _later(self) -> None:
        self._timer = None
        self._discard(self._now())
        known = self._node.address_book.endpoint
        for member in list(self._held):
            if (endpoint := known(member)) is not None:
                self.ask(member, endpoint)
        for node, wanted in list(self._wanted.items()):
            self._wanted[node] = {each: to for each, to in wanted.items() if known(each) == to}
            self._go_on(node)
        self._look_again()

    def _hold(self, member: MemberId, frame: Held) -> None:
        frames = self._held.get(member, [])
        if len(frames) >= _FRAMES:
            self._bytes -= len(frames.pop(0).data)
        if self._bytes + len(frame.data) > _BYTES or len(self._held) > _MEMBERS:
            self._node.filter.counters.count(Reason.OUTBOX)
            return
        self._held[member] = frames
        frames.append(frame)
        self._bytes += len(frame.data)
        self._look_again()

    def _release(self, member: MemberId) -> None:
        """Send held frames, if the member's address is proven now."""
        frames = self._held.get(member)
        endpoint = None if frames is None else self._node.address_book.endpoint(member)
        if frames is None or endpoint is None or not self.reached(member, endpoint):
            return
        del self._held[member]
        now = self._now()
        for frame in frames:
            self._bytes -= len(frame.data)
            if now - frame.at < _FRESH:
                self._node.put(endpoint, frame.data, frame.streamed, member)

    def _discard(self, now: float) -> None:
        """Drop frames that were held for too long."""
        for member in list(self._held):
            kept = [each for each in self._held[member] if now - each.at < _FRESH]
            self._bytes -= sum(len(each.data) for each in self._held[member])
            self._bytes += sum(len(each.data) for each in kept)
            if kept:
                self._held[member] = kept
            else:
                del self._held[member]


def _remember(table: dict[K, V], key: K, value: V, most: int) -> None:
    """Add to a table that keeps `most` entries and drops the oldest."""
    table.pop(key, None)
    table[key] = value
    if len(table) > most:
        del table[next(iter(table))]
