"""A protocol cannot tell its contexts apart: the same inputs have the same effects, in order.

Random stories run in the simulated world: on its fast path, traced, and in debug mode. Every input
to every member is written down with the effects that the simulator's context saw. The same inputs,
fed one by one to recorded members, must have the same effects; and the three runs must be one.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hustings.sim.world as world_module
from hustings.core.choice import Candidate, MemberId, candidate, parse_choice
from hustings.core.context import Context, TimerKey
from hustings.core.election import Election, upon
from hustings.core.messages import Message
from hustings.core.outcome import Outcome
from hustings.core.view import View
from hustings.protocols.bully import Bully
from hustings.protocols.registry import CATALOGUE, classes
from hustings.sim.delay import Fixed, Uniform
from hustings.sim.faults import (
    Call,
    Crash,
    Happening,
    Leave,
    Pause,
    Restart,
    Resume,
    schedule,
)
from hustings.sim.guarding import MemoryGuard
from hustings.sim.loss import Uncorrelated
from hustings.sim.member import SimContext
from hustings.sim.network import Network
from hustings.sim.trace import Header, Tracer
from hustings.sim.world import World
from hustings.testing import (
    Acquire,
    CancelTimer,
    Declare,
    Effect,
    Multicast,
    RecordedMember,
    Release,
    Send,
    SetTimer,
    persist,
    view_of,
)
from tests.agreement.restless import Restless
from tests.drawing import share
from tests.properties.groups import WildAlive, WildSuspect

HOOKS = (
    "start",
    "call",
    "on_timer",
    "on_suspect",
    "on_alive",
    "on_verdict",
    "leave",
    "assume_leader",
)
UNTIL = 60.0
MAX_EVENTS = 1_500


@dataclass
class Input:
    """One handler call: what a member was given, what it could see, what it did."""

    member: MemberId
    what: str
    about: tuple[Any, ...]
    now: float
    view: list[MemberId]
    version: int  # of the view: one that went and came back leaves no other trace
    incarnation: int
    effects: list[Effect] = field(default_factory=list)


class Log:
    """All inputs of one run; a handler that calls another one is still one input."""

    def __init__(self) -> None:
        self.inputs: list[Input] = []
        self.depth = 0

    def note(self, effect: Effect) -> None:
        assert self.depth, f"{effect} outside any handler"
        self.inputs[-1].effects.append(effect)

    def watch(self, what: str, original: Callable[..., None]) -> Callable[..., None]:
        def handler(election: Election, ctx: Context, *about: Any) -> None:
            if not self.depth:
                view = ctx.view
                self.inputs.append(
                    Input(
                        ctx.me.id,
                        what,
                        about,
                        ctx.now(),
                        list(view),
                        view.version,
                        ctx.incarnation,
                    )
                )
            self.depth += 1
            original(election, ctx, *about)
            self.depth -= 1

        return handler


def watched_election(kind: type[Election], log: Log) -> type[Election]:
    """The same election, with every input written down."""
    body: dict[str, Any] = {name: log.watch(name, getattr(kind, name)) for name in HOOKS}
    for message, handler in kind.handlers.items():
        body[f"upon_{message.__name__}"] = upon(message)(log.watch("deliver", handler))
    return cast("type[Election]", type(f"Watched{kind.__name__}", (kind,), body))


def watched_context(log: Log) -> type[SimContext]:
    """The simulator's context, with every effect written down."""

    class Watched(SimContext):
        __slots__ = ()

        def send(self, to: MemberId, message: Message) -> None:
            log.note(Send(to, message))
            super().send(to, message)

        def multicast(self, message: Message) -> None:
            log.note(Multicast(message))
            super().multicast(message)

        def set_timer(self, key: TimerKey, delay: float, eager: bool = False) -> None:
            log.note(SetTimer(key, delay, eager))
            super().set_timer(key, delay, eager=eager)

        def cancel_timer(self, key: TimerKey) -> None:
            log.note(CancelTimer(key))
            super().cancel_timer(key)

        def persist(self, **fields: object) -> None:
            log.note(persist(**fields))
            super().persist(**fields)

        def declare(self, outcome: Outcome) -> None:
            log.note(Declare(outcome))
            super().declare(outcome)

        def acquire(self, ttl: float, request: int) -> None:
            log.note(Acquire(ttl, request))
            super().acquire(ttl, request)

        def release(self, request: int) -> None:
            log.note(Release(request))
            super().release(request)

    return Watched


