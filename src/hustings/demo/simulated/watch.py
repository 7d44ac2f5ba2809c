"""What is seen of a run: every member's state, every message's way, and a line for each event.

The watcher is an observer of the world: it hears of each outcome and each change of status, and
changes nothing. Suspicions are not announced. They are read from the detectors after every slice of
time, so their instants are exact to one slice. Flights are the messages with their fate, read from
the run's trace. The ticker has a line for each event, and joins similar events.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hustings.core.choice import MemberId
from hustings.core.messages import Role
from hustings.core.outcome import Elected, Outcome
from hustings.demo.simulated.words import listed
from hustings.layers.detector.layer import DetectorLayer
from hustings.sim.member import SimContext, Status
from hustings.sim.trace import Lost, Received, Sent
from hustings.sim.trace_read import Said, Trace, kind
from hustings.sim.world import World

UNDER_WAY = "under way"
ARRIVED = "arrived"
WAITED = "waited"  # it reached a paused member, which read it later


@dataclass(slots=True)
class MessageFlight:
    """One message on its way to one member."""

    kind: str
    role: Role
    sender: MemberId
    to: MemberId
    left: float
    ended: float
    fate: str = UNDER_WAY  # or one of the above, or why it was lost

    @property
    def lost(self) -> bool:
        return self.fate not in (UNDER_WAY, ARRIVED, WAITED)


def flights_of(trace: Trace, roles: Mapping[str, Role], bound: float) -> list[MessageFlight]:
    """All flights in the order of sending; none is shown for longer than `bound`.

    A multicast is one flight for each member that it reached or missed.
    """
    sent: dict[int, Sent[Said]] = {}
    flights: dict[tuple[int, MemberId], MessageFlight] = {}

    def launch(message: Sent[Said], to: MemberId) -> MessageFlight:
        name = kind(message)
        left = message.t
        flight = MessageFlight(name, roles[name], message.m, to, left, left + bound)
        flights[message.n, to] = flight
        return flight

    for event in trace.events:
        if isinstance(event, Sent):
            sent[event.n] = event
            if event.to is not None:
                launch(event, event.to)
        elif isinstance(event, Received | Lost):
            to = event.m if isinstance(event, Received) else event.to
            if to is None:
                continue
            flight = flights.get((event.n, to)) or launch(sent[event.n], to)
            flight.fate = event.why if isinstance(event, Lost) else ARRIVED
            if event.t > flight.ended:
                flight.fate = WAITED
            else:
                flight.ended = event.t
    return sorted(flights.values(), key=lambda flight: flight.left)


T = TypeVar("T")

History = list[tuple[float, T]]  # values, and since when each held


@dataclass(frozen=True, slots=True)
class MemberState:
    """One member at one time: its status and what it declared last."""

    status: Status = Status.OUT
    incarnation: int = 0
    outcome: Outcome | None = None

    @property
    def leader(self) -> MemberId | None:
        """Whom this member takes for the leader."""
        return self.outcome.leader if isinstance(self.outcome, Elected) else None


class Watcher:
    """Keeps every member's history."""

    def __init__(self, members: Sequence[MemberId]) -> None:
        self.states: dict[MemberId, History[MemberState]] = {
            member: [(0.0, MemberState())] for member in members
        }
        self.suspects: dict[MemberId, History[tuple[MemberId, ...]]] = {
            member: [(0.0, ())] for member in members
        }
        self.leading: History[tuple[MemberId, ...]] = [(0.0, ())]  # live, by their own word
        self.last_change = 0.0  # when a member last changed its status or its leader

    # Events of the world

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        """A member declared an outcome."""
        self._become(world.now, member, outcome)

    def changed(self, world: World, member: SimContext) -> None:
        """A member came up, crashed, paused, went on."""
        self._become(world.now, member, member.outcome)

    def _become(self, t: float, member: SimContext, outcome: Outcome | None) -> None:
        before = self.state(member.id)
        state = MemberState(member.status, member.incarnation, outcome)
        self.states[member.id].append((t, state))
        if (state.status, state.leader) != (before.status, before.leader):
            self.last_change = t
        leading = tuple(
            each
            for each in self.states
            if self.state(each).status is Status.UP and self.state(each).leader == each
        )
        if leading != self.leading[-1][1]:
            self.leading.append((t, leading))

    def look(self, world: World) -> None:
        """Read the detectors."""
        for member in world.live():
            if isinstance(member.election, DetectorLayer):
                now = tuple(sorted(member.election.detector.suspects))
                if now != self.suspects[member.id][-1][1]:
                    self.suspects[member.id].append((world.now, now))

    # Questions

    def state(self, member: MemberId) -> MemberState:
        """A member's state now."""
        return self.states[member][-1][1]

    def two_leaders(self, start: float, end: float) -> float:
        """For how long between two instants more than one live member took itself for leader."""
        total = 0.0
        for place, (since, leading) in enumerate(self.leading):
            until = self.leading[place + 1][0] if place + 1 < len(self.leading) else end
            if len(leading) > 1:
                total += max(0.0, min(until, end) - max(since, start))
        return total


