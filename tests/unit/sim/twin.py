"""The dumb twin of the simulated world: lists, no heap, no batches, no laziness.

It keeps every message under way, every armed timer and every planned happening in plain lists, and
at each step looks through all of them for the one that comes first by the stated rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from hustings.core.choice import MemberId
from hustings.core.context import TimerKey
from hustings.core.messages import Message
from tests.unit.sim.worlds import Ping, Row

Rule = tuple[float, int, tuple[int, int]]  # instant, kind, order within the kind


@dataclass
class Flying:
    """A message under way."""

    at: float
    number: int
    sender: MemberId
    to: MemberId | None
    message: Message


@dataclass
class Alarm:
    """A timer that was used at least once; armed if it has an instant."""

    place: int
    eager: bool
    at: float | None = None


@dataclass
class TwinMember:
    """What a handler can do, done the obvious way."""

    twin: Twin
    id: MemberId
    up: bool = True
    alarms: dict[TimerKey, Alarm] = field(default_factory=dict)

    def send(self, to: MemberId, message: Message) -> None:
        self.twin.launch(self.id, to, message)

    def multicast(self, message: Message) -> None:
        if self.twin.one_delay:
            self.twin.launch(self.id, None, message)
            return
        for other in self.twin.members.values():
            if other.up and other.id != self.id:
                self.twin.launch(self.id, other.id, message)

    def set_timer(self, key: TimerKey, delay: float, *, eager: bool = False) -> None:
        alarm = self.alarms.setdefault(key, Alarm(len(self.alarms), eager))
        alarm.at = self.twin.now + delay

    def cancel_timer(self, key: TimerKey) -> None:
        if key in self.alarms:
            self.alarms[key].at = None


class Twin:
    """A world of members 1..n with a delay per link."""

    def __init__(
        self,
        n: int,
        delay: Callable[[MemberId, MemberId], float],
        one_delay: bool,
        react: Callable[[TwinMember, str], None],
    ) -> None:
        self.members = {member: TwinMember(self, member) for member in range(1, n + 1)}
        self.delay = delay
        self.one_delay = one_delay
        self.react = react
        self.now = 0.0
        self.launched = 0
        self.flying: list[Flying] = []
        self.planned: list[tuple[float, Callable[[], None]]] = []
        self.journal: list[Row] = []

    def launch(self, sender: MemberId, to: MemberId | None, message: Message) -> None:
        self.launched += 1
        at = self.now + self.delay(sender, sender if to is None else to)
        self.flying.append(Flying(at, self.launched, sender, to, message))

    def crash(self, member: MemberId) -> None:
        self.members[member].up = False
        self.members[member].alarms.clear()

    def restart(self, member: MemberId) -> None:
        self.members[member].up = True

    def tell(self, member: TwinMember, what: str) -> None:
        if member.up:
            self.journal.append((self.now, member.id, what))
            self.react(member, what)

    def step(self) -> bool:
        """Let the first thing of all happen; False if there is none."""
        choices: list[tuple[Rule, Callable[[], None]]] = []
        for place, (at, action) in enumerate(self.planned):
            choices.append(((at, 0, (place, 0)), partial(self.happen, place, action)))
        for flight in self.flying:
            choices.append(((flight.at, 2, (flight.number, 0)), partial(self.land, flight)))
        for member in self.members.values():
            for key, alarm in member.alarms.items():
                if alarm.at is not None:
                    rule = (alarm.at, 1 if alarm.eager else 3, (member.id, alarm.place))
                    choices.append((rule, partial(self.ring, member, key)))
        if not choices:
            return False
        (self.now, _, _), first = min(choices, key=lambda choice: choice[0])
        first()
        return True

    def happen(self, place: int, action: Callable[[], None]) -> None:
        del self.planned[place]
        action()

    def land(self, flight: Flying) -> None:
        self.flying.remove(flight)
        assert isinstance(flight.message, Ping)
        what = f"PING {flight.message.number} from {flight.sender}"
        for member in list(self.members.values()):
            if member.id == flight.to or (flight.to is None and member.id != flight.sender):
                self.tell(member, what)

    def ring(self, member: TwinMember, key: TimerKey) -> None:
        member.alarms[key].at = None
        self.tell(member, f"timer {key}")
