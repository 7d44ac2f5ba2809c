"""How much a member takes from others; why it refuses the rest, and how it counts and logs that.

Law of this file: no clock inside. Time comes as an argument, so tests need not wait. Every table
here has a size that does not depend on what arrives.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from enum import StrEnum
from functools import lru_cache
from threading import Lock
from typing import Annotated, Any, NamedTuple, Self

import msgspec
from msgspec import Meta

from hustings.core.errors import BadInput, UnknownName

LARGEST_DATAGRAM = 1200  # bytes: every path carries so much without fragmentation


class Reason(StrEnum):
    """Why something was refused or dropped; the value is the label in metrics."""

    # What arrives: the frame.
    TOO_LARGE = "too-large"
    NOT_A_FRAME = "not-a-frame"
    TRUNCATED = "truncated"  # a stream ended in the middle of a frame
    UNKNOWN_VERSION = "unknown-version"
    UNKNOWN_MODE = "unknown-mode"
    OTHER_GROUP = "other-group"
    # The seal.
    NOT_SEALED = "not-sealed"  # and this member has a key
    SEALED = "sealed"  # and this member has no key
    UNKNOWN_KEY = "unknown-key"
    BAD_SEAL = "bad-seal"  # changed on the way, or sealed for another group or direction
    # The envelope and what is in it.
    MALFORMED = "malformed"
    OTHER_PROTOCOL = "other-protocol"
    OTHER_PROTOCOL_VERSION = "other-protocol-version"
    UNKNOWN_KIND = "unknown-kind"
    BAD_FIELDS = "bad-fields"
    IMPLAUSIBLE_NUMBER = "implausible-number"  # no member can have reached it by now
    FAR_TERM = "far-term"  # a term or token far above all that is known here, not confirmed yet
    FUTURE_INCARNATION = "future-incarnation"  # it begins long after this machine's date
    BAD_NAME = "bad-name"  # of a member, an attribute or a place; not allowed here either
    ADDRESS_TAKEN = "address-taken"  # gossip puts a newcomer at another member's address
    TOO_MANY = "too-many"  # a list longer than a view may be
    MISDIRECTED = "misdirected"  # for another member
    ECHO = "echo"  # this member's own frame, come back
    DUPLICATE_NAME = (
        "duplicate-name"  # another incarnation, or another process, with this member's id
    )
    UNANSWERED = "unanswered"  # its sender has not answered, so it may be recorded
    UNVERIFIED = "unverified"  # another incarnation of a live member, or far too high numbers
    OLD_INCARNATION = "old-incarnation"  # of a sender that has restarted since
    REPLAYED = "replayed"
    TOO_LATE = "too-late"  # so far behind the newest that no record tells whether it came
    UNHANDLED = "unhandled"  # the election could not handle it: a defect, or a lie
    # Limits reached.
    RATE = "rate"
    NEWCOMERS = "newcomers"  # one member speaks of too many unknown members
    MEMBERS = "members"
    VIEW = "view"
    TRANSFER = "transfer"
    INBOX = "inbox"
    OUTBOX = "outbox"
    CONNECTIONS = "connections"
    SENDERS_FORGOTTEN = "senders-forgotten"
    UNSENDABLE = "unsendable"  # our own message, and no frame can hold it
    UNSENT = "unsent"  # the network did not take it
    UNKNOWN_ADDRESS = "unknown-address"  # for a member whose address is not known


STALE = frozenset((Reason.OLD_INCARNATION, Reason.REPLAYED, Reason.TOO_LATE))


class Counters:
    """How often each reason applied.

    >>> counters = Counters()
    >>> counters.count(Reason.RATE)
    >>> counters[Reason.RATE], counters.mapping()["echo"]
    (1, 0)
    """

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[Reason, int] = dict.fromkeys(Reason, 0)

    def count(self, reason: Reason, times: int = 1) -> None:
        """Count one more case, or more."""
        self._counts[reason] += times

    def __getitem__(self, reason: Reason) -> int:
        return self._counts[reason]

    @property
    def total(self) -> int:
        """The sum over all reasons."""
        return sum(self._counts.values())

    def mapping(self) -> dict[str, int]:
        """The count of every reason by its label, zeros too: for metrics."""
        return {reason.value: times for reason, times in self._counts.items()}


Bytes = Annotated[int, Meta(ge=1, le=64 * 1024 * 1024)]
Entries = Annotated[int, Meta(ge=1, le=1_000_000)]


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much one member of a group takes."""

    datagram: Annotated[int, Meta(ge=512, le=LARGEST_DATAGRAM)] = LARGEST_DATAGRAM  # bytes
    transfer: Bytes = 1024 * 1024  # bytes of one frame on a stream: joins, state transfer
    incomplete: Bytes = 8 * 1024 * 1024  # bytes of incomplete frames, on all streams of a process
    members: Entries = 4096
    view: Entries = 4096  # entries of any list in one message
    rate: Annotated[float, Meta(gt=0, le=1e6)] = 500.0  # messages per peer and second
    burst: Entries = 1000  # messages of one peer at once
    newcomers: Annotated[float, Meta(gt=0, le=1e6)] = 256.0  # unknown members per teller and second
    inbox: Entries = 4096  # messages that wait to be handled
    outbox: Entries = 4096  # frames that wait to be sent
    connections: Annotated[int, Meta(ge=1, le=65_536)] = 512  # from others; one per follower
    replay_window: Annotated[int, Meta(ge=64, le=65_536)] = (
        2048  # by how many frames a sender's order may vary
    )

    def broken_rules(self) -> list[str]:
        """Sentences about limits that contradict each other; empty when there are none."""
        broken = []
        if self.transfer < self.datagram:
            broken.append(f"transfer must be at least datagram ({self.datagram} bytes)")
        if self.incomplete < self.transfer:
            broken.append(f"incomplete must be at least transfer ({self.transfer} bytes)")
        if self.view > self.members:
            broken.append(f"view must be at most members ({self.members})")
        return broken

    @classmethod
    def parse(cls, settings: Mapping[str, object]) -> Self:
        """Limits from names and values, texts or numbers; one sentence reports all broken rules.

        >>> Limits.parse({"rate": "50", "members": 5, "view": 5}).rate
        50.0
        """
        fields = _limits(cls)
        values: dict[str, Any] = {}
        wrong: list[str] = []
        for name, value in settings.items():
            if name not in fields:
                raise UnknownName("limit", name, fields)
            try:
                values[name] = msgspec.convert(value, fields[name], strict=False)
            except (msgspec.ValidationError, ValueError, OverflowError) as error:
                wrong.append(f"limit {name}={value!r} does not do: {_small(str(error))}")
        if "members" in values and "view" not in values:
            values["view"] = min(values["members"], cls().view)
        if "transfer" in values and "incomplete" not in values:
            values["incomplete"] = max(values["transfer"], cls().incomplete)
        limits = cls(**values)
        if wrong := wrong or limits.broken_rules():
            raise BadInput("; ".join(wrong))
        return limits


