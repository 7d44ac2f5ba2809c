"""The short way of a message and the careful one give the same run.

Random groups play random stories: once on the fast path, and again with a tracer, in debug mode,
on the careful path, and switched over to it in the middle. Everything that can be seen must agree:
counts, outcomes, times, the order of declarations, and the coins that were tossed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hustings.core.choice import Candidate, HighestId, MemberId
from hustings.core.config import Config
from hustings.core.election import Election
from hustings.core.messages import kind_of
from hustings.core.outcome import Outcome
from hustings.protocols.bully import Bully, BullyConfig
from hustings.protocols.ring import Ring, RingConfig
from hustings.sim.delay import Fixed
from hustings.sim.faults import (
    Alive,
    Call,
    Crash,
    Happening,
    Join,
    Leave,
    Pause,
    Restart,
    Resume,
    Suspect,
    schedule,
)
from hustings.sim.loss import Correlated, NoLoss, Uncorrelated
from hustings.sim.member import SimContext
from hustings.sim.network import Network
from hustings.sim.trace import Header, Tracer
from hustings.sim.world import Ended, World
from tests.agreement.suppressing import Suppressing

CHOICE = HighestId()
ELECTIONS: dict[str, Callable[[], Election]] = {
    "ring": lambda: Ring(RingConfig(), CHOICE),
    "bully": lambda: Bully(BullyConfig(max_runs=3), CHOICE),
    "suppressing": lambda: Suppressing(Config(), CHOICE),
}
UNTIL = 30.0
MAX_EVENTS = 2_000
CAREFUL = ("traced", "debug", "careful", "switched")


@dataclass(frozen=True)
class Story:
    election: str
    members: int
    late: int  # so many of them are not there at the beginning
    network: Network
    seed: int
    happenings: tuple[Happening, ...]
    switch: float


def networks() -> st.SearchStrategy[Network]:
    delays = st.sampled_from([1.0, 0.25, 0.1, 1 / 3])
    probabilities = st.sampled_from([0.02, 0.1, 0.25, 0.3, 0.7, 1.0]) | st.floats(0.0, 1.0)
    losses = st.one_of(
        st.just(NoLoss()),
        st.builds(Correlated, probabilities),
        st.builds(Uncorrelated, probabilities),
    )
    return st.builds(
        lambda delay, loss, other: Network(delay=Fixed(delay), loss=loss, multicast_loss=other),
        delays,
        losses,
        st.none() | losses,
    )


@st.composite
def happenings(draw: st.DrawFn, n: int) -> tuple[Happening, ...]:
    one = st.integers(1, n)
    at = st.sampled_from([0.0, 0.5, 1.0, 2.0, 2.25, 3.0, 5.0, 7.5, 12.0])
    kinds = (Call, Crash, Restart, Join, Leave, Pause, Resume)
    simple = st.builds(lambda kind, m, t: kind(member=m, at=t), st.sampled_from(kinds), one, at)
    told = st.builds(
        lambda kind, m, about, t: kind(member=m, about=about, at=t),
        st.sampled_from((Suspect, Alive)),
        one,
        one,
        at,
    )
    return tuple(draw(st.lists(simple | told, max_size=12)))


@st.composite
def stories(draw: st.DrawFn) -> Story:
    n = draw(st.integers(1, 8))
    return Story(
        election=draw(st.sampled_from(sorted(ELECTIONS))),
        members=n,
        late=draw(st.integers(0, n - 1)),
        network=draw(networks()),
        seed=draw(st.integers(0, 2**32)),
        happenings=(Call(member=1), *draw(happenings(n))),
        switch=draw(st.sampled_from([0.0, 0.5, 1.0, 1.5, 4.0])),
    )


@dataclass
class Trail:
    """All that can be seen of a run, in order."""

    declarations: list[tuple[float, MemberId, Outcome]]
    changes: list[tuple[float, MemberId, str, int]]
    sent: dict[str, int]
    lost: dict[str, int]  # but for chance, which only the careful way counts
    outcomes: dict[MemberId, Outcome | None]
    stored: dict[MemberId, dict[str, object]]
    events: int
    ended: Ended
    times: tuple[float, float, float]
    coins: object
    draws: list[int]


class Ear:
    def __init__(self) -> None:
        self.declarations: list[tuple[float, MemberId, Outcome]] = []
        self.changes: list[tuple[float, MemberId, str, int]] = []

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        self.declarations.append((world.now, member.id, outcome))

    def changed(self, world: World, member: SimContext) -> None:
        self.changes.append((world.now, member.id, member.status.value, member.incarnation))


def world_of(story: Story, way: str) -> World:
    header = Header(protocol=story.election, members=[], seed=story.seed)
    world = World(
        ELECTIONS[story.election],
        [Candidate(member) for member in range(1, story.members + 1)],
        seed=story.seed,
        network=story.network,
        tracer=Tracer(header) if way == "traced" else None,
        debug=way == "debug",
    )
    if way == "careful":
        world.be_careful()
    if way != "traced":  # a trace may be written on either way
        assert (world.plain_delay is None) is (way in ("debug", "careful"))
    return world


def played(story: Story, way: str) -> Trail:
    world = world_of(story, way)
    ear = Ear()
    world.watch(ear)
    for member in range(1, story.members + 1 - story.late):
        world.start(member)
    schedule(world, list(story.happenings))
    world.at(story.switch, world.be_careful if way == "switched" else lambda: None)
    ended = world.run(UNTIL, MAX_EVENTS)
    return Trail(
        declarations=ear.declarations,
        changes=ear.changes,
        sent={kind_of(kind): number for kind, number in world.sent.items()},
        lost={why: number for why, number in world.lost.items() if why != "loss"},
        outcomes={ctx.id: ctx.outcome for ctx in world.members.values()},
        stored={ctx.id: dict(ctx.stored) for ctx in world.members.values()},
        events=world.events,
        ended=ended,
        times=(world.now, world.last_arrival, world.last_declared),
        coins=world.chance.getstate(),
        draws=[ctx.rng.bits() for ctx in world.members.values()],
    )


def check_all_ways(story: Story) -> None:
    fast = played(story, "fast")
    for way in CAREFUL:
        assert played(story, way) == fast, way


@settings(max_examples=150)
@given(stories())
def test_every_way_is_the_same_way(story: Story) -> None:
    check_all_ways(story)


@pytest.mark.soak
@settings(max_examples=20_000)
@given(stories())
def test_every_way_is_the_same_way_in_very_many_stories(story: Story) -> None:
    check_all_ways(story)


@pytest.mark.parametrize("delay", [0.1, 1e-8, 1.5e-8, 2.5e-8 + 1e-12, 1000 / 3])
@pytest.mark.parametrize("way", CAREFUL)
def test_a_delay_off_the_grid_means_the_same_instant_both_ways(delay: float, way: str) -> None:
    """Rounding a sum is not adding what was rounded."""
    calls = tuple(Call(member=1, at=at) for at in (0.0, 1e-8, 0.7))
    story = Story("suppressing", 3, 0, Network(delay=Fixed(delay)), 1, calls, 0.0)
    assert played(story, way) == played(story, "fast")


def test_a_network_that_needs_care_gets_it() -> None:
    for network in (
        Network(delay=Fixed(0.0)),
        Network(duplicate=0.1),
        Network(reorder=0.1, hold_back=1.0),
        Network(loss=Uncorrelated(0.0, 0.1)),
    ):
        world = World(ELECTIONS["bully"], [Candidate(1)], network=network)
        assert world.plain_delay is None
    assert World(ELECTIONS["bully"], [Candidate(1)]).plain_delay == 1.0