@dataclass(frozen=True)
class Story:
    """Everything a run depends on."""

    candidates: list[Candidate]
    choice: str
    leader_assumed: bool
    happenings: list[Happening]
    network: Network
    rates: list[float]
    seed: int


def simulate(
    kind: type[Election], story: Story, *, debug: bool = False, tracer: Tracer | None = None
) -> Log:
    log = Log()
    elect = watched_election(kind, log)
    config, choice = kind.Settings(), parse_choice(story.choice)
    with patch.object(world_module, "SimContext", watched_context(log)):
        world = World(
            lambda: elect(config, choice),
            story.candidates,
            seed=story.seed,
            network=story.network,
            debug=debug,
            tracer=tracer,
        )
    MemoryGuard(world)
    for member, rate in zip(world.members.values(), story.rates, strict=True):
        member.keep_time(rate, rate - 1.0)
    world.start()
    if story.leader_assumed:
        leader = max(story.candidates, key=choice.key).id
        for member in world.live():
            world.invoke(member, member.election.assume_leader, leader, 1)
    schedule(world, story.happenings)
    world.run(until=UNTIL, max_events=MAX_EVENTS)
    return log


def replay(kind: type[Election], story: Story, inputs: list[Input]) -> None:
    """Feed the inputs to recorded members and compare the effects, one input at a time."""
    config, choice = kind.Settings(), parse_choice(story.choice)
    members = {
        me.id: RecordedMember(
            lambda: kind(config, choice), me, view_of(story.candidates), seed=story.seed
        )
        for me in story.candidates
    }
    versions: dict[MemberId, int] = {}  # of the simulated views
    for number, given_input in enumerate(inputs):
        member = members[given_input.member]
        member.clock = given_input.now
        show(member.view, given_input, versions.get(given_input.member))
        versions[given_input.member] = given_input.version
        effects = feed(member, given_input)
        assert effects == given_input.effects, f"input {number}: {given_input}"
        assert member.incarnation == given_input.incarnation


def show(view: View, given_input: Input, before: int | None) -> None:
    """Make a recorded member's view what it was, and changed if it had changed."""
    own = view.version
    for other in {**dict.fromkeys(view), **dict.fromkeys(given_input.view)}:
        if (other in given_input.view) != (other in view):
            (view.add if other in given_input.view else view.remove)(other)
    if before not in (None, given_input.version) and view.version == own:
        other = given_input.view[0]
        view.remove(other)
        view.add(other)


def feed(member: RecordedMember, given_input: Input) -> list[Effect]:
    about = given_input.about
    inputs: dict[str, Callable[..., list[Effect]]] = {
        "start": member.start,
        "call": member.call,
        "deliver": member.deliver,
        "on_timer": member.fire,
        "on_suspect": member.suspect,
        "on_alive": member.alive,
        "on_verdict": member.answer,
        "leave": member.leave,
        "assume_leader": member.assume_leader,
    }
    if given_input.what == "on_timer":
        armed = member.timers.get(about[0])
        assert armed is not None, f"fired though not armed: {given_input}"
        assert armed.deadline <= given_input.now + 1e-6, f"fired early: {given_input}"
        # The simulator rounds instants to its grid, the recorder does not.
        on_grid = min(armed.deadline, given_input.now)
        member.timers[about[0]] = replace(armed, deadline=on_grid)
    return inputs[given_input.what](*about)


@st.composite
def stories(draw: st.DrawFn) -> Story:
    n = draw(st.integers(1, 6))
    ids = st.integers(1, n)
    times = st.integers(0, 60).map(lambda half: half / 2)
    single: st.SearchStrategy[Happening] = st.one_of(
        *(st.builds(one, at=times, member=ids) for one in (Call, Crash, Restart, Leave)),
        # A detector may name anybody, also somebody unknown.
        *(
            st.builds(one, at=times, member=ids, about=st.integers(1, n + 1))
            for one in (WildSuspect, WildAlive)
        ),
    )
    nap = st.builds(
        lambda at, last, member: [Pause(at=at, member=member), Resume(at=at + last, member=member)],
        times,
        times,
        ids,
    )
    episodes = draw(st.lists(single.map(lambda one: [one]) | nap, max_size=8))
    happenings = [happening for episode in episodes for happening in episode]
    loads = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    uncorrelated = Uncorrelated(0.2)
    return Story(
        candidates=[candidate(i, load=loads[i - 1]) for i in range(1, n + 1)],
        choice=draw(st.sampled_from(["highest-id", "lowest-id", "lowest:load"])),
        leader_assumed=draw(st.booleans()),
        happenings=[Call(at=0.0, member=draw(ids)), *happenings],
        network=draw(
            st.sampled_from(
                [
                    Network(),
                    Network(delay=Fixed(0.5), loss=uncorrelated),
                    Network(delay=Uniform(0.2, 2.0), duplicate=0.2),
                ]
            )
        ),
        rates=draw(st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=n, max_size=n)),
        seed=draw(st.integers(0, 9)),
    )