@lru_cache(maxsize=8)
def _limits(kind: type[Limits]) -> Mapping[str, Any]:
    """The limits' types by name. To read them takes a millisecond, so they are kept."""
    return {field.name: field.type for field in msgspec.structs.fields(kind)}


def _small(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:].replace("`", "")


class Budget:
    """Bytes that all its users may hold together; callable from any thread.

    >>> budget = Budget()
    >>> budget.take(60, most=100), budget.take(60, most=100), budget.taken
    (True, False, 60)
    """

    __slots__ = ("_lock", "taken")

    def __init__(self) -> None:
        self._lock = Lock()
        self.taken = 0

    def take(self, size: int, most: int) -> bool:
        """Take `size` bytes if `most` are not exceeded; returns whether they were taken."""
        with self._lock:
            if self.taken + size > most:
                return False
            self.taken += size
            return True

    def give_back(self, size: int) -> None:
        """Free `size` bytes."""
        with self._lock:
            self.taken -= size


INCOMPLETE = Budget()  # bytes of frames that are not complete, on all streams of this process


class Rates:
    """A token bucket per peer: `rate` per second in the long run, `burst` at once.

    When more than `most` peers are heard, the peer that was silent longest is forgotten.

    >>> rates = Rates(rate=1.0, burst=2, most=10)
    >>> [rates.allow("peer", now) for now in (0.0, 0.0, 0.5, 1.0)]
    [True, True, False, True]
    """

    __slots__ = ("_buckets", "_burst", "_most", "_rate")

    def __init__(self, rate: float, burst: int, most: int) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._most = most
        self._buckets: dict[
            Hashable, tuple[float, float]
        ] = {}  # tokens, time; longest silent first

    def __len__(self) -> int:
        return len(self._buckets)

    def allow(self, peer: Hashable, now: float) -> bool:
        """Whether one more from this peer is within its rate; `now` in seconds."""
        known = self._buckets.pop(peer, None)
        if known is None:
            tokens, at = self._burst, now
            if len(self._buckets) >= self._most:
                del self._buckets[next(iter(self._buckets))]
        else:
            tokens, at = known
            if now > at:
                tokens, at = min(self._burst, tokens + (now - at) * self._rate), now
        allowed = tokens >= 1.0
        self._buckets[peer] = (tokens - 1.0 if allowed else tokens, at)
        return allowed


