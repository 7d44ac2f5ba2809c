"""What is said about members, before anybody believes it: names, places, and how many are new.

Whoever is in the group, or reaches it where it has no key, can speak of members that do not exist.
So what arrives about a member is held to the rules for one's own: its name, its attributes, an
address that can be one. Its id is the digest of its name, so nobody goes by the name of another.

Of members that were unknown so far, one teller brings `newcomers` a second in the long run, all
tellers together twice as many, and at once four times as many: else a state transfer could not tell
of a large group. Nobody is taken in by hearsay at an address that belongs to somebody else.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from hustings.core.choice import Candidate, MemberId
from hustings.core.messages import Message
from hustings.core.names import member_id
from hustings.layers.gossip.messages import (
    Entry,
    GossipMsg,
    JoinMsg,
    News,
    PullMsg,
    WelcomeMsg,
    presentable,
)
from hustings.net.book import Place, read_place
from hustings.net.courtesy import OtherConfigMsg
from hustings.net.limits import Rates, Reason
from hustings.net.port import Endpoint
from hustings.net.wire import Received

if TYPE_CHECKING:
    from hustings.net.host import Host

CanRank = Callable[[Candidate], bool]
Walk = Callable[[Any], Iterator[Candidate]]

_AT_ONCE = 4  # seconds' worth of newcomers
_SOURCES = 4096  # of newcomers that introduce themselves


class Hearsay:
    """What one host lets through."""

    def __init__(self, host: Host) -> None:
        limits = host.gate.wire.limits
        rate, burst = limits.newcomers, round(_AT_ONCE * limits.newcomers)
        self._host = host
        self._tellers = Rates(rate, burst, 2 * limits.members)
        self._together = Rates(2 * rate, 2 * burst, 1)
        self._themselves = Rates(rate, burst, _SOURCES)  # by where they are

    def heard(self, got: Received, source: Endpoint, now: float) -> Message | None:
        """What may be handled of a message: all, a part of it, or nothing."""
        message, reason = got.message, None
        if isinstance(message, GossipMsg | WelcomeMsg):
            return self._news(message, got.sender, source, now)
        if isinstance(message, JoinMsg | PullMsg):
            new = self._host.stack.membership.circle.entry(got.sender) is None
            if not self._fits(message.entry):
                reason = Reason.BAD_NAME
            elif new and not self._themselves.allow(source[0], now):
                reason = Reason.NEWCOMERS
        elif isinstance(message, OtherConfigMsg):
            if not is_address(message.host, message.port):  # a name would have to be resolved
                reason = Reason.BAD_NAME
        else:
            reason = flaw_of_candidates(message, self._host.election.can_rank)
        if reason is None:
            return message
        self._refuse(reason, source, now)
        return None

    def _news(self, message: News, teller: MemberId, source: Endpoint, now: float) -> Message:
        known = self._host.stack.membership.circle.entry
        kept, taken = [], dict[Endpoint, MemberId]()
        for entry in message.entries:
            old = known(entry.who.id)
            if old is None or old.place != entry.place or old.who != entry.who:
                if reason := self._flaw(entry, old is None, teller, taken, now):
                    self._refuse(reason, source, now)
                    continue
            kept.append(entry)
        if len(kept) == len(message.entries):
            return message
        return msgspec.structs.replace(message, entries=tuple(kept))

    def _flaw(
        self,
        entry: Entry,
        new: bool,
        teller: MemberId,
        taken: dict[Endpoint, MemberId],
        now: float,
    ) -> Reason | None:
        place = place_of(entry)
        if place is None or not presentable(entry.who):
            return Reason.BAD_NAME
        who = entry.who.id
        if not new or who == teller:
            return None
        owner = taken.setdefault(place.endpoint, who)
        if owner == who:
            owner = self._host.book.owner(place.endpoint) or who
        if owner != who:
            return Reason.ADDRESS_TAKEN
        if self._tellers.allow(teller, now) and self._together.allow(None, now):
            return None
        return Reason.NEWCOMERS

    @staticmethod
    def _fits(entry: Entry) -> bool:
        return place_of(entry) is not None and presentable(entry.who)

    def _refuse(self, reason: Reason, source: Endpoint, now: float) -> None:
        self._host.gate.counters.count(reason)
        self._host.unreadable.saw(reason, source, now)


def place_of(entry: Entry) -> Place | None:
    """Where a member is said to be, if the name there is that member's."""
    place = read_place(entry.place)
    return place if place is not None and _id_of(place.name) == entry.who.id else None


def is_address(host: str, port: int) -> bool:
    """Whether somebody can be there, by number."""
    return read_place(Place((host, port), "x").text()) is not None


@lru_cache(maxsize=8192)
def _id_of(name: str) -> MemberId:
    return member_id(name)


def flaw_of_candidates(message: Message, can_rank: CanRank) -> Reason | None:
    """What is wrong with a candidate that an election's message speaks of, wherever it stands.

    It must be fit to be shown to people. And it must have what candidates are ranked by: an
    election compares them as it likes, now or when a timer goes.
    """
    walk = _walk_of(type(message))
    for candidate in () if walk is None else walk(message):
        if not presentable(candidate):
            return Reason.BAD_NAME
        if not can_rank(candidate):
            return Reason.BAD_FIELDS
    return None


@lru_cache(maxsize=256)
def _walk_of(kind: Any) -> Walk | None:
    """How the candidates in values of a type are found; None if there are none."""
    if kind is Candidate:
        return lambda value: iter((value,))
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = get_type_hints(kind)
        return _parts([(name, _walk_of(fields[name])) for name in kind.__struct_fields__])
    origin, parts = get_origin(kind), get_args(kind)
    if origin is dict:
        return _each(_walk_of(parts[1]), lambda value: value.values())
    if origin in (tuple, list, set, frozenset):  # of a fixed length too: some parts may be others
        return _each(_any_of(parts), iter)
    return _any_of(parts) if origin in (Union, types.UnionType) else None


def _parts(parts: list[tuple[str, Walk | None]]) -> Walk | None:
    found = [(name, walk) for name, walk in parts if walk is not None]

    def walk_all(value: Any) -> Iterator[Candidate]:
        for name, walk in found:
            yield from walk(getattr(value, name))

    return walk_all if found else None


def _any_of(kinds: tuple[Any, ...]) -> Walk | None:
    """Of a value that is of one of these types."""
    walks = [(each, walk) for each in kinds if each is not ... and (walk := _walk_of(each))]

    def walk_one(value: Any) -> Iterator[Candidate]:
        for kind, walk in walks:
            if isinstance(value, get_origin(kind) or kind):
                yield from walk(value)
                return

    return walk_one if walks else None


def _each(walk: Walk | None, values: Callable[[Any], Iterable[Any]]) -> Walk | None:
    if walk is None:
        return None
    return lambda value: (found for part in values(value) for found in walk(part))