every_protocol = pytest.mark.parametrize(
    "kind", [*classes(CATALOGUE), Restless], ids=lambda kind: kind.about.name
)


@every_protocol
@settings(max_examples=share(0.25))  # each is up to three runs, and all protocols have them
@given(story=stories())
def test_simulated_and_recorded_members_do_the_same(kind: type[Election], story: Story) -> None:
    replay(kind, story, simulate(kind, story).inputs)


def test_a_timer_that_is_cancelled_on_waking_up_does_not_fire() -> None:
    """While 1 sleeps, its timer runs out and the answer that would have stopped it arrives."""
    story = Story(
        candidates=[candidate(i) for i in (1, 2, 3)],
        choice="highest-id",
        leader_assumed=False,
        happenings=[
            Crash(member=3),
            Call(at=0.25, member=1),
            Pause(at=1, member=1),
            Resume(at=6, member=1),
        ],
        network=Network(),
        rates=[1.0] * 3,
        seed=1,
    )
    log = simulate(Bully, story)
    replay(Bully, story, log.inputs)
    assert [one.member for one in log.inputs if one.what == "on_timer"] == [2]


@every_protocol
@settings(max_examples=share(0.25))  # each is up to three runs, and all protocols have them
@given(story=stories())
def test_debug_mode_and_tracing_change_nothing(kind: type[Election], story: Story) -> None:
    plain = simulate(kind, story)
    out = io.BytesIO()
    tracer = Tracer(Header(protocol=kind.about.name, members=[], seed=story.seed), out)
    traced = simulate(kind, story, tracer=tracer)
    tracer.close(UNTIL, "until")
    assert traced.inputs == plain.inputs
    assert simulate(kind, story, debug=True).inputs == plain.inputs
    assert sent_and_declared(out.getvalue()) == sent_and_declared_by(plain)


def sent_and_declared(trace: bytes) -> list[tuple[object, ...]]:
    """What the trace tells of messages and outcomes."""
    told: list[tuple[object, ...]] = []
    for record in map(json.loads, trace.splitlines()[1:-1]):
        if record[0] == "send":
            _, _, member, _, to, message = record
            told.append((member, to, message))
        elif record[0] == "declare":
            told.append((record[2], record[3]))
    return told


def sent_and_declared_by(log: Log) -> list[tuple[object, ...]]:
    told: list[tuple[object, ...]] = []
    for one in log.inputs:
        for effect in one.effects:
            if isinstance(effect, Send):
                told.append((one.member, effect.to, plain_json(effect.message)))
            elif isinstance(effect, Multicast):
                told.append((one.member, None, plain_json(effect.message)))
            elif isinstance(effect, Declare):
                told.append((one.member, plain_json(effect.outcome)))
    return told


def plain_json(value: Message | Outcome) -> object:
    return json.loads(msgspec.json.encode(value))


@every_protocol
def test_the_stories_reach_the_protocol(kind: type[Election]) -> None:
    """A witness that sees nothing agrees with everything: here there is something to see."""
    story = Story(
        candidates=[candidate(i, load=0) for i in range(1, 5)],
        choice="highest-id",
        leader_assumed=False,
        happenings=[Call(member=1), Restart(at=30, member=4)],
        network=Network(),
        rates=[1.0] * 4,
        seed=1,
    )
    log = simulate(kind, story)
    assert {"start", "call", "deliver"} <= {one.what for one in log.inputs}
    assert any(isinstance(effect, Declare) for one in log.inputs for effect in one.effects)


def test_the_guard_is_reached() -> None:
    """The same for questions to the guard and its answers, which only the restless ask for."""
    story = Story(
        candidates=[candidate(i, load=0) for i in range(1, 5)],
        choice="highest-id",
        leader_assumed=False,
        happenings=[Call(member=1)],
        network=Network(),
        rates=[1.0] * 4,
        seed=1,
    )
    log = simulate(Restless, story)
    assert "on_verdict" in {one.what for one in log.inputs}
    made = [type(effect) for one in log.inputs for effect in one.effects]
    assert {Acquire, Release} <= set(made)
