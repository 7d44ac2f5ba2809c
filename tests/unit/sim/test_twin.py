"""The event queue against its dumb twin, event by event, on random programs.

A program is a list of turns; every handler call takes the next turn and does what it says. Eager
timers without delay are left out of the handlers of messages: arrivals that were sent together are
handed over together, which the twin does not do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from hypothesis import given, settings
from hypothesis import strategies as st

from hustings.core.choice import MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.messages import Message
from hustings.sim.delay import Delay, Fixed, PerLink
from hustings.sim.faults import Call, Crash, Happening, Restart
from hustings.sim.network import Network
from hustings.sim.world import Ended
from tests.unit.sim.twin import Twin, TwinMember
from tests.unit.sim.worlds import Ping, Puppet, Row, Stage

DELAYS = st.sampled_from([1.0, 0.0, 0.5, 2.0])  # few, so that ties are many
KEYS = st.sampled_from(["a", "b", "c"])


class Doer(Protocol):
    """What a turn needs of a context, real or twin."""

    def send(self, to: MemberId, message: Message) -> None: ...

    def multicast(self, message: Message) -> None: ...

    def set_timer(self, key: TimerKey, delay: float, *, eager: bool = False) -> None: ...

    def cancel_timer(self, key: TimerKey) -> None: ...


@dataclass(frozen=True)
class Send:
    to: int

    def do(self, who: Doer, n: int, number: int, why: str) -> None:
        who.send(self.to % n + 1, Ping(number))


@dataclass(frozen=True)
class Cry:
    def do(self, who: Doer, n: int, number: int, why: str) -> None:
        who.multicast(Ping(number))


@dataclass(frozen=True)
class Arm:
    key: str  # "this" is the one whose handler is running
    delay: float

    def do(self, who: Doer, n: int, number: int, why: str) -> None:
        key = why[6:] if self.key == "this" and why.startswith("timer") else self.key
        eager = key == "c"
        arriving = why.startswith("PING")
        delay = 0.5 if eager and arriving and not self.delay else self.delay
        who.set_timer(key, delay, eager=eager)


@dataclass(frozen=True)
class Cancel:
    key: str

    def do(self, who: Doer, n: int, number: int, why: str) -> None:
        who.cancel_timer(self.key)


Op = Send | Cry | Arm | Cancel
OPS = st.one_of(
    st.builds(Send, st.integers(0, 3)),
    st.just(Cry()),
    st.builds(Arm, KEYS, DELAYS),
    st.builds(Arm, st.just("this"), DELAYS),
    st.builds(Cancel, KEYS),
)


@dataclass(frozen=True)
class Program:
    n: int
    delay: Delay
    turns: list[list[Op]]
    calls: list[tuple[float, MemberId]]
    faults: list[tuple[float, MemberId, bool]]  # the last: whether it comes back


@st.composite
def programs(draw: st.DrawFn) -> Program:
    n = draw(st.integers(1, 4))
    members = st.integers(1, n)
    if draw(st.booleans()):
        delay: Delay = Fixed(draw(DELAYS))
    else:
        links = draw(st.dictionaries(st.tuples(members, members), DELAYS, max_size=8))
        delay = PerLink(links, draw(DELAYS))
    instants = st.sampled_from([0.0, 0.5, 1.0, 2.5])
    return Program(
        n=n,
        delay=delay,
        turns=draw(st.lists(st.lists(OPS, min_size=1, max_size=5), min_size=1, max_size=30)),
        calls=[
            *((0.0, member) for member in range(1, n + 1)),
            *draw(st.lists(st.tuples(instants, members), max_size=4)),
        ],
        faults=draw(st.lists(st.tuples(instants, members, st.booleans()), max_size=3)),
    )


class Turns:
    """Hands out the turns of one run."""

    def __init__(self, program: Program) -> None:
        self.n = program.n
        self.left: Iterator[list[Op]] = iter(program.turns)
        self.number = 0

    def take(self, who: Doer, what: str) -> None:
        self.number += 1
        for op in next(self.left, []):
            op.do(who, self.n, self.number, what)


class Player(Puppet):
    """A puppet whose script is the program."""

    def __init__(self, stage: Played, turns: Turns) -> None:
        super().__init__(stage)
        self.turns = turns

    def note(self, ctx: Context, what: str) -> None:
        self.stage.journal.append((self.stage.now, ctx.me.id, what))
        self.turns.take(ctx, what)


class Played(Stage):
    """The real world, playing a program."""

    def __init__(self, program: Program) -> None:
        turns = Turns(program)
        super().__init__(program.n, network=Network(delay=program.delay), up=[])
        self._elect = lambda: Player(self, turns)
        self.start()


def really(program: Program, step: int) -> list[Row]:
    """The real world, interrupted after every `step` events."""
    stage = Played(program)
    plan: list[Happening] = [Call(member=member, at=at) for at, member in program.calls]
    for at, member, back in program.faults:
        plan.append(Crash(member=member, at=at))
        if back:
            plan.append(Restart(member=member, at=at + 0.5))
    stage.plan(*plan)
    while (ended := stage.run(max_events=stage.events + step)) is Ended.MAX_EVENTS:
        pass
    assert ended is Ended.QUIESCENT
    return stage.journal


def dumbly(program: Program) -> list[Row]:
    turns = Turns(program)
    delay = program.delay

    def travel(sender: MemberId, to: MemberId) -> float:
        if isinstance(delay, PerLink):
            return delay.table.get((sender, to), delay.otherwise)
        return delay.bound

    def react(member: TwinMember, what: str) -> None:
        turns.take(member, what)

    twin = Twin(program.n, travel, isinstance(delay, Fixed), react)
    for at, member in program.calls:
        twin.planned.append((at, partial(twin.tell, twin.members[member], "call")))
    for at, member, back in program.faults:
        twin.planned.append((at, partial(twin.crash, member)))
        if back:
            twin.planned.append((at + 0.5, partial(twin.restart, member)))
    while twin.step():
        pass
    return twin.journal


@settings(max_examples=240)
@given(programs())
def test_the_world_does_what_its_dumb_twin_does(program: Program) -> None:
    expected = dumbly(program)
    for step in (10_000, 1):
        assert really(program, step) == expected
