"""The ticker: what happened, a line for each, with like things drawn together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hustings.core.choice import MemberId
from hustings.core.messages import Role
from hustings.core.outcome import Elected
from hustings.demo.flights import Flight
from hustings.demo.watch import State, Watcher
from hustings.demo.words import listed
from hustings.sim.member import Status


@dataclass(frozen=True, slots=True)
class Line:
    """One line: a message's kind and its way, or something else that happened."""

    t: float
    kind: str  # of the message; empty for other things
    role: Role | None
    text: str


def lines_of(watcher: Watcher, flights: Sequence[Flight]) -> list[Line]:
    """All lines of a run, in order of time."""
    lines = [*_messages(flights), *_suspicions(watcher), *_changes(watcher)]
    return sorted(lines, key=lambda line: line.t)


def _messages(flights: Sequence[Flight]) -> list[Line]:
    """What one member sent to several at one instant is one line."""
    groups: dict[tuple[float, MemberId, str, Role], list[MemberId]] = {}
    for flight in flights:
        key = (flight.left, flight.sender, flight.kind, flight.role)
        groups.setdefault(key, []).append(flight.to)
    return [
        Line(left, kind, role, f"{sender}\N{RIGHTWARDS ARROW}{listed(sorted(to))}")
        for (left, sender, kind, role), to in groups.items()
    ]


def _suspicions(watcher: Watcher) -> list[Line]:
    """Who suspects whom, and who no longer does; several that do so at once are one line."""
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
        Line(t, "", None, f"{listed(who)} {verb}{'s' if len(who) == 1 else ''} {other}")
        for (t, other, verb), who in groups.items()
    ]


def _changes(watcher: Watcher) -> list[Line]:
    lines: list[Line] = []
    for member, history in watcher.states.items():
        before = State()
        for t, now in history[1:]:
            if text := _change(member, before, now):
                lines.append(Line(t, "", None, text))
            before = now
    return lines


def _change(member: MemberId, before: State, now: State) -> str:
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
