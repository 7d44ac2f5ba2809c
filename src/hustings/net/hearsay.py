"""What is said about members, before anybody believes it: names, places, and how many are new.

Whoever is in the group, or reaches it where it has no key, can speak of members that do not exist.
So what arrives about a member is held to the rules for one's own: its name, its attributes, an
address that can be one. Its id is the digest of its name, so nobody goes by the name of another.

Of members that were unknown so far, one teller brings `newcomers` a second in the long run, all
tellers together twice as many, and at once four times as many: else a state transfer could not tell
of a large group. Nobody is taken in by hearsay at an address that belongs to somebody else.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from hustings.core.choice import Candidate, MemberId
from hustings.core.messages import Message
from hustings.core.names import member_id
from hustings.net.book import Place, read_place
from hustings.net.courtesy import OtherConfigMsg
from hustings.net.limits import Rates, Reason
from hustings.net.port import Endpoint
from hustings.net.wire import Received
from hustings.substrate.gossip_messages import (
    Entry,
    GossipMsg,
    JoinMsg,
    News,
    PullMsg,
    WelcomeMsg,
    presentable,
)

if TYPE_CHECKING:
    from hustings.net.host import Host

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
        elif not are_presentable(message):
            reason = Reason.BAD_NAME
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


def are_presentable(message: Message) -> bool:
    """Whether all candidates that an election's message speaks of can be shown to people."""
    return all(presentable(getattr(message, name)) for name in _candidates(type(message)))


@lru_cache(maxsize=256)
def _candidates(kind: type[Message]) -> tuple[str, ...]:
    fields = msgspec.structs.fields(kind)
    return tuple(field.name for field in fields if field.type is Candidate)
