"""Numbers that members outbid each other with: which of them no member can have reached.

Terms, rounds, tokens, incarnations and counters decide by being higher than others. Who says the
highest that can be written decides for good: nobody can outbid it. So the date bounds them. An
honest term grows by less than one in a millisecond, so it is less than the milliseconds since 1970;
a lie that is just within the bound is outbid a moment later, because the bound has grown.

    last month, by this clock    terms may jump up to here, if that is confirmed
    next month, by this clock    they may go up to here in small steps; beyond, they are refused

What a protocol reckons from these numbers is bounded likewise, before it does so: a term that a
message leads to counts as one that stands in it.

The two months are for clocks that differ. A term that is far above all that is known here is
refused at first. It is believed when a second member says the like, or when its sender still says
so some seconds later: a group that was cut off may have held many elections meanwhile. A member
that knows of no term yet believes the first one that it hears.

Law of this file: no clock inside; the date and the time come as arguments.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

from hustings.core.choice import Candidate, MemberId
from hustings.core.messages import PACE, TERM_NAMES, Message
from hustings.layers.leadership.priority import favour_of
from hustings.net.limits import Reason

RELEASED = 1_767_225_600.0  # 2026: a clock that shows an earlier date is wrong
MONTH = 32 * 86_400.0  # seconds
STEP = 1 << 16  # what a term may be ahead of all that is known
SHORT_STEP = 16  # the same where only a lie can have brought it
_CONFIRMED = 2.0  # seconds after which a far term counts if its sender still says it
_TIMES = 3  # that it must have said so
_RECENT = 10.0  # seconds for which it is remembered
_MOST = 64  # senders of far terms that are remembered

_TERM = (1, "term")
_FAVOUR = (1, None)

Found = tuple[tuple[int, str | None], float]  # how fast it can grow and what it follows, its value
Walk = Callable[[Any], Iterator[Found]]


class Bounds(NamedTuple):
    """Up to where numbers may jump, and up to where they may go, for one kind of them."""

    jump: int
    end: int


def bounds(date: float, per_ms: int) -> Bounds:
    """The bounds of a number that grows so fast at most; `date` in seconds since 1970.

    >>> bounds(RELEASED, 1).end < bounds(RELEASED + 60.0, 1).end < 2**41
    True
    """
    date = max(date, RELEASED)
    return Bounds(int((date - MONTH) * 1000.0) * per_ms, int((date + MONTH) * 1000.0) * per_ms)


class Plausible:
    """What one member believes of the numbers in messages."""

    __slots__ = ("_far", "_known", "_walks")

    def __init__(self, kinds: Iterable[type[Message]]) -> None:
        self._walks = _walks(tuple(kinds))
        self._known: dict[str, int] = {}  # the highest of each kind that was believed or said
        self._far: dict[MemberId, tuple[float, int]] = {}  # who says far terms: since when, times

    def known(self, follows: str = "term") -> int | None:
        """The highest term, or token, that was believed or said here."""
        return self._known.get(follows)

    def refuses(
        self, sender: MemberId, message: Message, date: float, now: float, implied: int = 0
    ) -> Reason | None:
        """Why a message is not believed, or None: then its numbers are known from now on.

        `implied` is a term that it leads to beside those that stand in it.
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
        """This member says so itself."""
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
        """Whether others say such terms too, or this one has done so for a while."""
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


# Where the numbers are


@lru_cache(maxsize=64)
def _walks(kinds: tuple[type[Message], ...]) -> Mapping[type[Message], Walk]:
    """For each kind of message that has such numbers, how they are found in it."""
    found = ((kind, _walk_of(kind, "")) for kind in kinds)
    return {kind: walk for kind, walk in found if walk is not None}


def _walk_of(kind: Any, name: str) -> Walk | None:
    """How the numbers in values of a type are found; None if there are none.

    Lists are left out: what stands in them is gossip's, which bounds it as it takes it in.
    """
    if kind is int:
        return _leaf(_TERM) if name in TERM_NAMES else None
    if kind is Candidate:
        return _favour
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = get_type_hints(kind, include_extras=True)
        fields = ((field, _walk_of(hints[field], field)) for field in kind.__struct_fields__)
        return _parts([(field, walk) for field, walk in fields if walk is not None], getattr)
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _annotated(parts, name)
    if origin in (Union, types.UnionType):
        walks = [walk for part in parts if (walk := _walk_of(part, name)) is not None]
        return _optional(walks[0]) if walks else None
    if origin is tuple and ... not in parts:
        walks_at = [(place, _walk_of(part, "")) for place, part in enumerate(parts)]
        return _parts([(at, walk) for at, walk in walks_at if walk is not None], _item)
    return None


def _annotated(parts: tuple[Any, ...], name: str) -> Walk | None:
    for meta in parts[1:]:
        if isinstance(meta, msgspec.Meta) and meta.extra and PACE in meta.extra:
            return _leaf((meta.extra[PACE], meta.extra.get("follows")))
    bare = parts[0]
    return None if bare is int else _walk_of(bare, name)  # what has bounds of its own keeps them


def _leaf(what: tuple[int, str | None]) -> Walk:
    return lambda value: iter(((what, value),))


def _item(value: Any, place: Any) -> Any:
    return value[place]


def _parts(parts: list[tuple[Any, Walk]], get: Callable[[Any, Any], Any]) -> Walk | None:
    if not parts:
        return None

    def walk(value: Any) -> Iterator[Found]:
        for part, inner in parts:
            yield from inner(get(value, part))

    return walk


def _optional(inner: Walk) -> Walk:
    return lambda value: iter(()) if value is None else inner(value)


def _favour(value: Any) -> Iterator[Found]:
    if value.attributes:
        yield (_FAVOUR, favour_of(value))
