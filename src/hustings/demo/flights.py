"""Flights: every message of a run with its way and its fate, read from the run's trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hustings.core.choice import MemberId
from hustings.core.messages import Role
from hustings.sim.trace import Lost, Received, Sent
from hustings.sim.trace_read import Said, Trace, kind

UNDER_WAY = "under way"
ARRIVED = "arrived"
WAITED = "waited"  # it reached a member that stood still, and was read later


@dataclass(slots=True)
class Flight:
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


def flights_of(trace: Trace, roles: Mapping[str, Role], bound: float) -> list[Flight]:
    """All flights in the order in which they left; none is shown for longer than `bound`.

    A multicast is a flight to each member that it reached or missed.
    """
    sent: dict[int, Sent[Said]] = {}
    flights: dict[tuple[int, MemberId], Flight] = {}

    def launch(message: Sent[Said], to: MemberId) -> Flight:
        name = kind(message)
        left = message.t
        flight = Flight(name, roles[name], message.m, to, left, left + bound)
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