_SILENCE = 60.0  # seconds between two log lines of one kind

# Frames of other members that this member cannot understand.
_STRANGERS: Mapping[Reason, str] = {
    Reason.NOT_SEALED: "speaks without a key and this member has one: give all members the key",
    Reason.SEALED: "speaks sealed and this member has no key: give it the group's key",
    Reason.UNKNOWN_KEY: "has a key that this member has not: install the same keys on both",
    Reason.BAD_SEAL: "cannot be read: its key or its group is another one",
    Reason.OTHER_PROTOCOL: "runs another protocol in this group, or has another guard: all members "
    "must have the same",
    Reason.OTHER_PROTOCOL_VERSION: "runs another version of this group's protocol: upgrade one",
}

# Frames that no proper member would send, or not now.
_WORDS: Mapping[Reason, str] = {
    Reason.TOO_LARGE: "it is larger than any frame may be",
    Reason.NOT_A_FRAME: "it is no frame of hustings",
    Reason.TRUNCATED: "the stream ended in the middle of a frame",
    Reason.UNKNOWN_MODE: "it is neither sealed nor clear in a way that this hustings knows",
    Reason.OTHER_GROUP: "it is for another group",
    Reason.MALFORMED: "it cannot be read as a message",
    Reason.UNKNOWN_KIND: "this protocol has no such message",
    Reason.BAD_FIELDS: "a field is missing, is one too many, or is out of its bounds",
    Reason.IMPLAUSIBLE_NUMBER: "it holds a number that no member can have reached by now: a term, "
    "a token or a counter. A member lies, or its clock is more than a month ahead",
    Reason.FAR_TERM: "its term or token is far above all that this member has heard of. If it is "
    "true, others say so too, or its sender says it again, and then it is believed",
    Reason.FUTURE_INCARNATION: "its sender's incarnation begins more than a month after this "
    "machine's date: set the clocks, or another speaks in that member's name",
    Reason.BAD_NAME: "it speaks of a member, an attribute or an address in a way that could not be "
    "given here: a member lies, or runs another release",
    Reason.ADDRESS_TAKEN: "it puts a new member where another one is",
    Reason.NEWCOMERS: "it brings more unknown members than the limit newcomers allows",
    Reason.TOO_MANY: "it has a list that is longer than a view may be",
    Reason.MISDIRECTED: "it is for another member",
    Reason.ECHO: "it is a message of this member's own, from another address: a recording is "
    "played back, or a copy of this machine runs",
    Reason.DUPLICATE_NAME: "it is in this member's own name: another process has the same name, or "
    "says so",
    Reason.UNVERIFIED: "it is said to be of another incarnation of a live member, or its number is "
    "far ahead: that member is asked first",
    Reason.OLD_INCARNATION: "it is of a former incarnation of its sender: late, recorded, or in "
    "its name",
    Reason.REPLAYED: "it has come before: the network doubled it, it is played back, or its "
    "sender was restored from a snapshot. If many are refused, the sender is asked where it is",
    Reason.TOO_LATE: "its number is far behind its sender's latest: late, recorded, or sent "
    "in its name. If many are refused, the sender is asked where it is",
    Reason.RATE: "its sender says more than the limit rate allows",
}


