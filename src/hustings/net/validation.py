"""What a member believes of what arrives: numbers, and claims about members.

Numbers. Terms, rounds, tokens, incarnations and counters decide by being higher than others. A
member that sent the highest number that can be written would decide for good, since no member could
send a higher one. So the date bounds these numbers. An honest term grows by less than one per
millisecond, so it is less than the milliseconds since 1970. A lie just within the bound is exceeded
a moment later, because the bound has grown.

    last month, by this clock    terms may jump up to here, if that is confirmed
    next month, by this clock    they may go up to here in small steps; beyond, they are refused

A number that a protocol derives from these numbers is bounded in the same way, before it is
derived: a term that a message leads to counts like a term in the message. The two months are for
clocks that differ. A term that is far above all that is known here is refused at first. It is
believed when a second member also sends a far term, or when its sender still sends one some seconds
later: a group that was cut off may have held many elections meanwhile. A member that knows no term
yet believes the first one that it hears.

Members. A process that is in the group, or that reaches a group without a key, can speak of members
that do not exist. So what arrives about a member must obey the rules for a member's own data: its
name, its attributes, an address that is possible. The id of a member is the digest of its name, so
no member goes by another's name. One teller may bring `newcomers` unknown members a second in the
long run; all tellers together may bring twice as many. At once they may bring four times as many,
since a state transfer must be able to tell of a large group. No member is accepted by hearsay at an
address that belongs to another one.

Law of this file: no clock inside; the date and the time come as arguments.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    NamedTuple,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from hustings.core.choice import Candidate, MemberId
from hustings.core.messages import PACE, TERM_NAMES, Message
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
from hustings.net.control_messages import ConfigConflictMsg
from hustings.net.limits import Rates, Reason
from hustings.net.peer_addresses import Place, read_place
from hustings.net.transport import Endpoint
from hustings.net.wire import Received

if TYPE_CHECKING:
    from hustings.net.node import MemberNode

CanRank = Callable[[Candidate], bool]
CandidateWalk = Callable[[Any], Iterator[Candidate]]

_AT_ONCE = 4  # seconds' worth of newcomers at once
_SOURCES = 4096  # sources of newcomers that introduce themselves


class MemberClaims:
    """The claims about members that one node lets through."""

    def __init__(self, node: MemberNode) -> None:
        limits = node.filter.wire.limits
        rate, burst = limits.newcomers, round(_AT_ONCE * limits.newcomers)
        self._node = node
        self._tellers = Rates(rate, burst, 2 * limits.members)
        self._together = Rates(2 * rate, 2 * burst, 1)
        self._themselves = Rates(rate, burst, _SOURCES)  # by source address

    def heard(self, got: Received, source: Endpoint, now: float) -> Message | None:
        """The part of a message that may be handled: all, some of it, or None."""
        message, reason = got.message, None
        if isinstance(message, GossipMsg | WelcomeMsg):
            return self._news(message, got.sender, source, now)
        if isinstance(message, JoinMsg | PullMsg):
            new = self._node.stack.membership.circle.entry(got.sender) is None
            if not self._fits(message.entry):
                reason = Reason.BAD_NAME
            elif new and not self._themselves.allow(source[0], now):
                reason = Reason.NEWCOMERS
        elif isinstance(message, ConfigConflictMsg):
            if not is_address(message.host, message.port):  # a name would have to be resolved
                reason = Reason.BAD_NAME
        else:
            reason = flaw_of_candidates(message, self._node.election.can_rank)
        if reason is None:
            return message
        self._refuse(reason, source, now)
        return None

    def _news(self, message: News, teller: MemberId, source: Endpoint, now: float) -> Message:
        known = self._node.stack.membership.circle.entry
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
            owner = self._node.address_book.owner(place.endpoint) or who
        if owner != who:
            return Reason.ADDRESS_TAKEN
        if self._tellers.allow(teller, now) and self._together.allow(None, now):
            return None
        return Reason.NEWCOMERS

    @staticmethod
    def _fits(entry: Entry) -> bool:
        return place_of(entry) is not None and presentable(entry.who)

    def _refuse(self, reason: Reason, source: Endpoint, now: float) -> None:
        self._node.filter.counters.count(reason)
        self._node.rejections.saw(reason, source, now)


def place_of(entry: Entry) -> Place | None:
    """Where a member is said to be, if the name in the text is that member's."""
    place = read_place(entry.place)
    return place if place is not None and _id_of(place.name) == entry.who.id else None


