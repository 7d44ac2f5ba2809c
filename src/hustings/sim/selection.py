"""What fits into a drawing of a trace, and its words.

Every drawing is bounded, and says what it leaves out. Text that came with a trace (names, kinds,
reasons) may hold anything, so it passes through `cut` before it is shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from math import inf

import msgspec

from hustings.core.choice import MemberId
from hustings.core.errors import BadInput
from hustings.core.messages import Role, kind_of
from hustings.core.outcome import Elected, GaveUp, NoLeader, Outcome
from hustings.layers.detector.detector import BEAT, SILENCE
from hustings.layers.detector.heartbeat import HeartbeatMsg, PingMsg, PongMsg, WatchMsg
from hustings.sim.trace import Changed, Declared, Fired, Linked, Lost, Received, Sent, Told
from hustings.sim.trace_read import Event, Said, Trace, kind

MAX_EVENTS = 10_000
MAX_MEMBERS = 100
_DETECTOR_KINDS = tuple(kind_of(kind) for kind in (HeartbeatMsg, WatchMsg, PingMsg, PongMsg))
_DETECTOR_TIMERS = (f"{BEAT} ", f"{SILENCE} ")  # how the keys of detectors' timers begin
_TEXT = 80  # characters of a message or a name


class Heartbeats(Enum):
    """How the messages and timers of failure detectors are drawn."""

    SHOWN = "shown"
    DIMMED = "dimmed"
    HIDDEN = "hidden"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Which part of a run is drawn."""

    heartbeats: Heartbeats = Heartbeats.DIMMED
    since: float = 0.0
    until: float = inf
    max_events: int = MAX_EVENTS
    max_members: int = MAX_MEMBERS
    roles: Mapping[str, Role] = field(default_factory=dict)  # of message kinds, where known

    def __post_init__(self) -> None:
        if not self.since <= self.until:
            raise BadInput(f"a diagram cannot begin at {self.since:g} and end at {self.until:g}")
        if self.max_events < 1 or self.max_members < 1:
            raise BadInput("a diagram must have room for at least one event and one member")


@dataclass(frozen=True, slots=True)
class Drawing:
    """A finished drawing, and a sentence for each thing that it leaves out."""

    text: str
    left_out: tuple[str, ...] = ()


def role_of(kind: str, options: Options) -> Role:
    """The role of messages of a kind; `OTHER` if it is unknown.

    >>> role_of("OK", Options(roles={"OK": Role.ANSWER})).value, role_of("OK", Options()).value
    ('answer', 'other')
    """
    return Role.DETECTOR if kind in _DETECTOR_KINDS else options.roles.get(kind, Role.OTHER)


# --- words ----------------------------------------------------------------------------------------


def cut(text: str, length: int = _TEXT) -> str:
    """A text that came with the trace: on one line, printable and not too long."""
    clean = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return clean if len(clean) <= length else clean[: length - 3] + "..."


def message_text(sent: Sent[Said]) -> str:
    """A message in words: its kind and its fields."""
    fields = [
        msgspec.json.encode(value)[: 4 * _TEXT].decode(errors="replace") for value in sent.msg[1:9]
    ]
    if len(sent.msg) > 9:
        fields.append("...")
    return cut(f"{kind(sent)}({', '.join(fields)})")


def outcome_text(member: MemberId, outcome: Outcome) -> str:
    """An outcome in words, as declared by `member`."""
    match outcome:
        case Elected(leader, term) if leader == member:
            text = f"leads, term {term}"
        case Elected(leader, term):
            text = f"follows {leader}, term {term}"
        case NoLeader(reason):
            text = f"has no leader: {reason}" if reason else "has no leader"
        case GaveUp(reason):
            text = f"gave up: {reason}"
    return cut(text)


def told_text(told: Told) -> str:
    """What a member was told, in words."""
    words = {"call": "calls an election", "suspect": "suspects", "alive": "trusts again"}
    text = words.get(told.what, told.what)
    return cut(text if told.about is None else f"{text} {told.about}")


def ids_text(members: list[MemberId]) -> str:
    """Several members in few words.

    >>> ids_text([1, 4, 5, 6, 9, 10])
    '1, 4-6, 9, 10'
    """
    runs: list[list[MemberId]] = []
    for member in sorted(members):
        if runs and member == runs[-1][-1] + 1:
            runs[-1].append(member)
        else:
            runs.append([member])
    parts = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return cut(", ".join(parts))


# --- choosing -------------------------------------------------------------------------------------


@dataclass(slots=True)
class Chosen:
    """The events and members that fit into a diagram, and those that do not."""

    events: list[Event]
    members: list[MemberId]
    sent: dict[int, Sent[Said]]
    end: float
    left_out: list[str]


def choose(trace: Trace, options: Options) -> Chosen:
    """Pick what the options ask for, within the bounds.

    Events before `since` are kept: what they began may last into the drawn part.
    """
    sent = {event.n: event for event in trace.events if isinstance(event, Sent)}
    hide = options.heartbeats is Heartbeats.HIDDEN
    events: list[Event] = []
    end = min(options.until, trace.footer.t)
    drawn = messages = timers = 0
    left_out: list[str] = []
    late: Counter[str] = Counter()
    for event in trace.events:
        if event.t > options.until:
            break
        if hide and of_detector(event, sent):
            messages += isinstance(event, Sent)
            timers += isinstance(event, Fired)
        elif drawn >= options.max_events:
            late[_PLURALS[type(event)]] += 1
        else:
            drawn += event.t >= options.since
            events.append(event)
    if late:
        end = events[-1].t
        rest = ", ".join(f"{name} ({number:,})" for name, number in late.items())
        left_out.append(
            f"only the first {drawn:,} events are drawn, to t = {end:g}; not drawn: {rest}"
        )
    if messages or timers:
        left_out.append(
            f"failure detectors: {messages:,} messages and {timers:,} timers are hidden"
        )
    members = _choose_members(trace.header.members, events, options.max_members)
    if len(members) < len(trace.header.members):
        few = len(trace.header.members) - len(members)
        left_out.append(f"members not drawn: the {few:,} with the fewest events")
    return Chosen(events, members, sent, end, left_out)


def of_detector(event: Event, sent: dict[int, Sent[Said]]) -> bool:
    """Whether a failure detector did this, and not the election above it."""
    if isinstance(event, Fired):
        return event.key.startswith(_DETECTOR_TIMERS)
    return isinstance(event, Sent | Received | Lost) and kind(sent[event.n]) in _DETECTOR_KINDS


_PLURALS: dict[type, str] = {
    Sent: "sends",
    Received: "receptions",
    Lost: "losses",
    Fired: "timers",
    Declared: "declarations",
    Told: "calls and suspicions",
    Changed: "changes of status",
    Linked: "changes of links",
}


def _choose_members(members: list[MemberId], events: list[Event], most: int) -> list[MemberId]:
    if len(members) <= most:
        return list(members)
    busy: Counter[MemberId] = Counter()
    for event in events:
        if isinstance(event, Sent | Received | Fired | Declared | Told):
            busy[event.m] += 1
    # Stable: of members that are equally busy, those that come first in the header.
    chosen = frozenset(sorted(members, key=lambda member: -busy[member])[:most])
    return [member for member in members if member in chosen]
