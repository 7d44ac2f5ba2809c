"""The protocol in the simulator and the transcription, driven by the same chance.

A story is played in a world with a tracer. Which receiver lost which announcement is read off the
trace and handed to the transcription; sleeps come from the same streams. What members did must then
be the same, event by event.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field, replace
from math import inf
from unittest.mock import patch

from hustings.core.choice import Candidate, HighestId
from hustings.core.election import Election
from hustings.core.outcome import Elected
from hustings.core.streams import Stream, derive
from hustings.protocols.registry import find
from hustings.sim.delay import Fixed
from hustings.sim.experiment import Experiment
from hustings.sim.faults import Crash, Join, schedule
from hustings.sim.loss import parse_loss
from hustings.sim.member import Status
from hustings.sim.network import Network
from hustings.sim.play import play
from hustings.sim.queue import on_grid
from hustings.sim.scenarios import Scenario
from hustings.sim.trace import Changed, Declared, Fired, Header, Received, Sent, Tracer
from hustings.sim.trace_read import Trace, read_stream
from hustings.sim.world import World
from tests.agreement.announce import transcription
from tests.agreement.announce.transcription import TICKS, Case, Event, Metrics, Run, ticks

CHOICE = HighestId()


class Coarse(Stream):
    """A stream whose draws are multiples of 1/8, so that members wake at one instant, too."""

    __slots__ = ()

    def random(self) -> float:
        return (self.bits() >> 61) / 8


@dataclass(frozen=True)
class Story:
    """A group, its timers and what happens to it; times as one types them."""

    algorithm: str
    members: int
    T_A: float = 1.0
    T_L: float = inf
    T_S: float = 1.0
    delta: float = 0.1
    model: str = "none"
    loss: float = 0.0
    seed: int = 0
    relative: bool = False
    coarse: bool = False
    steady: int | None = None  # who leads from the beginning
    crashes: dict[int, float] = field(default_factory=dict)
    joins: dict[int, float] = field(default_factory=dict)
    until: float = 20.0

    @property
    def stream(self) -> type[Stream]:
        return Coarse if self.coarse else Stream

    @property
    def network(self) -> Network:
        return Network(Fixed(self.delta), parse_loss(self.model, self.loss))

    def settings(self) -> dict[str, object]:
        """What the protocol is configured with."""
        found: dict[str, object] = {"delta": self.delta} if self.delta else {}
        if self.algorithm != "sup":
            found["T_A"] = self.T_A
        if self.algorithm != "sup":
            found["T_L"] = inf if self.algorithm == "al" else self.T_L
        if self.algorithm not in ("le-a", "al"):
            found["T_S"] = self.T_S
        if self.algorithm == "le-m":
            found["key"] = "relative" if self.relative else "absolute"
        return found

    def elect(self) -> Election:
        kind = find(self.algorithm)
        return kind(kind.Settings.parse(self.settings()), CHOICE)

    def experiment(self, scenario: str = "start") -> Experiment:
        """A simultaneous start, or another scenario, with these settings."""
        kind = find(self.algorithm)
        return Experiment(
            kind,
            self.members,
            kind.Settings.parse(self.settings()),
            network=self.network,
            scenario=Scenario(scenario),
            seed=self.seed,
            until=self.until,
        )

    def case(self) -> Case:
        """The same for the transcription."""
        return Case(
            algorithm=self.algorithm.removesuffix("-printed"),
            members=self.members,
            T_A=ticks(self.T_A),
            T_L=None if inf == self.T_L else ticks(self.T_L),
            delta=ticks(self.delta),
            relative=self.relative,
            steady=self.steady,
            # The earliest of so many sleepers, on average: decided in le_m.py.
            steady_key=ticks(self.T_S / (self.members + 1)) if self.relative else 0,
            crashes={member: ticks(at) for member, at in self.crashes.items()},
            joins={member: ticks(at) for member, at in self.joins.items()},
            refresh=not self.algorithm.endswith("-printed"),
        )


# The simulator's side


def simulated(story: Story) -> Trace:
    """Play a story in a world, to its end."""
    members = list(range(1, story.members + 1))
    out = io.BytesIO()
    tracer = Tracer(Header(protocol=story.algorithm, members=members, seed=story.seed), out)
    with patch("hustings.sim.member.Stream", story.stream):
        world = World(
            story.elect,
            [Candidate(member) for member in members],
            seed=story.seed,
            network=story.network,
            tracer=tracer,
        )
        _begin(world, story)
        ended = world.run(story.until)
    tracer.close(world.now, ended.value)
    return read(out)


def _begin(world: World, story: Story) -> None:
    schedule(world, [Crash(member=member, at=at) for member, at in story.crashes.items()])
    schedule(world, [Join(member=member, at=at) for member, at in story.joins.items()])
    first = [ctx for ctx in world.members.values() if ctx.id not in story.joins]
    for ctx in first:
        world.revive(ctx)
        assert ctx.status is Status.UP
    for ctx in first:
        if story.steady is None:
            ctx.election.start(ctx)
        else:
            ctx.election.assume_leader(ctx, story.steady, 1)


def read(out: io.BytesIO) -> Trace:
    """What a tracer wrote."""
    return read_stream(io.BytesIO(out.getvalue()))


def events(trace: Trace, steady: int | None = None) -> list[Event]:
    """What members did, in the transcription's words."""
    found: list[Event] = []
    holds: dict[int, int | None] = dict.fromkeys(trace.header.members, steady)
    for record in trace.events:
        at = ticks(record.t)
        if isinstance(record, Sent) and record.msg[0] == "ANNOUNCE":
            found.append((at, record.m, f"send {record.msg[2]}"))
        elif isinstance(record, Fired) and record.key == "T_L":
            found.append((at, record.m, "timeout"))
        elif isinstance(record, Declared):
            outcome = record.outcome
            leader = outcome.leader if isinstance(outcome, Elected) else None
            if leader not in (None, record.m, holds[record.m]):
                found.append((at, record.m, f"adopt {leader}"))
            holds[record.m] = leader
    return found