class WireVersions(NamedTuple):
    """The wire versions of a member: it writes one, and reads those from `oldest` to `newest`."""

    oldest: int
    written: int
    newest: int

    def meets(self, other: WireVersions) -> bool:
        """Whether each reads what the other writes.

        >>> WireVersions(2, 2, 3).meets(WireVersions(2, 3, 3))
        True
        >>> WireVersions(2, 2, 3).meets(WireVersions(3, 3, 3))  # would not read the answers
        False
        """
        return (
            self.oldest <= other.written <= self.newest
            and other.oldest <= self.written <= other.newest
        )


class RejectionLog:
    """Log lines about what others send: each kind at most once a minute, with the number left out.

    >>> said = []
    >>> log = RejectionLog(said.append, WireVersions(2, 2, 2))
    >>> for at in (0.0, 1.0, 61.0): log.saw(Reason.TOO_LATE, ("192.0.2.1", 7400), at)
    >>> len(said), said[1][-24:]
    (2, '(too-late; 1 more since)')
    """

    def __init__(self, note: Callable[[str], None], versions: WireVersions) -> None:
        """`versions` are those of this member."""
        self._note = note
        self._versions = versions
        self._kinds: dict[str, tuple[float, float, int]] = {}  # allowed now, time, left out

    def saw(
        self,
        reason: Reason,
        source: tuple[str, int],
        now: float,
        versions: WireVersions | None = None,
    ) -> None:
        """A frame was refused; `versions` are those of its sender."""
        unknown, words = stranger(reason, versions, self._versions), _WORDS.get(reason)
        where = f"{source[0]}:{source[1]}"
        if unknown is not None:
            sentence = f"somebody at {where} is seen but not understood: it {unknown}"
        elif words is not None:
            sentence = f"refused a message from {where}: {words}"
        else:
            return
        self.say(reason.value, sentence, now, label=reason.value)

    def say(
        self, kind: str, sentence: str, now: float, at_once: int = 1, *, label: str = ""
    ) -> None:
        """Log something that others can cause as often as they like; there are few kinds of it.

        `at_once` lines of a kind may follow each other; in the long run one per minute.
        """
        left, at, more = self._kinds.get(kind, (float(at_once), now, 0))
        left = min(float(at_once), left + (now - at) / _SILENCE)
        if left < 1.0:
            self._kinds[kind] = (left, now, more + 1)
            return
        self._kinds[kind] = (left - 1.0, now, 0)
        tail = "; ".join(filter(None, (label, f"{more} more since" if more else "")))
        self._note(f"{sentence} ({tail})" if tail else sentence)


def stranger(reason: Reason, theirs: WireVersions | None, ours: WireVersions) -> str | None:
    """What is wrong with a member that cannot be understood, by the reason of a refusal.

    None: the reason says nothing of the kind.
    """
    if reason is Reason.UNKNOWN_VERSION and theirs is not None:
        return _other_version(theirs, ours)
    return _STRANGERS.get(reason)


def show_versions(oldest: int, newest: int) -> str:
    """Wire versions as text.

    >>> show_versions(3, 3), show_versions(3, 4)
    ('version 3', 'versions 3 to 4')
    """
    return f"version {oldest}" if oldest == newest else f"versions {oldest} to {newest}"


def _other_version(theirs: WireVersions, ours: WireVersions) -> str:
    """Advice about frames of another release.

    >>> _other_version(WireVersions(1, 1, 1), WireVersions(2, 2, 3))[:62]
    'writes wire version 1 and this member reads versions 2 to 3: u'
    """
    older = "that" if theirs.written < ours.written else "this"
    if not ours.oldest <= theirs.written <= ours.newest:
        reads = show_versions(ours.oldest, ours.newest)
        differs = f"writes wire version {theirs.written} and this member reads {reads}"
    else:
        reads = show_versions(theirs.oldest, theirs.newest)
        differs = f"reads wire {reads} and this member writes version {ours.written}"
    return (
        f"{differs}: upgrade {older} member, because members that do not read each other are no "
        "group"
    )