def is_address(host: str, port: int) -> bool:
    """Whether this is a possible numeric address of a member."""
    return read_place(Place((host, port), "x").text()) is not None


@lru_cache(maxsize=8192)
def _id_of(name: str) -> MemberId:
    return member_id(name)


def flaw_of_candidates(message: Message, can_rank: CanRank) -> Reason | None:
    """What is wrong with a candidate anywhere in an election's message.

    A candidate must be fit to be shown to people. And it must have the attributes that candidates
    are ranked by, since an election may compare it now or at a later timer.
    """
    walk = _candidates_of(type(message))
    for candidate in () if walk is None else walk(message):
        if not presentable(candidate):
            return Reason.BAD_NAME
        if not can_rank(candidate):
            return Reason.BAD_FIELDS
    return None


@lru_cache(maxsize=256)
def _candidates_of(kind: Any) -> CandidateWalk | None:
    """The walk that finds candidates in values of a type; None if there are none."""
    if kind is Candidate:
        return lambda value: iter((value,))
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = get_type_hints(kind)
        names = kind.__struct_fields__
        return _candidates_in([(name, _candidates_of(fields[name])) for name in names])
    origin, parts = get_origin(kind), get_args(kind)
    if origin is dict:
        return _each(_candidates_of(parts[1]), lambda value: value.values())
    if origin in (tuple, list, set, frozenset):  # also of a fixed length: parts may differ
        return _each(_any_of(parts), iter)
    return _any_of(parts) if origin in (Union, types.UnionType) else None


def _candidates_in(parts: list[tuple[str, CandidateWalk | None]]) -> CandidateWalk | None:
    found = [(name, walk) for name, walk in parts if walk is not None]

    def walk_all(value: Any) -> Iterator[Candidate]:
        for name, walk in found:
            yield from walk(getattr(value, name))

    return walk_all if found else None


def _any_of(kinds: tuple[Any, ...]) -> CandidateWalk | None:
    """The walk for a value of any one of these types."""
    walks = [(each, walk) for each in kinds if each is not ... and (walk := _candidates_of(each))]

    def walk_one(value: Any) -> Iterator[Candidate]:
        for kind, walk in walks:
            if isinstance(value, get_origin(kind) or kind):
                yield from walk(value)
                return

    return walk_one if walks else None


def _each(
    walk: CandidateWalk | None, values: Callable[[Any], Iterable[Any]]
) -> CandidateWalk | None:
    if walk is None:
        return None
    return lambda value: (found for part in values(value) for found in walk(part))


# Numbers

RELEASED = 1_767_225_600.0  # 2026: a clock that shows an earlier date is wrong
MONTH = 32 * 86_400.0  # seconds
STEP = 1 << 16  # how far a term may be ahead of all that is known
SHORT_STEP = 16  # the same where only a lie can have brought the term
_CONFIRMED = 2.0  # seconds after which a far term counts if its sender still sends it
_TIMES = 3  # how often it must have been sent
_RECENT = 10.0  # seconds for which a far term is remembered
_MOST = 64  # senders of far terms that are remembered

_TERM = (1, "term")

Found = tuple[tuple[int, str | None], float]  # (how fast it can grow, what it follows), its value
NumberWalk = Callable[[Any], Iterator[Found]]


class Bounds(NamedTuple):
    """The bounds for one kind of number: how far it may jump, and its absolute limit."""

    jump: int
    end: int


def bounds(date: float, per_ms: int) -> Bounds:
    """The bounds of a number that grows at most so fast; `date` in seconds since 1970.

    >>> bounds(RELEASED, 1).end < bounds(RELEASED + 60.0, 1).end < 2**41
    True
    """
    date = max(date, RELEASED)
    return Bounds(int((date - MONTH) * 1000.0) * per_ms, int((date + MONTH) * 1000.0) * per_ms)