# The transcription's side, with what chance did in the simulator


def fates(trace: Trace, steady: int | None = None) -> transcription.Lost:
    """Who lost which announcement: whoever the trace does not show receiving it."""
    counts = {} if steady is None else {steady: 1}
    names: dict[int, tuple[int, int]] = {}
    heard: set[tuple[int, int, int]] = set()
    for record in trace.events:
        if isinstance(record, Sent):
            counts[record.m] = counts.get(record.m, 0) + 1
            names[record.n] = (record.m, counts[record.m])
        elif isinstance(record, Received):
            heard.add((*names[record.n], record.m))
    return lambda *fate: fate not in heard


def same_sleeps(seed: int, T_S: float, stream: type[Stream] = Stream) -> transcription.Wake:
    """Uniform sleeps from the members' own streams."""
    streams: dict[int, Stream] = {}

    def wake(member: int, nth: int, now: int) -> int:
        if not T_S:
            return 0
        if member not in streams:
            streams[member] = stream(derive(seed, "member", member, 1))
        return ticks(on_grid(now / TICKS + T_S * streams[member].random())) - now

    return wake


def transcribed(story: Story, trace: Trace) -> Run:
    """The same story in the transcription."""
    return transcription.play(
        story.case(),
        same_sleeps(story.seed, story.T_S, story.stream),
        fates(trace, story.steady),
        ticks(story.until),
    )


def told_twice(story: Story) -> tuple[list[Event], list[Event]]:
    """What members did in the simulator, and in the transcription."""
    trace = simulated(story)
    return events(trace, story.steady), transcribed(story, trace).events


# Metrics


Found = dict[str, float | None]


def played(story: Story, scenario: str) -> tuple[Found, Trace]:
    """The metrics of one run in the simulator, and its trace."""
    experiment = story.experiment(scenario)
    out = io.BytesIO()
    tracer = Tracer(experiment.header(0), out)
    with patch("hustings.sim.member.Stream", story.stream):
        result = play(experiment, 0, tracer)
    return result.metrics, read(out)


def measured(story: Story) -> tuple[Found, Metrics | None]:
    """A simultaneous start: its metrics in the simulator, and in the transcription."""
    found, trace = played(story, "start")
    run = transcription.play(
        story.case(),
        same_sleeps(trace.header.seed, story.T_S, story.stream),
        fates(trace),
        ticks(trace.footer.t),
        settle=story.algorithm != "sup",
    )
    return found, transcription.metrics(run)


def crashed(story: Story) -> tuple[float | None, float | None]:
    """How long a group was without a leader after a crash, in both."""
    found, trace = played(story, "leader-crash")
    gone = [ticks(record.t) for record in trace.events if _is_crash(record)]
    simulated = found["reestablishment_delay"]
    if not gone or simulated is None:
        return simulated, None
    n, delta = story.members, ticks(story.delta)
    case = replace(story.case(), steady=n, crashes={n: gone[0]})
    run = transcription.play(
        case,
        same_sleeps(trace.header.seed, story.T_S, story.stream),
        fates(trace, n),
        ticks(trace.footer.t),
    )
    last = max((at for at, who, _ in run.sends if who == n), default=0)
    agreed = transcription.agreed_at(run, list(range(1, n)), n - 1, max(gone[0], last + delta))
    return simulated, None if agreed is None else max(0, agreed - gone[0]) / TICKS


def _is_crash(record: object) -> bool:
    return isinstance(record, Changed) and record.status == "crashed"