def latest(history: Sequence[tuple[float, T]], t: float) -> T:
    """The value of a history at instant `t`.

    >>> latest([(0.0, "none"), (2.0, "one")], 1.9), latest([(0.0, "none"), (2.0, "one")], 2.0)
    ('none', 'one')
    """
    return history[bisect_right(history, t, key=lambda entry: entry[0]) - 1][1]


@dataclass(frozen=True, slots=True)
class TickerLine:
    """One line: a message's kind and its way, or something else that happened."""

    t: float
    kind: str  # of the message; empty for other things
    role: Role | None
    text: str


def lines_of(watcher: Watcher, flights: Sequence[MessageFlight]) -> list[TickerLine]:
    """All lines of a run, in order of time."""
    lines = [*_messages(flights), *_suspicions(watcher), *_changes(watcher)]
    return sorted(lines, key=lambda line: line.t)


def _messages(flights: Sequence[MessageFlight]) -> list[TickerLine]:
    """One line for the equal messages that a member sent to several at one instant."""
    groups: dict[tuple[float, MemberId, str, Role], list[MemberId]] = {}
    for flight in flights:
        key = (flight.left, flight.sender, flight.kind, flight.role)
        groups.setdefault(key, []).append(flight.to)
    return [
        TickerLine(left, kind, role, f"{sender}\N{RIGHTWARDS ARROW}{listed(sorted(to))}")
        for (left, sender, kind, role), to in groups.items()
    ]


def _suspicions(watcher: Watcher) -> list[TickerLine]:
    """Suspicions that begin or end; several at one instant share a line."""
    groups: dict[tuple[float, MemberId, str], list[MemberId]] = {}
    for member, history in watcher.suspects.items():
        before: tuple[MemberId, ...] = ()
        for t, now in history:
            for other in now:
                if other not in before:
                    groups.setdefault((t, other, "suspect"), []).append(member)
            for other in before:
                if other not in now:
                    groups.setdefault((t, other, "trust"), []).append(member)
            before = now
    return [
        TickerLine(t, "", None, f"{listed(who)} {verb}{'s' if len(who) == 1 else ''} {other}")
        for (t, other, verb), who in groups.items()
    ]


def _changes(watcher: Watcher) -> list[TickerLine]:
    lines: list[TickerLine] = []
    for member, history in watcher.states.items():
        before = MemberState()
        for t, now in history[1:]:
            if text := _change(member, before, now):
                lines.append(TickerLine(t, "", None, text))
            before = now
    return lines


def _change(member: MemberId, before: MemberState, now: MemberState) -> str:
    if now.status is not before.status:
        if now.status is Status.CRASHED:
            return f"{member} crashes"
        if now.status is Status.PAUSED:
            return f"{member} stands still"
        if before.status is Status.PAUSED:
            return f"{member} goes on"
        return f"{member} starts" if now.incarnation == 1 else f"{member} is back"
    if isinstance(now.outcome, Elected) and now.outcome.leader == member:
        if now.outcome != before.outcome:
            return f"{member} leads, term {now.outcome.term}"
    return ""