class NumberBounds:
    """What one member believes about the numbers in messages."""

    __slots__ = ("_far", "_known", "_walks")

    def __init__(self, kinds: Iterable[type[Message]]) -> None:
        self._walks = _walks_by_kind(tuple(kinds))
        self._known: dict[str, int] = {}  # the highest of each kind that was believed or sent
        self._far: dict[MemberId, tuple[float, int]] = {}  # senders of far terms: since when, times

    def known(self, follows: str = "term") -> int | None:
        """The highest term, or token, that was believed or sent here."""
        return self._known.get(follows)

    def refuses(
        self, sender: MemberId, message: Message, date: float, now: float, implied: int = 0
    ) -> Reason | None:
        """Why a message is not believed; None: it is, and its numbers are known from now on.

        `implied` is a term that the message leads to, beside the terms in it.
        """
        walk = self._walks.get(type(message))
        if walk is None:
            return None
        found = list(walk(message))
        if implied:
            found.append((_TERM, implied))
        for (per_ms, follows), value in found:
            if reason := self._judge(sender, per_ms, follows, value, date, now):
                return reason
        self._learn(found)
        return None

    def said(self, message: Message, implied: int = 0) -> None:
        """This member sends the message itself."""
        walk = self._walks.get(type(message))
        if walk is not None:
            self._learn((*walk(message), (_TERM, implied)))

    def _learn(self, found: Iterable[Found]) -> None:
        for (_, follows), value in found:
            if follows is not None and value > self._known.get(follows, 0):
                self._known[follows] = int(value)

    def _judge(
        self,
        sender: MemberId,
        per_ms: int,
        follows: str | None,
        value: float,
        date: float,
        now: float,
    ) -> Reason | None:
        if value < STEP:
            return Reason.IMPLAUSIBLE_NUMBER if value < 0 and follows is not None else None
        jump, end = bounds(date, per_ms)
        if not value <= end:
            return Reason.IMPLAUSIBLE_NUMBER
        known = None if follows is None else self._known.get(follows)
        if follows is None or (known is not None and value <= known):
            return None
        if value > jump:
            near = known is not None and value <= known + SHORT_STEP
            return None if near else Reason.FAR_TERM
        if follows != "term" or known is None or value <= known + STEP:
            return None
        return None if self._confirmed(sender, now) else Reason.FAR_TERM

    def _confirmed(self, sender: MemberId, now: float) -> bool:
        """Whether other members send such terms too, or this one has done so for a while."""
        self._far = {who: said for who, said in self._far.items() if now - said[0] < _RECENT}
        since, times = self._far.pop(sender, (now, 0))
        others = bool(self._far)
        self._far[sender] = (since, times + 1)
        if len(self._far) > _MOST:
            del self._far[next(iter(self._far))]
        if others or (now - since >= _CONFIRMED and times + 1 >= _TIMES):
            self._far.clear()
            return True
        return False


# The places of numbers in messages


@lru_cache(maxsize=64)
def _walks_by_kind(kinds: tuple[type[Message], ...]) -> Mapping[type[Message], NumberWalk]:
    """For each kind of message that has such numbers, the walk that finds them."""
    found = ((kind, _numbers_of(kind, "")) for kind in kinds)
    return {kind: walk for kind, walk in found if walk is not None}


def _numbers_of(kind: Any, name: str) -> NumberWalk | None:
    """The walk that finds numbers in values of a type; None if there are none.

    Lists are left out: their content is gossip, which bounds it when it takes it in.
    """
    if kind is int:
        return _leaf(_TERM) if name in TERM_NAMES else None
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = get_type_hints(kind, include_extras=True)
        fields = ((field, _numbers_of(hints[field], field)) for field in kind.__struct_fields__)
        return _numbers_in([(field, walk) for field, walk in fields if walk is not None], getattr)
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _annotated(parts, name)
    if origin in (Union, types.UnionType):
        walks = [walk for part in parts if (walk := _numbers_of(part, name)) is not None]
        return _optional(walks[0]) if walks else None
    if origin is tuple and ... not in parts:
        walks_at = [(place, _numbers_of(part, "")) for place, part in enumerate(parts)]
        return _numbers_in([(at, walk) for at, walk in walks_at if walk is not None], _item)
    return None


def _annotated(parts: tuple[Any, ...], name: str) -> NumberWalk | None:
    for meta in parts[1:]:
        if isinstance(meta, msgspec.Meta) and meta.extra and PACE in meta.extra:
            return _leaf((meta.extra[PACE], meta.extra.get("follows")))
    bare = parts[0]
    return None if bare is int else _numbers_of(bare, name)  # own bounds are kept


def _leaf(what: tuple[int, str | None]) -> NumberWalk:
    return lambda value: iter(((what, value),))


def _item(value: Any, place: Any) -> Any:
    return value[place]


def _numbers_in(
    parts: list[tuple[Any, NumberWalk]], get: Callable[[Any, Any], Any]
) -> NumberWalk | None:
    if not parts:
        return None

    def walk(value: Any) -> Iterator[Found]:
        for part, inner in parts:
            yield from inner(get(value, part))

    return walk


def _optional(inner: NumberWalk) -> NumberWalk:
    return lambda value: iter(()) if value is None else inner(value)
