"""A trace as a log for ShiViz, the interactive viewer of distributed executions.

ShiViz reads text: a regular expression in the first line, a delimiter of executions in the second
(here none), then for each event its words on one line and, on the next, its host and its vector
clock. The clocks are computed here from the trace: every event of a member counts, and a reception
takes over what its sender knew. What happens to no member (a loss, a cut) is no event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import msgspec

from hustings.core.choice import MemberId
from hustings.sim.selection import (
    Chosen,
    Drawing,
    Options,
    choose,
    cut,
    message_text,
    outcome_text,
    told_text,
)
from hustings.sim.trace import Changed, Declared, Fired, Linked, Lost, Received, Sent, Told
from hustings.sim.trace_read import Event, Trace

PARSER = r"(?<event>.*)\n(?<host>\S*) (?<clock>{.*})"

Clock = dict[MemberId, int]


@dataclass(frozen=True, slots=True)
class Stamped:
    """An event of a member with its vector clock, without the members that it has not heard of."""

    member: MemberId
    event: Event
    clock: Clock


def draw_shiviz(trace: Trace, options: Options | None = None) -> Drawing:
    """The log that ShiViz's page takes. It ignores `since`, because clocks begin with the run."""
    chosen = choose(trace, replace(options or Options(), since=0.0))
    drawn = frozenset(chosen.members)
    lines = [PARSER, ""]
    for stamped in stamp(event for event in chosen.events if member_of(event) in drawn):
        clock = {_host(member): time for member, time in stamped.clock.items()}
        lines.append(f"t={stamped.event.t:g} {_words(stamped, chosen)}")
        lines.append(f"{_host(stamped.member)} {msgspec.json.encode(clock).decode()}")
    return Drawing("\n".join(lines) + "\n", tuple(chosen.left_out))


def member_of(event: Event) -> MemberId | None:
    """The member of an event; None if it has none."""
    return None if isinstance(event, Lost | Linked) else event.m


def stamp(events: Iterable[Event]) -> Iterator[Stamped]:
    """Every member's events with their vector clocks.

    One event happened before another exactly if its member's entry in its own clock is no larger
    than that member's entry in the other's clock.
    """
    clocks: dict[MemberId, Clock] = {}
    sent: dict[int, Clock] = {}
    for event in events:
        member = member_of(event)
        if member is None:
            continue
        clock = clocks.setdefault(member, {})
        if isinstance(event, Received):
            # The sender's clock is missing if the sender is not among these events' members.
            for other, time in sent.get(event.n, {}).items():
                clock[other] = max(time, clock.get(other, 0))
        clock[member] = clock.get(member, 0) + 1
        now = dict(clock)
        if isinstance(event, Sent):
            sent[event.n] = now
        yield Stamped(member, event, now)


def _host(member: MemberId) -> str:
    return f"member-{member}"


def _words(stamped: Stamped, chosen: Chosen) -> str:
    event = stamped.event
    match event:
        case Sent():
            to = "all" if event.to is None else event.to
            return f"sends #{event.n} {message_text(event)} to {to}"
        case Received():
            sent = chosen.sent[event.n]
            return f"receives #{event.n} {message_text(sent)} from {sent.m}"
        case Fired():
            return f"timer {cut(event.key)}"
        case Declared():
            return outcome_text(stamped.member, event.outcome)
        case Told():
            return told_text(event)
        case Changed():
            return cut(f"{event.status}, incarnation {event.incarnation}")
    raise AssertionError(f"{type(event).__name__} is no member's event")
